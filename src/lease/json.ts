import { LeaseError } from './refusal.ts';
import { encodeUtf8 } from './utf8.ts';

/** What is signed ends up in secret stores, which accept up to 64 KiB. */
const MAX_BYTES = 65_536;
const MAX_DEPTH = 16;

/** Brackets, and strings with the colon that makes them names, of a text that is JSON. */
const TOKEN = /[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g;

/**
 * JSON that every reader understands alike. RFC 8259 leaves open what a repeated member and half a
 * surrogate pair mean, and parsers differ; I-JSON (RFC 7493) excludes both.
 *
 * @param what names the text in the refusal.
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
  checkStructure(text, what);
  return value;
}

function checkStructure(text: string, what: string): void {
  /** The names seen so far in each container around the token. */
  const containers: Set<string>[] = [];
  for (const [token, colon] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') {
      if (containers.length === MAX_DEPTH) {
        throw new LeaseError('nested_too_deep', `${what} has more than ${MAX_DEPTH} levels`);
      }
      containers.push(new Set());
    } else if (token === '}' || token === ']') {
      containers.pop();
    } else {
      // Two spellings of a name, one with escapes, are the same name.
      const name = JSON.parse(token.slice(0, token.length - (colon?.length ?? 0))) as string;
      if (!name.isWellFormed()) {
        throw new LeaseError('not_json', `${what} has half a surrogate pair in a string`);
      }
      if (colon === undefined) continue;
      const names = containers.at(-1)!;
      if (name === '__proto__') {
        throw new LeaseError('forbidden_member', `${what} has a member "__proto__"`);
      }
      if (names.has(name)) {
        throw new LeaseError('duplicate_member', `${what} has the member ${quote(name)} twice`);
      }
      names.add(name);
    }
  }
}

/** Canonical JSON (RFC 8785) of a JSON value: members sorted, numbers and strings as ECMAScript writes them. */
export function canonicalJson(value: unknown): string {
  const names = new Set<string>();
  JSON.stringify(value, (name, member: unknown) => {
    names.add(name);
    return member;
  });
  // Members are written in the order of this list.
  return JSON.stringify(value, [...names].sort());
}

/** Whether a value of `JSON.parse` is an object, and no array. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text from elsewhere as part of a message: of bounded length, on one line. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
