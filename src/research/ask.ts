import { ServiceError, type ErrorCode } from '../base/errors.ts';

/**
 * The one way in which tools, the analyst and assistants of others reach anything: a request to the
 * API of this project, as the caller. Scopes, licenses, checks and figures are those of the API.
 * Resolves also for refusals; rejects only where nobody answered.
 *
 * @param path with its query, made by `at`.
 * @param body sent as JSON.
 */
export type Ask = (
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<Asked>;

export interface Asked {
  readonly status: number;
  /** What the API answered: parsed, a problem where it refused; of a file, its text. */
  readonly json: unknown;
}

/** Of a file, no more characters than these are given. */
export const LONGEST_FILE = 4 * 1024 * 1024;

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * A path of the API: at`/bots/${bot}/versions`, with what stands in it encoded.
 * @throws ServiceError `not_found` for what would make another path of it.
 */
export function at(texts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return texts.reduce((path, text, i) => `${path}${segment(String(values[i - 1]))}${text}`);
}

function segment(value: string): string {
  if (!['', '.', '..'].includes(value) && value.isWellFormed()) return encodeURIComponent(value);
  throw new ServiceError('not_found', `there is nothing called ${JSON.stringify(value)}`);
}

/** The path with a query; what is undefined is left out. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** Reads from the API. @throws ServiceError that of the API, where it refuses. */
export async function read<T = unknown>(ask: Ask, path: string, signal?: AbortSignal): Promise<T> {
  return answered(await ask('GET', path, undefined, { signal })) as T;
}

/** Sends to the API. @throws ServiceError that of the API, where it refuses. */
export async function send<T = unknown>(
  ask: Ask,
  path: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<T> {
  return answered(await ask('POST', path, body, { signal })) as T;
}

function answered({ status, json }: Asked): unknown {
  if (status >= 200 && status < 300) return json;
  const {
    code = 'failure',
    detail = `it answered ${status}`,
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
