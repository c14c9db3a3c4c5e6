import type { z } from 'zod';
import type { Problem } from '../api/http.ts';
import type { Dispatcher } from 'undici';
import { ServiceError } from '../base/errors.ts';
import { printableLine } from '../base/printable.ts';
import { errorFromProblem, isProblem } from './problem.ts';
import type { ServerSentEvent } from './server-sent-events.ts';

/** A definition of `src/api`; only its type is used here. */
interface Route {
  readonly method: string;
  readonly path: string;
  readonly request?: object;
  readonly responses: object;
}

type Part<R, Name extends string, As extends string> = R extends {
  readonly request: { readonly [N in Name]: infer S extends z.ZodType };
}
  ? { readonly [A in As]: z.input<S> }
  : unknown;

type JsonBody<R> = R extends {
  readonly request: {
    readonly body: {
      readonly content: { readonly 'application/json': { schema: infer S extends z.ZodType } };
    };
  };
}
  ? { readonly body: z.input<S> }
  : unknown;

/** What a request is made of: what its route defines of `params`, `query`, `headers` and `body`. */
export type RequestOf<R> = Part<R, 'params', 'params'> &
  Partial<Part<R, 'query', 'query'>> &
  Part<R, 'headers', 'headers'> &
  JsonBody<R>;

/** With 207, not all that was asked for was done: the body says what. */
type Success = 200 | 201 | 202 | 207;

/** The body of a success; undefined where it has none. */
export type AnswerOf<R> = R extends { readonly responses: { readonly 204: unknown } }
  ? undefined
  : R extends { readonly responses: infer A }
    ? {
        [Status in keyof A & Success]: A[Status] extends {
          readonly content: { readonly 'application/json': { schema: infer S extends z.ZodType } };
        }
          ? z.output<S>
          : never;
      }[keyof A & Success]
    : never;

/** The items of a list, one page of which a route answers. */
type ItemOf<R> = AnswerOf<R> extends { readonly items: readonly (infer T)[] } ? T : never;

/** A request as it goes out, to be signed. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly body: Uint8Array;
}

/**
 * What to send as `Authorization`. @param nonce from the server, for a second attempt.
 */
export type Authorize = (request: SentRequest, nonce?: string) => string;

