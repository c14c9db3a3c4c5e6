import { isDeepStrictEqual } from 'node:util';
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

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
