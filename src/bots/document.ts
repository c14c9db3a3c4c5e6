import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument as parseYaml,
  type ErrorCode,
  type Node,
  type Pair,
  type YAMLError,
} from 'yaml';
import type { Problem } from '../base/errors.ts';

/** Keys and indexes from the root to a value. */
export type Path = readonly PropertyKey[];

/** A YAML or JSON text as plain data, with the position of each part. */
export interface SourceDocument {
  /** `undefined` for an empty or unusable text. Values of aliases are shared, not copied. */
  readonly value: unknown;
  /** Faults of the text itself, such as invalid syntax or duplicate keys. */
  readonly problems: readonly Problem[];
  /**
   * Creates a problem at the value or the key of `path`. If the text has no such place (a missing
   * field, the inside of an alias), the problem gets the position of the nearest parent.
   */
  problem(path: Path, what: Pick<Problem, 'code' | 'message' | 'suggestion'>, at?: Part): Problem;
  /** Source text of the scalar at `path`; `undefined` if there is no scalar. */
  written(path: Path): string | undefined;
}

type Part = 'key' | 'value';

/** Levels of nesting: more than any real document has, few enough to protect the stack. */
const MAX_DEPTH = 64;

/**
 * Values plus characters, with the content of an alias counted at each use. Checking a document of
 * this size takes about a second; without a limit, aliases can expand a short text to gigabytes.
 */
const MAX_SIZE = 250_000;

/** Such text cannot be hashed, because canonical JSON does not allow it. */
const HALF_CHARACTER = 'contains half of a surrogate pair, which is not a valid character';