export interface ClientOptions {
  /** Origin of the server. */
  readonly url: string;
  readonly authorize?: Authorize | undefined;
  /** Told what the person should know, such as that a token goes over the network unencrypted. */
  readonly warn?: (text: string) => void;
  /** Called before each request goes out; one call may send two. */
  readonly onRequest?: () => void;
  /** Told the headers of each answer, whoever it is from. */
  readonly onAnswer?: (headers: Exchanged['headers']) => void;
  /** How long a call may take for its answer. By default longer than the server takes to give up. */
  readonly timeoutMs?: number | undefined;
  /** How many bytes an answer may have. */
  readonly largestAnswer?: number | undefined;
  /** Breaks off what is waited for, with `interrupted`, or as if there came no answer by its time-out. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Talks to a server. Each call names its route by type, so that no schema is loaded:
 *
 * ```ts
 * import type { createPlan, listPlans } from '../../api/plans.ts';
 *
 * const client = createClient({ url, authorize });
 * const plan = await client.call<typeof createPlan>('post', '/identity/plans', { body: {…} });
 * for await (const one of client.items<typeof listPlans>('get', '/identity/plans', {})) …
 * ```
 *
 * It honours NODE_EXTRA_CA_CERTS and, but for this very machine, HTTP_PROXY, HTTPS_PROXY and
 * NO_PROXY. It follows no redirect, and rejects with a `ServiceError`: that of the server's answer,
 * or `server_unreachable`.
 */
export interface Client {
  readonly call: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => Promise<AnswerOf<R>>;
  /** The same with the ETag of the answer, which the server must have sent. */
  readonly callForTag: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => Promise<{ readonly answer: AnswerOf<R>; readonly etag: string }>;
  /** All items of a list, page after page. */
  readonly items: <R extends Route>(
    method: R['method'],
    path: R['path'],
    request: RequestOf<R>,
  ) => AsyncGenerator<ItemOf<R>, void, void>;
  /** What a route streams, until the server ends it; one with a body is posted. */
  readonly stream: <R extends Route>(
    path: R['path'],
    request: RequestOf<R>,
  ) => AsyncGenerator<ServerSentEvent, void, void>;
  /** A file that a route answers, as it comes. @param type by default one to be kept, and not shown. */
  readonly file: <R extends Route>(
    path: R['path'],
    request: RequestOf<R>,
    type?: string,
  ) => AsyncGenerator<Uint8Array, void, void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The server gives up before, and says so. */
export const ANSWER_TIMEOUT_MS = 40_000;
const LARGEST_PAGE = 1000;
const LARGEST_ANSWER = 64 * 1024 * 1024;
/** A stream of events tells three times as often that it is still there. */
const SILENCE_TIMEOUT_MS = 45_000;
/** What a server says of an error is shown, logged and kept. */
const LONGEST_TEXT = 1000;

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
  let opened: Promise<Transport> | undefined;
  const open = (): Promise<Transport> => {
    if (!isWarned && isExposed(origin)) {
      isWarned = true;
      warn?.(`${origin} is plain http: whoever is on the way reads what is sent, secrets included`);
    }
    return (opened ??= openTransport(origin, { timeoutMs, largestAnswer, signal }));
  };
  const targetOf = (path: string, { params, query }: Parts): string =>
    `${origin}${filled(path, params)}${queryOf(query)}`;
  const send = async (method: string, path: string, parts: Parts): Promise<Received> => {
    const target = targetOf(path, parts);
    const transport = await open();
    // For both of two requests: who is asked decides whether there is a second.
    const timeout = AbortSignal.timeout(timeoutMs);
    const body = parts.body === undefined ? undefined : Buffer.from(JSON.stringify(parts.body));
    const sent = { method: method.toUpperCase(), url: target, body: body ?? new Uint8Array() };
    const headers = {
      accept: 'application/json',
      ...(body && { 'content-type': 'application/json' }),
      ...parts.headers,
    };
    const attempt = async (nonce?: string): Promise<Exchanged> => {
      onRequest?.();
      const all = { ...headers, ...authorization(authorize?.(sent, nonce)) };
      const answer = await transport.exchange(sent, body, all, timeout);
      onAnswer?.(answer.headers);
      return answer;
    };
    const first = await attempt();
    const nonce = first.status === 401 && authorize ? first.headers['service-nonce'] : undefined;
    const answer = typeof nonce === 'string' ? await attempt(nonce) : first;
    return { answer: read(answer, origin), headers: answer.headers };
  };
  const bytes = async function* (
    path: string,
    parts: Parts,
    accept: string,
  ): AsyncGenerator<Uint8Array, void, void> {
    const body = parts.body === undefined ? undefined : Buffer.from(JSON.stringify(parts.body));
    const method = body === undefined ? 'GET' : 'POST';
    const sent = { method, url: targetOf(path, parts), body: body ?? new Uint8Array() };
    const headers = {
      ...parts.headers,
      ...authorization(authorize?.(sent)),
      ...(body && { 'content-type': 'application/json' }),
      accept,
    };
    const transport = await open();
    yield* transport.bytes(sent, body, headers);
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
        const parts = request as Parts;
        const query = {
          limit: LARGEST_PAGE,
          ...parts.query,
          ...(cursor !== undefined && { cursor }),
        };
        const { answer: page } = await send(method, path, { ...parts, query });
        // The same part once more would be the next one for ever.
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

interface Parts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Transport {
  readonly exchange: (
    request: SentRequest,
    body: Buffer | undefined,
    headers: Readonly<Record<string, string>>,
    timeout: AbortSignal,
  ) => Promise<Exchanged>;
  /** The body of an answer that is of the type that is asked for. */
  readonly bytes: (
    request: SentRequest,
    body: Buffer | undefined,
    headers: { readonly accept: string } & Readonly<Record<string, string>>,
  ) => AsyncGenerator<Uint8Array, void, void>;
}

interface Received {
  readonly answer: unknown;
  readonly headers: Exchanged['headers'];
}

interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function authorization(value: string | undefined): { readonly authorization?: string } {
  return value === undefined ? {} : { authorization: value };
}

/** @throws ServiceError `not_found` */
function filled(path: string, params: Parts['params'] = {}): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]!;
    // Of these, however they are encoded, a URL makes another path.
    if (!['', '.', '..'].includes(value)) return encodeURIComponent(value);
    throw new ServiceError(
      'not_found',
      `there is nothing with the ${name} ${JSON.stringify(value)}`,
    );
  });
}

function queryOf(query: Parts['query'] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

/** Keeps connections for the next request; they do not keep the process. */
async function openTransport(
  origin: string,
  { timeoutMs, largestAnswer, signal: interrupt }: TransportOptions,
): Promise<Transport> {
  const { Agent, EnvHttpProxyAgent, request } = await import('undici');
  const limits = { connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) } };
  const answers = { ...limits, maxResponseSize: largestAnswer };
  // A proxy is another machine: what it would call loopback is itself.
  const open = (options: typeof limits): Dispatcher =>
    isLoopback(origin) ? new Agent(options) : new EnvHttpProxyAgent(options);
  let dispatcher = open(answers);
  const endless = open(limits);
  const interrupted = (): ServiceError => new ServiceError('interrupted', 'it was told to stop');
  return {
    async exchange({ method, url }, body, headers, timeout) {
      const signal = interrupt ? AbortSignal.any([timeout, interrupt]) : timeout;
      const exchange = async (): Promise<Exchanged> => {
        const rest = { method, headers, dispatcher, signal, ...(body && { body }) };
        const answer = await request(url, rest);
        const text = await answer.body.text();
        return { status: answer.statusCode, headers: answer.headers, text };
      };
      try {
        // While a connection is being made, undici heeds no signal.
        return await beforeAbort(signal, exchange());
      } catch (error) {
        if (!signal.aborted) throw unreachable(origin, error);
        dispatcher.destroy().catch(() => {});
        dispatcher = open(answers);
        if (isTimeout(signal.reason)) throw unreachable(origin, signal.reason);
        throw interrupted();
      }
    },
    async *bytes({ method, url }, body, headers) {
      try {
        const answer = await request(url, {
          method,
          ...(body && { body }),
          headers,
          dispatcher: endless,
          headersTimeout: timeoutMs,
          bodyTimeout: SILENCE_TIMEOUT_MS,
          signal: interrupt ?? null,
        });
        const { statusCode: status, headers: received, body: streamed } = answer;
        if (received['service-name'] !== 'service-local') throw notAServer(origin, status);
        if (status === 200 && String(received['content-type']).startsWith(headers.accept)) {
          for await (const chunk of streamed) yield chunk as Uint8Array;
        } else {
          read({ status, headers: received, text: await streamed.text() }, origin);
          throw notAServer(origin, status);
        }
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        throw interrupt?.aborted ? interrupted() : unreachable(origin, error);
      }
    },
  };
}

