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
  // `NodeReader` checks for duplicate keys: the parser's own check takes quadratic time.
  const options = { stringKeys: true, resolveKnownTags: false, uniqueKeys: false } as const;
  const yaml = parseYaml(text, { ...options, prettyErrors: false });
  const locate = locatorOf(text, file);
  const reader = new NodeReader(locate);
  const { problems, problem, written } = reader;

  const unusable = (faults: readonly Problem[]): SourceDocument => {
    return { value: undefined, problems: faults, problem, written: () => undefined };
  };
  const syntax = syntaxProblems([...yaml.errors, ...yaml.warnings], locate);
  if (syntax.length > 0) return unusable(syntax);
  const value = reader.readRoot(yaml.contents);
  if (reader.oversized !== undefined) return unusable([reader.oversized]);
  return { value, problems, problem, written };
}

/** Converts the nodes of the parser to plain data and records the position of each. */
class NodeReader {
  readonly problems: Problem[] = [];
  /** Set if the content exceeds `MAX_SIZE`. */
  oversized: Problem | undefined;
  readonly #locate: Locate;
  /** Offsets by JSON pointer. */
  readonly #places = new Map<string, Record<Part, number>>();
  /** Source texts by JSON pointer. */
  readonly #scalars = new Map<string, string>();
  readonly #anchors = new Map<string, { value: unknown; size: number } | 'open'>();
  #size = 0;

  constructor(locate: Locate) {
    this.#locate = locate;
  }

  readonly problem: SourceDocument['problem'] = (path, what, at = 'value') => {
    let known = path;
    while (known.length > 0 && !this.#places.has(jsonPointer(known))) known = known.slice(0, -1);
    const part = known === path ? at : 'value';
    const offset = this.#places.get(jsonPointer(known))?.[part] ?? 0;
    return { ...this.#locate(offset), pointer: jsonPointer(path), ...what };
  };

  readonly written: SourceDocument['written'] = (path) => this.#scalars.get(jsonPointer(path));

  readRoot(root: Node | null): unknown {
    const start = root?.range?.[0] ?? 0;
    this.#places.set('', { key: start, value: start });
    return root === null ? undefined : this.#read(root, []);
  }

  #read(node: Node | null, path: Path): unknown {
    if (path.length > MAX_DEPTH) {
      const message = `nested too deeply: at most ${MAX_DEPTH} levels are allowed`;
      this.#report(path, 'yaml_syntax', message);
      return undefined;
    }
    if (isAlias(node)) return this.#readAlias(node.source, path);
    const name = node !== null && 'anchor' in node ? node.anchor : undefined;
    const before = this.#size;
    if (name !== undefined) this.#anchors.set(name, 'open');
    const value = this.#readContent(node, path);
    if (name !== undefined) this.#anchors.set(name, { value, size: this.#size - before });
    return value;
  }

  #readAlias(name: string, path: Path): unknown {
    const anchor = this.#anchors.get(name);
    if (typeof anchor === 'object') {
      this.#grow(anchor.size, path);
      return anchor.value;
    }
    const fault =
      anchor === 'open' ? 'refers to a value that contains it' : `has no anchor &${name} before it`;
    this.#report(path, 'yaml_syntax', `*${name} ${fault}`);
    return undefined;
  }

  #readContent(node: Node | null, path: Path): unknown {
    this.#grow(1 + (isScalar(node) ? (node.source?.length ?? 0) : 0), path);
    if (isMap(node)) {
      const map: Record<string, unknown> = {};
      for (const pair of node.items) this.#readPair(pair as Pair<Node, Node | null>, map, path);
      return map;
    }
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const start = (item as Node).range?.[0] ?? 0;
        this.#places.set(jsonPointer([...path, index]), { key: start, value: start });
        return this.#read(item as Node, [...path, index]);
      });
    }
    if (!isScalar(node)) return null;
    if (typeof node.value === 'string' && !node.value.isWellFormed()) {
      this.#report(path, 'invalid_value', HALF_CHARACTER);
    }
    if (node.source !== undefined) this.#scalars.set(jsonPointer(path), node.source);
    return node.value;
  }

  #readPair(
    { key, value }: Pair<Node, Node | null>,
    map: Record<string, unknown>,
    parent: Path,
  ): void {
    const name = isScalar(key) ? String(key.value) : '';
    const path = [...parent, name];
    const start = key.range?.[0] ?? 0;
    this.#grow(name.length, path);
    const earlier = this.#places.get(jsonPointer(path));
    this.#places.set(jsonPointer(path), { key: start, value: value?.range?.[0] ?? start });
    if (earlier !== undefined) {
      const { line } = this.#locate(earlier.key);
      this.#report(path, 'duplicate_field', `duplicate field; first given in line ${line}`, 'key');
    }
    if (!name.isWellFormed()) this.#report(path, 'invalid_value', HALF_CHARACTER, 'key');
    const content = this.#read(value, path);
    // An assignment would change the prototype of the map.
    if (name === '__proto__') {
      this.#report(path, 'unknown_field', 'a field cannot have this name', 'key');
    } else map[name] = content;
  }

  #report(path: Path, code: string, message: string, at?: Part): void {
    this.problems.push(this.problem(path, { code, message }, at));
  }

  #grow(by: number, path: Path): void {
    if (this.#size + by <= MAX_SIZE) {
      this.#size += by;
      return;
    }
    const message = `the document is too large: with aliases expanded, it may have at most ${MAX_SIZE} values and characters`;
    this.oversized ??= this.problem(path, { code: 'file_too_large', message });
  }
}

type Locate = (offset: number) => Pick<Problem, 'file' | 'line' | 'column'>;

function locatorOf(text: string, file: string): Locate {
  const lineStarts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
  return (offset) => {
    const within = Math.min(offset, text.length);
    const line = lineAt(lineStarts, within);
    return { file, line, column: within - lineStarts[line - 1]! + 1 };
  };
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
function syntaxProblems(errors: readonly YAMLError[], locate: Locate): Problem[] {
  const exhausted = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION');
  const reported = new Set<number | string>();
  return (exhausted === undefined ? errors : [exhausted]).flatMap(({ code, message, pos }) => {
    if (reported.has(pos[0]) || reported.has(message)) return [];
    reported.add(pos[0]).add(message);
    return { ...locate(pos[0]), code: 'yaml_syntax', message: PLAINER[code] ?? message };
  });
}
