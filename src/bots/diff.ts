import { isDeepStrictEqual } from 'node:util';
import { digestsOf, type Bundle } from './bundle.ts';
import { jsonPointer, type Path } from './document.ts';

/** One place at which two documents differ. */
export interface Change {
  /** RFC 6901. */
  readonly pointer: string;
  readonly kind: 'added' | 'removed' | 'changed';
  /** Absent where something is added. */
  readonly from?: unknown;
  /** Absent where something is removed. */
  readonly to?: unknown;
}

/**
 * What differs between two JSON documents, in the order of the first and then of the second. Lists
 * are compared place by place.
 */
export function diffDocuments(before: unknown, after: unknown, at: Path = []): Change[] {
  if (isDeepStrictEqual(before, after)) return [];
  const pointer = jsonPointer(at);
  if (
    !isContainer(before) ||
    !isContainer(after) ||
    Array.isArray(before) !== Array.isArray(after)
  ) {
    return [{ pointer, kind: 'changed', from: before, to: after }];
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const place = [...at, name];
    if (!Object.hasOwn(after, name)) {
      return { pointer: jsonPointer(place), kind: 'removed', from: before[name] };
    }
    if (!Object.hasOwn(before, name)) {
      return { pointer: jsonPointer(place), kind: 'added', to: after[name] };
    }
    return diffDocuments(before[name], after[name], place);
  });
}

/** A file of the code of a bot that is not in both, or not the same in both. */
export interface FileChange {
  /** Relative to the spec. */
  readonly file: string;
  readonly kind: Change['kind'];
  /** SHA-256; absent where it is added. */
  readonly from?: string;
  /** SHA-256; absent where it is removed. */
  readonly to?: string;
}

/** What differs between the code of two bots, by path. */
export function diffFiles(before: Bundle = {}, after: Bundle = {}): FileChange[] {
  const [from, to] = [digestsOf(before), digestsOf(after)];
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])].toSorted();
  return names.flatMap((file): FileChange[] => {
    if (!Object.hasOwn(to, file)) return [{ file, kind: 'removed', from: from[file]! }];
    if (!Object.hasOwn(from, file)) return [{ file, kind: 'added', to: to[file]! }];
    return from[file] === to[file]
      ? []
      : [{ file, kind: 'changed', from: from[file]!, to: to[file]! }];
  });
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