interface TransportOptions extends Pick<ClientOptions, 'signal'> {
  readonly timeoutMs: number;
  readonly largestAnswer: number;
}

async function beforeAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}

function unreachable(origin: string, thrown: unknown): ServiceError {
  const { name, code, message } = innermost(thrown);
  const kind = typeof code === 'string' ? code : name;
  const isUntrusted = UNTRUSTED.has(kind);
  const what = isUntrusted ? 'its certificate is of nobody who is trusted here' : message;
  return new ServiceError('server_unreachable', `${origin}: ${WHAT[kind] ?? what}`, {
    ...((isUntrusted || NOT_SENT.has(kind)) && { reason: 'not_sent' }),
    remedy: isUntrusted ? TRUST : LOOK,
    cause: thrown,
  });
}

/** What is wrapped most deeply says why; of several addresses that were tried, the first. */
function innermost(error: unknown): Error & { readonly code?: unknown } {
  if (error instanceof AggregateError) return innermost(error.errors[0]);
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

const WHAT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  ECONNRESET: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  UND_ERR_HEADERS_TIMEOUT: 'it does not answer',
  UND_ERR_BODY_TIMEOUT: 'it has gone silent',
  TimeoutError: 'it does not answer',
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers there does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'what answers there does not speak TLS',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'its answer does not end',
};

/** Error codes that mean that no connection existed, so the request was not sent. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]);

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const LOOK = 'See that the server runs and that --url (SERVICE_LOCAL_SERVER_URL) is its origin.';
const TRUST =
  'If its certificate is of an authority of your own, name that in NODE_EXTRA_CA_CERTS.';

/** @throws ServiceError for all but a success */
function read(answer: Exchanged, origin: string): unknown {
  const { status, headers, text } = answer;
  if (headers['service-name'] !== 'service-local') throw notAServer(origin, status);
  if (status === 204) return undefined;
  const body = parsed(text);
  if (status >= 200 && status < 300 && body !== undefined) return body;
  throw isProblem(body) ? errorOf(body, answer) : notAServer(origin, status);
}

function notAServer(origin: string, status?: number): ServiceError {
  const what = status === undefined ? 'what answers' : `what answers (status ${status})`;
  return new ServiceError('server_unreachable', `${origin}: ${what} is no service-local server`, {
    remedy: LOOK,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isPage(body: unknown): body is { items: never[]; next_cursor: string | null } {
  if (typeof body !== 'object' || body === null) return false;
  const { items, next_cursor: next } = body as Readonly<Record<string, unknown>>;
  return Array.isArray(items) && (next === null || typeof next === 'string');
}

/** The texts are bounded and printable, because they are shown, logged and stored. */
function errorOf(problem: Problem, { status, headers }: Exchanged): ServiceError {
  const { detail, reason, remedy, request_id: request } = problem;
  return errorFromProblem(
    {
      ...problem,
      detail: shortened(status >= 500 ? `${detail} (request_id ${request})` : detail),
      reason: reason && shortened(reason),
      remedy: remedy && shortened(remedy),
    },
    headers['retry-after'],
  );
}

function shortened(text: string): string {
  const line = printableLine(text);
  return line.length > LONGEST_TEXT ? `${line.slice(0, LONGEST_TEXT)}…` : line;
}

/**
 * Refuses plain http to another host, where anyone on the way can read and change what is sent.
 * @throws ServiceError `usage`, reason `insecure_http`
 */
export function refuseExposed(url: string, insecure: boolean | undefined): void {
  const { origin } = new URL(url);
  if (insecure === true || !isExposed(origin)) return;
  throw new ServiceError(
    'usage',
    `${origin} is plain http: others on the network can read and change what is sent there`,
    {
      reason: 'insecure_http',
      remedy:
        'Use the https address of the server. On a network that you trust, allow it with --insecure, or with `server_insecure: true` in config.yaml.',
    },
  );
}

/** Whether what is sent there can be read on its way. */
function isExposed(origin: string): boolean {
  return origin.startsWith('http:') && !isLoopback(origin);
}

function isLoopback(origin: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(origin).hostname);
}
