import type { Hono } from 'hono';
import type { Problem } from '../../api/http.ts';
import {
  requestTarget,
  type AnswerOf,
  type RequestOf,
  type RequestParts,
  type Route,
} from '../../client/route.ts';
import { errorFromProblem } from '../../client/problem.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Caller } from '../../identity/tokens.ts';
import { asCaller } from '../authentication.ts';
import type { AppEnv } from '../services.ts';

/**
 * Calls the API of this server in process, as an external client would:
 *
 * ```ts
 * import type { listPlans } from '../../api/registry.ts';
 *
 * const { items } = await call<typeof listPlans>('get', '/identity/plans', { query: { limit: 100 } });
 * ```
 *
 * Rejects with the `ServiceError` that the answer describes.
 */
export type Call = <R extends Route>(
  method: R['method'],
  path: R['path'],
  request: RequestOf<R>,
) => Promise<AnswerOf<R>>;

/**
 * @param requestId of the request for the page, which the log also records for each API call.
 * @param client IP address of the browser, by which wrong codes are counted; null if unknown.
 */
export function callAs(
  app: Pick<Hono<AppEnv>, 'request'>,
  caller: Caller,
  requestId: string,
  client: string | null,
): Call {
  return async (method, path, request) => {
    const parts: RequestParts = request;
    const { headers, body } = parts;
    const answer = await app.request(
      requestTarget(path, parts),
      {
        method: method.toUpperCase(),
        headers: toHeaders({
          'x-request-id': requestId,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        }),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      },
      asCaller(caller, client),
    );
    const text = await answer.text();
    const parsed = text === '' ? undefined : (JSON.parse(text) as unknown);
    if (answer.ok) return parsed as never;
    throw errorFromProblem(parsed as Problem, answer.headers.get('retry-after'));
  };
}

/** Reads a file of the API: `file('/tasks/{task_id}/files/{name}', params)`. */
export type ReadFile = (
  path: string,
  params: Readonly<Record<string, string>>,
  query?: Readonly<Record<string, string>>,
  /** Maximum number of lines, from the first; the rest of the file is not read. */
  mostLines?: number,
) => Promise<string>;

/** Reads files that are not JSON; otherwise like `callAs`. */
export function fileAs(
  app: Pick<Hono<AppEnv>, 'request'>,
  caller: Caller,
  requestId: string,
): ReadFile {
  return async (path, params, query = {}, mostLines = Infinity) => {
    const headers = { 'x-request-id': requestId };
    const answer = await app.request(
      requestTarget(path, { params, query }),
      { headers },
      asCaller(caller),
    );
    if (answer.ok && answer.body !== null && mostLines < Infinity)
      return readLines(answer.body, mostLines);
    const text = await answer.text();
    if (answer.ok) return text;
    throw errorFromProblem(JSON.parse(text) as Problem, answer.headers.get('retry-after'));
  };
}

async function readLines(file: ReadableStream<Uint8Array>, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of file) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split('\n');
    if (lines.length > most) return lines.slice(0, most).join('\n');
  }
  return text;
}

/** @throws ServiceError `invalid_request` if a value from a form is not allowed in a header. */
function toHeaders(headers: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new ServiceError('invalid_request', 'a hidden field of the form was changed', {
      remedy: 'Reload the page and try again.',
      cause,
    });
  }
}
