import { isDeepStrictEqual } from 'node:util';
import { digestsOf, type Bundle } from './bundle.ts';
import { jsonPointer, type Path } from './document.ts';
import { fieldsOf, isFields, type Fields } from './fields.ts';

export interface Change {
  /** JSON pointer (RFC 6901). */
  readonly pointer: string;
  readonly kind: 'added' | 'removed' | 'changed';
  /** Absent if `kind` is `added`. */
  readonly from?: unknown;
  /** Absent if `kind` is `removed`. */
  readonly to?: unknown;
}

/**
 * Compares two JSON documents. Changes come in the order of `before`, then additions in the order of
 * `after`. Lists are compared index by index.
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

/** JSON merge patch (RFC 7396) that turns one document into another one without null values. */
export function mergePatchBetween(before: Fields, after: Fields): Fields {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].filter((name) => !isDeepStrictEqual(before[name], after[name]));
  return Object.fromEntries(
    changed.map((name) => {
      const [from, to] = [before[name], after[name]];
      if (!isFields(to)) return [name, to ?? null];
      return [name, mergePatchBetween(fieldsOf(from), to)];
    }),
  );
}

export interface FileChange {
  /** Relative to the spec. */
  readonly file: string;
  readonly kind: Change['kind'];
  /** SHA-256; absent if `kind` is `added`. */
  readonly from?: string;
  /** SHA-256; absent if `kind` is `removed`. */
  readonly to?: string;
}

/** Compares the files of two bots. Changes are sorted by path. */
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
