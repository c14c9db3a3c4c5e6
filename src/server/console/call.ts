import type { Hono } from 'hono';
import type { Problem } from '../../api/http.ts';
import type { AnswerOf, RequestOf } from '../../client/client.ts';
import { errorFromProblem } from '../../client/problem.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Caller } from '../../identity/tokens.ts';
import { asCaller } from '../authentication.ts';
import type { AppEnv } from '../services.ts';

/** A definition of `src/api`; only its type is used here. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly request?: object;
  readonly responses: object;
}

/**
 * Asks the API of this very server, as it is asked from outside:
 *
 * ```ts
 * import type { listPlans } from '../../api/registry.ts';
 *
 * const { items } = await call<typeof listPlans>('get', '/identity/plans', { query: { limit: 100 } });
 * ```
 *
 * Rejects with the `ServiceError` of the answer.
 */
export type Call = <R extends Route>(
  method: R['method'],
  path: R['path'],
  request: RequestOf<R>,
) => Promise<AnswerOf<R>>;

interface Parts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * @param requestId of the page for which it is asked, by which the log has both.
 * @param client address of the browser, by which wrong codes are counted.
 */
export function callAs(
  app: Pick<Hono<AppEnv>, 'request'>,
  caller: Caller,
  requestId: string,
  client: string | null,
): Call {
  return async (method, path, request) => {
    const { params = {}, query = {}, headers, body } = request as Parts;
    const filled = fill(path, params);
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const answer = await app.request(
      `${filled}${given.length > 0 ? `?${new URLSearchParams(given)}` : ''}`,
      {
        method: method.toUpperCase(),
        headers: sendable({
          'x-request-id': requestId,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        }),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      },
      asCaller(caller, client),
    );
    const text = await answer.text();
    const told = text === '' ? undefined : (JSON.parse(text) as unknown);
    if (answer.ok) return told as never;
    throw errorFromProblem(told as Problem, answer.headers.get('retry-after'));
  };
}

/** The same for what is no JSON. */
export function fileAs(
  app: Pick<Hono<AppEnv>, 'request'>,
  caller: Caller,
  requestId: string,
): (path: string, params: Readonly<Record<string, string>>) => Promise<string> {
  return async (path, params) => {
    const headers = { 'x-request-id': requestId };
    const answer = await app.request(fill(path, params), { headers }, asCaller(caller));
    const text = await answer.text();
    if (answer.ok) return text;
    throw errorFromProblem(JSON.parse(text) as Problem, answer.headers.get('retry-after'));
  };
}

/** @throws ServiceError `invalid_request` for what no request can have: forms may send anything. */
function sendable(headers: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new ServiceError('invalid_request', 'a hidden field of the form has been changed', {
      remedy: 'Load the page anew, and try again.',
      cause,
    });
  }
}

function fill(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segment(params[name]!));
}

/** @throws ServiceError `not_found` for what a URL would take for another path. */
function segment(value: string): string {
  if (!['', '.', '..'].includes(value)) return encodeURIComponent(value);
  throw new ServiceError('not_found', 'there is nothing at this path');
}
