import { LeaseError } from './refusal.ts';
import { encodeUtf8 } from './utf8.ts';

/** Secret stores, which may hold signed documents, accept up to 64 KiB. */
const MAX_BYTES = 65_536;
const MAX_DEPTH = 16;

/**
 * Parses JSON that every reader understands alike. RFC 8259 leaves open what a repeated member and
 * half a surrogate pair mean, and parsers differ; I-JSON (RFC 7493) excludes both.
 *
 * @param what names the text in the error.
 * @throws LeaseError `too_large`, `not_json`, `nested_too_deep`, `duplicate_member`,
 * `forbidden_member`.
 */
export function parseStrictJson(text: string, what: string): unknown {
  // Each character takes at least one byte.
  if (text.length > MAX_BYTES || (text.isWellFormed() && encodeUtf8(text).length > MAX_BYTES)) {
    throw new LeaseError('too_large', `${what} has more than ${MAX_BYTES} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new LeaseError('not_json', `${what} is empty, cut short or otherwise not JSON`);
  }
  const fault = findJsonFault(text, MAX_DEPTH, (string, isName) => {
    if (!string.isWellFormed()) {
      throw new LeaseError('not_json', `${what} has half a surrogate pair in a string`);
    }
    if (isName && string === '__proto__') {
      throw new LeaseError('forbidden_member', `${what} has a member "__proto__"`);
    }
  });
  if (fault?.kind === 'nested_too_deep') {
    throw new LeaseError('nested_too_deep', `${what} has more than ${MAX_DEPTH} levels`);
  }
  if (fault !== undefined) {
    throw new LeaseError('duplicate_member', `${what} has the member ${quote(fault.name)} twice`);
  }
  return value;
}

/** A property of a JSON text that `JSON.parse` accepts, with its position as a JSON pointer (RFC 6901). */
export type JsonFault = { readonly pointer: string } & (
  | { readonly kind: 'duplicate_member'; readonly name: string }
  | { readonly kind: 'nested_too_deep' }
);

interface Container {
  /** Member names found so far; undefined in an array. */
  readonly names: Set<string> | undefined;
  /** Whether the next string is a member name. */
  expectsName: boolean;
  /** Name of the current member, or index of the current item. */
  at: string | number;
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Finds the first repeated member, or container below `maxDepth` levels, of a JSON text. Of a repeated
 * member `JSON.parse` takes the last value, where another reader may take the first. The result is
 * undefined for a text without such a fault; a text that is not JSON may give any result.
 *
 * @param checkString called with each decoded string, before it is checked for repetition.
 */
export function findJsonFault(
  text: string,
  maxDepth: number,
  checkString?: (string: string, isName: boolean) => void,
): JsonFault | undefined {
  const containers: Container[] = [];
  let container: Container | undefined;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (end === undefined) return undefined;
      const isName = container?.expectsName === true;
      if (isName || checkString !== undefined) {
        const string = decodeString(text, i, end);
        if (string === undefined) return undefined;
        checkString?.(string, isName);
        if (isName) {
          container!.at = string;
          container!.expectsName = false;
          if (container!.names!.has(string)) {
            return { kind: 'duplicate_member', name: string, pointer: pointerTo(containers) };
          }
          container!.names!.add(string);
        }
      }
      i = end;
    } else if (code === COMMA) {
      if (container === undefined) return undefined;
      if (container.names === undefined) container.at = Number(container.at) + 1;
      else container.expectsName = true;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (containers.length === maxDepth) {
        return { kind: 'nested_too_deep', pointer: pointerTo(containers) };
      }
      const isObject = code === OPEN_OBJECT;
      container = { names: isObject ? new Set() : undefined, expectsName: isObject, at: 0 };
      containers.push(container);
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      containers.pop();
      container = containers.at(-1);
    }
  }
  return undefined;
}

/** Returns the index of the closing quote. */
function endOfString(text: string, start: number): number | undefined {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text.charCodeAt(first - 1) === BACKSLASH) first--;
    if ((end - first) % 2 === 0) return end;
  }
  return undefined;
}

/** Resolves escapes, so that two spellings of a name are recognized as the same name. */
function decodeString(text: string, start: number, end: number): string | undefined {
  const content = text.slice(start + 1, end);
  if (!content.includes('\\')) return content;
  try {
    return JSON.parse(text.slice(start, end + 1)) as string;
  } catch {
    return undefined;
  }
}

function pointerTo(containers: readonly Container[]): string {
  const steps = containers.map(({ at }) => String(at).replaceAll('~', '~0').replaceAll('/', '~1'));
  return steps.map((step) => `/${step}`).join('');
}

/** Returns the canonical JSON (RFC 8785) of a JSON value. */
export function canonicalJson(value: unknown): string {
  const names = new Set<string>();
  JSON.stringify(value, (name, member: unknown) => {
    names.add(name);
    return member;
  });
  // JSON.stringify writes members in the order of this list.
  return JSON.stringify(value, [...names].sort());
}

/** Whether a value from `JSON.parse` is an object and not an array. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Quotes untrusted text for a message: on one line, at most 40 characters of it. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
