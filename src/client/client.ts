import { notAServer, readAnswer, type Exchanged } from './answer.ts';
import { isInsecure } from './insecure-http.ts';
import {
  requestTarget,
  type AnswerOf,
  type ItemOf,
  type RequestOf,
  type RequestParts,
  type Route,
} from './route.ts';
import type { ServerSentEvent } from './server-sent-events.ts';
import { openTransport, type SentRequest } from './transport.ts';

/**
 * Returns the value of the `Authorization` header.
 * @param nonce from the server, for a second attempt.
 */
export type Authorize = (request: SentRequest, nonce?: string) => string;

export interface ClientOptions {
  /** Origin of the server. */
  readonly url: string;
  readonly authorize?: Authorize | undefined;
  /** Receives warnings for the user, such as that a token is sent unencrypted. */
  readonly warn?: (text: string) => void;
  /** Called before each request is sent; one call may send two. */
  readonly onRequest?: () => void;
  /** Receives the headers of each response, whatever program sent it. */
  readonly onAnswer?: (headers: Exchanged['headers']) => void;
  /** Maximum time for a call; by default longer than the server's own time limit. */
  readonly timeoutMs?: number | undefined;
  /** Maximum size of a response, in bytes; 64 MiB by default. */
  readonly largestAnswer?: number | undefined;
  /** Aborts pending calls with `interrupted`, or as a timeout if its reason is a `TimeoutError`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Calls the API of a server. Each call names its route by type, so that no schema is loaded:
 *
 * ```ts
 * import type { createPlan, listPlans } from '../../api/plans.ts';
 *
 * const client = createClient({ url, authorize });
 * const plan = await client.call<typeof createPlan>('post', '/identity/plans', { body: {…} });
 * for await (const item of client.items<typeof listPlans>('get', '/identity/plans', {})) …
 * ```
 *
 * Uses NODE_EXTRA_CA_CERTS and, except for loopback addresses, HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
 * Follows no redirect. Rejects with the `ServiceError` in the response, or `server_unreachable`.
 */
export interface Client {
  readonly call: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => Promise<AnswerOf<R>>;
  /** Like `call`, for routes that return an `ETag`. */
  readonly callForTag: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => Promise<{ readonly answer: AnswerOf<R>; readonly etag: string }>;
  /** Returns all items of a list, requesting page after page. */
  readonly items: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => AsyncGenerator<ItemOf<R>, void, void>;
  /** Server-sent events until the server ends the stream. A request with a body is a POST. */
  readonly stream: <R extends Route>(
    path: R['path'],
    request: RequestOf<R>,
  ) => AsyncGenerator<ServerSentEvent, void, void>;
  /** The chunks of a file. @param type media type; `application/octet-stream` by default. */
  readonly file: <R extends Route>(
    path: R['path'],
    request: RequestOf<R>,
    type?: string,
  ) => AsyncGenerator<Uint8Array, void, void>;
}

/** The server's own time limit is shorter and gives a better error. */
export const ANSWER_TIMEOUT_MS = 40_000;
const LARGEST_PAGE = 1000;
const LARGEST_ANSWER = 64 * 1024 * 1024;

export function createClient({
  url,
  authorize,
  warn,
  onRequest,
  onAnswer,
  timeoutMs = ANSWER_TIMEOUT_MS,
  largestAnswer = LARGEST_ANSWER,
  signal,
}: ClientOptions): Client {
  const { origin } = new URL(url);
  let isWarned = false;
  let opened: ReturnType<typeof openTransport> | undefined;
  const open = (): ReturnType<typeof openTransport> => {
    if (!isWarned && isInsecure(origin)) {
      isWarned = true;
      warn?.(
        `${origin} uses plain http: others on the network can read what is sent, secrets included`,
      );
    }
    return (opened ??= openTransport(origin, { timeoutMs, largestAnswer, signal }));
  };
  const requestOf = (method: string, path: string, parts: RequestParts): SentRequest => ({
    method: method.toUpperCase(),
    url: `${origin}${requestTarget(path, parts)}`,
    body: parts.body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(parts.body)),
  });
  const headersOf = (
    request: SentRequest,
    { headers }: RequestParts,
    accept: string,
    nonce?: string,
  ) => ({
    ...(request.body.length > 0 && { 'content-type': 'application/json' }),
    ...headers,
    ...(authorize && { authorization: authorize(request, nonce) }),
    accept,
  });
  const send = async (method: string, path: string, parts: RequestParts) => {
    const request = requestOf(method, path, parts);
    const transport = await open();
    // One time limit for both requests, so that a nonce cannot double it.
    const timeout = AbortSignal.timeout(timeoutMs);
    const attempt = async (nonce?: string): Promise<Exchanged> => {
      onRequest?.();
      const headers = headersOf(request, parts, 'application/json', nonce);
      const answer = await transport.exchange(request, headers, timeout);
      onAnswer?.(answer.headers);
      return answer;
    };
    const first = await attempt();
    const nonce = first.status === 401 && authorize ? first.headers['service-nonce'] : undefined;
    const answer = typeof nonce === 'string' ? await attempt(nonce) : first;
    return { answer: readAnswer(answer, origin), headers: answer.headers };
  };
  const bytes = async function* (
    path: string,
    parts: RequestParts,
    accept: string,
  ): AsyncGenerator<Uint8Array, void, void> {
    const request = requestOf(parts.body === undefined ? 'get' : 'post', path, parts);
    const headers = headersOf(request, parts, accept);
    const transport = await open();
    yield* transport.bytes(request, headers);
  };
  return {
    async call(method, path, request) {
      return (await send(method, path, request)).answer as never;
    },
    async callForTag(method, path, request) {
      const { answer, headers } = await send(method, path, request);
      if (typeof headers['etag'] !== 'string') throw notAServer(origin);
      return { answer: answer as never, etag: headers['etag'] };
    },
    async *items(method, path, request) {
      let cursor: string | undefined;
      do {
        const parts: RequestParts = request;
        const query = {
          limit: LARGEST_PAGE,
          ...parts.query,
          ...(cursor !== undefined && { cursor }),
        };
        const { answer: page } = await send(method, path, { ...parts, query });
        // A repeated cursor would return the same page without end.
        if (!isPage(page) || page.next_cursor === cursor) throw notAServer(origin);
        yield* page.items;
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
    },
    async *stream(path, request) {
      const { serverSentEvents } = await import('./server-sent-events.ts');
      yield* serverSentEvents(bytes(path, request, 'text/event-stream'));
    },
    file: (path, request, type = 'application/octet-stream') => bytes(path, request, type),
  };
}

function isPage(body: unknown): body is { items: never[]; next_cursor: string | null } {
  if (typeof body !== 'object' || body === null) return false;
  const { items, next_cursor: next } = body as Readonly<Record<string, unknown>>;
  return Array.isArray(items) && (next === null || typeof next === 'string');
}
