import type { Dispatcher } from 'undici';
import { ServiceError } from '../base/errors.ts';
import { CHECK_SERVER, notAServer, readAnswer, type Exchanged } from './answer.ts';
import { isLoopback } from './insecure-http.ts';

/** A request with its final URL and body. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  /** Empty for a request without a body. */
  readonly body: Uint8Array;
}

type Headers = Readonly<Record<string, string>>;

/** Sends requests to one origin. Fails with `server_unreachable` or `interrupted`. */
interface Transport {
  readonly exchange: (
    request: SentRequest,
    headers: Headers,
    timeout: AbortSignal,
  ) => Promise<Exchanged>;
  /** The body of a response of the type in `accept`, in chunks as they arrive. */
  readonly bytes: (
    request: SentRequest,
    headers: Headers & { readonly accept: string },
  ) => AsyncGenerator<Uint8Array, void, void>;
}

export interface TransportOptions {
  /** Maximum time until the response headers of a stream arrive. */
  readonly timeoutMs: number;
  /** Maximum size of a response, in bytes; streams are not limited. */
  readonly largestAnswer: number;
  readonly signal?: AbortSignal | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Three times the interval at which an event stream sends heartbeats. */
const SILENCE_TIMEOUT_MS = 45_000;

/** Keeps connections open for later requests; open connections do not keep the process alive. */
export async function openTransport(
  origin: string,
  { timeoutMs, largestAnswer, signal: interrupt }: TransportOptions,
): Promise<Transport> {
  const { Agent, EnvHttpProxyAgent, request } = await import('undici');
  const limits = { connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) } };
  const answers = { ...limits, maxResponseSize: largestAnswer };
  // A proxy on another machine would resolve a loopback address to itself.
  const open = (options: typeof limits): Dispatcher =>
    isLoopback(origin) ? new Agent(options) : new EnvHttpProxyAgent(options);
  let dispatcher = open(answers);
  const endless = open(limits);
  const interrupted = (): ServiceError =>
    new ServiceError('interrupted', 'the request was aborted');
  return {
    async exchange({ method, url, body }, headers, timeout) {
      const signal = interrupt ? AbortSignal.any([timeout, interrupt]) : timeout;
      const exchange = async (): Promise<Exchanged> => {
        const rest = { method, headers, dispatcher, signal, body: bodyOrNull(body) };
        const answer = await request(url, rest);
        const text = await answer.body.text();
        return { status: answer.statusCode, headers: answer.headers, text };
      };
      try {
        // undici ignores the signal while it opens a connection.
        return await beforeAbort(signal, exchange());
      } catch (error) {
        if (!signal.aborted) throw unreachable(origin, error);
        dispatcher.destroy().catch(() => {});
        dispatcher = open(answers);
        if (isTimeout(signal.reason)) throw unreachable(origin, signal.reason);
        throw interrupted();
      }
    },
    async *bytes({ method, url, body }, headers) {
      try {
        const answer = await request(url, {
          method,
          body: bodyOrNull(body),
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
          readAnswer({ status, headers: received, text: await streamed.text() }, origin);
          throw notAServer(origin, status);
        }
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        throw interrupt?.aborted ? interrupted() : unreachable(origin, error);
      }
    },
  };
}

function bodyOrNull(body: Uint8Array): Uint8Array | null {
  return body.length > 0 ? body : null;
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
  const what = isUntrusted ? 'this machine does not trust its certificate' : message;
  return new ServiceError('server_unreachable', `${origin}: ${FAULTS[kind] ?? what}`, {
    ...((isUntrusted || NOT_SENT.has(kind)) && { reason: 'not_sent' }),
    remedy: isUntrusted
      ? 'If a certificate authority of your own issued it, set NODE_EXTRA_CA_CERTS to the file of that authority.'
      : CHECK_SERVER,
    cause: thrown,
  });
}

/**
 * Returns the original cause of an error. If several addresses were tried, returns that of the
 * first.
 */
function innermost(error: unknown): Error & { readonly code?: unknown } {
  if (error instanceof AggregateError) return innermost(error.errors[0]);
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'the host name could not be looked up',
  ECONNRESET: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'no answer in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'the stream stopped sending data',
  TimeoutError: 'no answer in time',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not use TLS',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'the response is too large',
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