/** RFC 6901. */
export function jsonPointer(path: Path): string {
  return path
    .map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

export function optional(suggestion: string | undefined): Pick<Problem, 'suggestion'> {
  return suggestion === undefined ? {} : { suggestion };
}

/** Reads YAML 1.2 (core schema) or JSON. Timestamps stay strings, and tags are rejected. */
export function parseDocument(text: string, file: string): SourceDocument {
  const lineStarts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
  // Keys are checked below: the parser's own check takes quadratic time.
  const options = { stringKeys: true, resolveKnownTags: false, uniqueKeys: false } as const;
  const yaml = parseYaml(text, { ...options, prettyErrors: false });

  const places = new Map<string, Record<Part, number>>();
  const scalars = new Map<string, string>();
  const anchors = new Map<string, { value: unknown; size: number } | 'open'>();
  const problems: Problem[] = [];
  let size = 0;
  let oversized: Problem | undefined;

  const locate = (offset: number): Pick<Problem, 'file' | 'line' | 'column'> => {
    const within = Math.min(offset, text.length);
    const line = lineAt(lineStarts, within);
    return { file, line, column: within - lineStarts[line - 1]! + 1 };
  };
  const problem: SourceDocument['problem'] = (path, what, at = 'value') => {
    let known = path;
    while (known.length > 0 && !places.has(jsonPointer(known))) known = known.slice(0, -1);
    const part = known === path ? at : 'value';
    const offset = places.get(jsonPointer(known))?.[part] ?? 0;
    return { ...locate(offset), pointer: jsonPointer(path), ...what };
  };
  const complain = (path: Path, code: string, message: string, at?: Part): void => {
    problems.push(problem(path, { code, message }, at));
  };

  const grow = (by: number, path: Path): void => {
    if (size + by <= MAX_SIZE) {
      size += by;
      return;
    }
    const message = `the document is too large: with aliases expanded, it may have at most ${MAX_SIZE} values and characters`;
    oversized ??= problem(path, { code: 'file_too_large', message });
  };

  const read = (node: Node | null, path: Path): unknown => {
    if (path.length > MAX_DEPTH) {
      complain(path, 'yaml_syntax', `nested too deeply: at most ${MAX_DEPTH} levels are allowed`);
      return undefined;
    }
    if (isAlias(node)) {
      const anchor = anchors.get(node.source);
      if (typeof anchor === 'object') {
        grow(anchor.size, path);
        return anchor.value;
      }
      const fault =
        anchor === 'open'
          ? 'refers to a value that contains it'
          : `has no anchor &${node.source} before it`;
      complain(path, 'yaml_syntax', `*${node.source} ${fault}`);
      return undefined;
    }
    const name = node !== null && 'anchor' in node ? node.anchor : undefined;
    const before = size;
    if (name !== undefined) anchors.set(name, 'open');
    const value = readContent(node, path);
    if (name !== undefined) anchors.set(name, { value, size: size - before });
    return value;
  };

  const readContent = (node: Node | null, path: Path): unknown => {
    grow(1 + (isScalar(node) ? (node.source?.length ?? 0) : 0), path);
    if (isMap(node)) {
      const map: Record<string, unknown> = {};
      for (const pair of node.items) readPair(pair as Pair<Node, Node | null>, map, path);
      return map;
    }
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const start = (item as Node).range?.[0] ?? 0;
        places.set(jsonPointer([...path, index]), { key: start, value: start });
        return read(item as Node, [...path, index]);
      });
    }
    if (!isScalar(node)) return null;
    if (typeof node.value === 'string' && !node.value.isWellFormed()) {
      complain(path, 'invalid_value', HALF_CHARACTER);
    }
    if (node.source !== undefined) scalars.set(jsonPointer(path), node.source);
    return node.value;
  };

  const readPair = (
    { key, value }: Pair<Node, Node | null>,
    map: Record<string, unknown>,
    parent: Path,
  ): void => {
    const name = isScalar(key) ? String(key.value) : '';
    const path = [...parent, name];
    const start = key.range?.[0] ?? 0;
    grow(name.length, path);
    const earlier = places.get(jsonPointer(path));
    places.set(jsonPointer(path), { key: start, value: value?.range?.[0] ?? start });
    if (earlier !== undefined) {
      const line = locate(earlier.key).line;
      complain(path, 'duplicate_field', `duplicate field; first given in line ${line}`, 'key');
    }
    if (!name.isWellFormed()) complain(path, 'invalid_value', HALF_CHARACTER, 'key');
    const content = read(value, path);
    // An assignment would change the prototype of the map.
    if (name === '__proto__')
      complain(path, 'unknown_field', 'a field cannot have this name', 'key');
    else map[name] = content;
  };

  const unusable = (faults: readonly Problem[]): SourceDocument => {
    return { value: undefined, problems: faults, problem, written: () => undefined };
  };
  const syntax = syntaxProblems([...yaml.errors, ...yaml.warnings], locate);
  if (syntax.length > 0) return unusable(syntax);
  const root = yaml.contents;
  places.set('', { key: root?.range[0] ?? 0, value: root?.range[0] ?? 0 });
  const value = root === null ? undefined : read(root, []);
  if (oversized !== undefined) return unusable([oversized]);
  return { value, problems, problem, written: (path) => scalars.get(jsonPointer(path)) };
}

/** Number, from 1, of the line that contains `offset`. */
function lineAt(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}

const PLAINER: Partial<Record<ErrorCode, string>> = {
  MULTIPLE_DOCS: 'a second document starts here; put each bot into a file of its own',
  NON_STRING_KEY: 'a key must be a single word or a quoted string',
  RESOURCE_EXHAUSTION: 'nested too deeply',
};

/** Keeps one error per place and per message, because the parser often repeats itself. */
function syntaxProblems(
  errors: readonly YAMLError[],
  locate: (offset: number) => Pick<Problem, 'file' | 'line' | 'column'>,
): Problem[] {
  const exhausted = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION');
  const told = new Set<number | string>();
  return (exhausted === undefined ? errors : [exhausted]).flatMap(({ code, message, pos }) => {
    if (told.has(pos[0]) || told.has(message)) return [];
    told.add(pos[0]).add(message);
    return { ...locate(pos[0]), code: 'yaml_syntax', message: PLAINER[code] ?? message };
  });
}
