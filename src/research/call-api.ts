import { ServiceError, type ErrorCode } from '../base/errors.ts';

/**
 * Sends a request to the API of this project as the caller. Tools, the analyst and MCP clients have no
 * other access, so the API checks their scopes and licenses. Resolves also with error responses;
 * rejects only if there was no response.
 *
 * @param path built with `at`, including the query.
 */
export type Ask = (
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<ApiResponse>;

export interface ApiResponse {
  readonly status: number;
  /** Parsed body, which is a problem document for errors; the plain text of a file. */
  readonly json: unknown;
}

/** Files are cut after this number of characters. */
export const LONGEST_FILE = 4 * 1024 * 1024;

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Builds a path of the API, with encoded values: at`/bots/${bot}/versions`.
 * @throws ServiceError `not_found` for a value that would change the path, such as `..`.
 */
export function at(texts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return texts.reduce((path, text, i) => `${path}${segment(String(values[i - 1]))}${text}`);
}

function segment(value: string): string {
  if (!['', '.', '..'].includes(value) && value.isWellFormed()) return encodeURIComponent(value);
  throw new ServiceError('not_found', `there is nothing called ${JSON.stringify(value)}`);
}

/** Appends a query to the path and omits undefined values. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** @throws ServiceError the API's own error, if it responds with one. */
export async function read<T = unknown>(ask: Ask, path: string, signal?: AbortSignal): Promise<T> {
  return bodyOf(await ask('GET', path, undefined, { signal })) as T;
}

/** Turns the error `not_found` of a reading into undefined. */
export async function ifExists<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** @throws ServiceError the API's own error, if it responds with one. */
export async function send<T = unknown>(
  ask: Ask,
  path: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<T> {
  return bodyOf(await ask('POST', path, body, { signal })) as T;
}

function bodyOf({ status, json }: ApiResponse): unknown {
  if (status >= 200 && status < 300) return json;
  const {
    code = 'failure',
    detail = `the API responded with status ${status}`,
    reason,
    remedy,
    errors = [],
  } = typeof json === 'object' && json !== null ? (json as Partial<ApiProblem>) : {};
  throw new ServiceError(code, detail, {
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    problems: errors.map(({ detail: message, ...rest }) => ({ ...rest, message })),
  });
}

interface ApiProblem {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly reason?: string;
  readonly remedy?: string;
  readonly errors?: readonly {
    readonly code: string;
    readonly detail: string;
    readonly pointer?: string;
    readonly suggestion?: string;
  }[];
}
