import type { MiddlewareHandler } from 'hono';
import { ServiceError } from '../base/errors.ts';
import type { AppEnv } from './services.ts';

/**
 * Maximum nesting. No document of this API comes near it, and recursive code could exhaust the
 * stack.
 */
const MOST_LEVELS = 100;

/** What `JSON.parse` allows and this API does not, with its place (RFC 6901). */
export interface JsonFault {
  readonly code: 'duplicate_field' | 'nested_too_deep';
  readonly pointer: string;
}

interface Container {
  /** The names so far; `undefined` in an array. */
  readonly names: Set<string> | undefined;
  /** Whether the next string is a name. */
  expectsName: boolean;
  /** Name of the member, or index of the item, in which the scan is. */
  at: string | number;
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The first fault of a JSON text; `undefined` without one. RFC 8259 leaves open what a name given
 * twice means: `JSON.parse` takes the last, and a proxy that checks requests may take the first.
 * In a text that is not JSON it may find nothing; `JSON.parse` refuses that.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const around: Container[] = [];
  let container: Container | undefined;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (end === undefined) return undefined;
      if (container?.expectsName) {
        const name = nameIn(text, i, end);
        if (name === undefined) return undefined;
        container.at = name;
        container.expectsName = false;
        if (container.names!.has(name)) return fault('duplicate_field', around);
        container.names!.add(name);
      }
      i = end;
    } else if (code === COMMA) {
      if (container === undefined) return undefined;
      if (container.names === undefined) container.at = Number(container.at) + 1;
      else container.expectsName = true;
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (around.length === MOST_LEVELS) return fault('nested_too_deep', around);
      const isObject = code === OPEN_OBJECT;
      container = { names: isObject ? new Set() : undefined, expectsName: isObject, at: 0 };
      around.push(container);
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      around.pop();
      container = around.at(-1);
    }
  }
  return undefined;
}

/** Index of the closing quote. */
function endOfString(text: string, start: number): number | undefined {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text.charCodeAt(first - 1) === BACKSLASH) first--;
    if ((end - first) % 2 === 0) return end;
  }
  return undefined;
}

/** Two spellings of a name, one with escapes, are the same name. */
function nameIn(text: string, start: number, end: number): string | undefined {
  const name = text.slice(start + 1, end);
  if (!name.includes('\\')) return name;
  try {
    return JSON.parse(text.slice(start, end + 1)) as string;
  } catch {
    return undefined;
  }
}

function fault(code: JsonFault['code'], around: readonly Container[]): JsonFault {
  const steps = around.map(({ at }) => String(at).replaceAll('~', '~0').replaceAll('/', '~1'));
  return { code, pointer: steps.map((step) => `/${step}`).join('') };
}

/**
 * Refuses a JSON body that readers may understand differently.
 * @throws ServiceError `invalid_request`
 */
export const refuseJsonFaults: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (/json/i.test(c.req.header('content-type') ?? '')) checkJson(await c.req.text());
  await next();
};

/** @throws ServiceError `invalid_request` */
export function checkJson(text: string): void {
  const found = findJsonFault(text);
  if (found === undefined) return;
  const [message, detail] =
    found.code === 'duplicate_field'
      ? ['the body contains a field twice', 'is given twice']
      : ['the body is nested too deeply', `is deeper than ${MOST_LEVELS} levels`];
  throw new ServiceError('invalid_request', message, {
    problems: [{ ...found, message: detail }],
  });
}
