import type { ObjectDiff } from './cluster.ts';
import { HIDDEN } from './render.ts';

type Json = Readonly<Record<string, unknown>>;

/** Metadata that the API server sets. */
const KEPT_BY_SERVER: ReadonlySet<string> = new Set([
  'managedFields',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'uid',
  'selfLink',
]);
const LONGEST_VALUE = 200;

/**
 * @param live undefined if the object does not exist yet.
 * @param applied The object as returned by a dry run of the API server.
 */
export function diffOf(live: Json | undefined, applied: Json): ObjectDiff {
  const { kind, metadata } = applied as { kind: string; metadata: { name: string } };
  const before = live === undefined ? new Map<string, string>() : leavesOf(live);
  const after = leavesOf(applied);
  const hides = kind === 'Secret';
  const show = (path: string, value: string): string =>
    hides && /^(data|stringData)\./.test(path) ? HIDDEN : value;
  const lines = [...new Set([...before.keys(), ...after.keys()])].toSorted().flatMap((path) => {
    const [old, next] = [before.get(path), after.get(path)];
    if (old === next) return [];
    return [
      ...(old === undefined ? [] : [`- ${path}: ${show(path, old)}`]),
      ...(next === undefined ? [] : [`+ ${path}: ${show(path, next)}`]),
    ];
  });
  const change = live === undefined ? 'create' : lines.length === 0 ? 'none' : 'change';
  return { kind, name: metadata.name, change, lines };
}

function leavesOf({ status: _status, metadata, ...rest }: Json): Map<string, string> {
  const kept = Object.entries(metadata as Json).filter(([key]) => !KEPT_BY_SERVER.has(key));
  const leaves = new Map<string, string>();
  collect({ ...rest, metadata: Object.fromEntries(kept) }, '', leaves);
  return leaves;
}

/** Identifies list items by their name, if they have one, so that reordering is no change. */
function collect(value: unknown, path: string, leaves: Map<string, string>): void {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    const text = JSON.stringify(value);
    leaves.set(path, text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text);
    return;
  }
  for (const [key, child] of Object.entries(value)) {
    const step = Array.isArray(value) ? `[${nameOf(child) ?? key}]` : `${path && '.'}${key}`;
    collect(child, path + step, leaves);
  }
}

function nameOf(item: unknown): string | undefined {
  const { name } = (item ?? {}) as { name?: unknown };
  return typeof name === 'string' ? name : undefined;
}
