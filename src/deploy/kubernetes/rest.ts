/**
 * Requests to the API server of a cluster. The official client reads the kubeconfig, obtains
 * credentials and handles TLS and proxies. Retries and timeouts are handled here, and secrets are
 * removed from all messages. The client package is loaded on the first connection.
 */
import { retry, type Backoff } from '../../base/backoff.ts';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { ClusterDefinition } from './clusters-file.ts';
import {
  loadClient,
  readConfig,
  type Dispatcher,
  type KubeConfig,
  type RequestContext,
  type ResponseContext,
} from './official-client.ts';

export interface Pace {
  /** Timeout of one attempt. */
  readonly requestMs: number;
  readonly attempts: number;
  readonly backoff: Backoff;
  /** Interval between full lists of watched objects. */
  readonly resyncMs: number;
  /** Interval between reads of the events of pods that do not start. */
  readonly eventsMs: number;
}

export const USUAL_PACE: Pace = {
  requestMs: 10_000,
  attempts: 5,
  backoff: { shortestMs: 250, longestMs: 10_000 },
  resyncMs: 60_000,
  eventsMs: 5000,
};

const LONGEST_RETRY_AFTER_MS = 60_000;
const LONGEST_MESSAGE = 500;

export interface RestRequest {
  readonly method: 'GET' | 'PATCH' | 'DELETE';
  /** Starts with `/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly contentType?: string;
  /** Texts to remove from all error messages. */
  readonly secrets?: readonly string[];
}

/** A final response of the API server, successful or not; temporary failures are retried. */
export interface RestAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The `Status` of a rejected request. Its texts are single lines without secrets. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly {
    readonly reason: string;
    readonly message: string;
    readonly field: string;
  }[];
}

export interface Rest {
  readonly pace: Pace;
  /** Aborted by `close` or by the signal passed to `connectRest`. */
  readonly ended: AbortSignal;
  /** @throws ServiceError `cluster_unavailable` after several attempts, `conflict` */
  ask(request: RestRequest, attempts?: number): Promise<RestAnswer>;
  /** Returns the lines of an endless response, or the response itself if its status is not 200. */
  stream(
    request: RestRequest,
    signal: AbortSignal,
  ): Promise<RestAnswer | { readonly lines: AsyncIterable<string> }>;
  refusal(answer: RestAnswer, secrets?: readonly string[]): Refusal;
  /** Aborts requests in progress. */
  close(): Promise<void>;
}

/** No response, or a temporary failure that is worth another attempt. */
class NoAnswer extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * @param name Name of the cluster in errors.
 * @throws ServiceError `conflict`, reason `not_installed`, `invalid_kubeconfig` or `not_in_cluster`
 */
export function connectRest(
  definition: ClusterDefinition,
  { name, signal, pace }: { name: string; signal: AbortSignal; pace: Pace },
): Rest {
  const client = loadClient();
  const config = readConfig(client, definition);
  const { server } = config.getCurrentCluster()!;
  const { httpApi } = client.createConfiguration();
  const closing = new AbortController();
  const ended = AbortSignal.any([signal, closing.signal]);
  /** Reused until the credentials change; the client would create one for each request. */
  let dispatcher: Dispatcher | undefined;
  const dropDispatcher = (): void => {
    // Closing waits for open streams, so they are not interrupted.
    void dispatcher?.close().catch(() => undefined);
    dispatcher = undefined;
  };
  const secretsSeen = new Set<string>();

  const prepare = async (request: RestRequest): Promise<RequestContext> => {
    const context = new client.RequestContext(
      server.replace(/\/$/, '') + request.path,
      request.method,
    );
    for (const [key, value] of Object.entries(request.query ?? {})) {
      context.setQueryParam(key, value);
    }
    try {
      await config.applySecurityAuthentication(context);
    } catch {
      // The output of a credential plugin can contain secrets.
      throw credentialsFault(name);
    }
    rememberSecrets(secretsSeen, context, config);
    const made = context.getDispatcher();
    dispatcher ??= made;
    if (dispatcher !== undefined) {
      if (made !== dispatcher) void made?.close();
      context.setDispatcher(dispatcher);
    }
    context.setHeaderParam('accept', 'application/json');
    if (request.body !== undefined) {
      context.setHeaderParam('content-type', request.contentType ?? 'application/json');
      context.setBody(JSON.stringify(request.body));
    }
    return context;
  };

  const scrubbed = (text: string, secrets: readonly string[] = []): string => {
    const hidden = [...secretsSeen, ...secrets].reduce(
      (rest, secret) => rest.replaceAll(secret, '…'),
      text,
    );
    const line = printableLine(hidden);
    return line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE)}…` : line;
  };

  const answerOf = async ({ httpStatusCode, body }: ResponseContext): Promise<RestAnswer> => {
    const text = await body.text();
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    if (typeof value === 'object' && value !== null) {
      return { status: httpStatusCode, body: value as RestAnswer['body'] };
    }
    if (httpStatusCode < 300)
      throw new NoAnswer('the response is not from a Kubernetes API server');
    return { status: httpStatusCode, body: {} };
  };

  const once = async (request: RestRequest): Promise<RestAnswer> => {
    const timeout = AbortSignal.timeout(pace.requestMs);
    try {
      const context = await prepare(request);
      context.setSignal(AbortSignal.any([timeout, ended]));
      const response = await httpApi.send(context).toPromise();
      const answer = await answerOf(response);
      if (isPassing(answer, refusal(answer))) {
        const { status } = answer;
        const { message } = refusal(answer, request.secrets);
        const retryAfter = Number(response.headers['retry-after'] ?? 0) * 1000;
        throw new NoAnswer(
          message === '' ? `status ${status}` : `status ${status}: ${message}`,
          Math.min(retryAfter || 0, LONGEST_RETRY_AFTER_MS),
        );
      }
      if (answer.status === 401) dropDispatcher();
      return answer;
    } catch (error) {
      ended.throwIfAborted();
      if (error instanceof NoAnswer || error instanceof ServiceError) throw error;
      dropDispatcher();
      if (timeout.aborted) throw new NoAnswer(`no response within ${pace.requestMs / 1000} s`);
      throw new NoAnswer(scrubbed(networkFault(error), request.secrets));
    }
  };

  const refusal = (answer: RestAnswer, secrets: readonly string[] = []): Refusal => {
    const { reason, message, details } = answer.body as {
      reason?: unknown;
      message?: unknown;
      details?: { causes?: readonly Readonly<Record<string, unknown>>[] };
    };
    const text = (value: unknown): string =>
      typeof value === 'string' ? scrubbed(value, secrets) : '';
    return {
      reason: text(reason),
      message: text(message),
      causes: (Array.isArray(details?.causes) ? details.causes : []).map((cause) => ({
        reason: text(cause['reason']),
        message: text(cause['message']),
        field: text(cause['field']),
      })),
    };
  };

  return {
    pace,
    ended,
    refusal,
    async ask(request, attempts = pace.attempts) {
      try {
        return await retry(() => once(request), {
          ...pace.backoff,
          shouldRetry: (error, count) => error instanceof NoAnswer && count < attempts,
          requestedMs: (error) => (error instanceof NoAnswer ? error.retryAfterMs : 0),
          signal: ended,
        });
      } catch (error) {
        throw error instanceof NoAnswer ? unavailable(name, error) : error;
      }
    },
    async stream(request, until) {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), pace.requestMs);
      try {
        const context = await prepare(request);
        context.setSignal(AbortSignal.any([controller.signal, until, ended]));
        const response = await httpApi.send(context).toPromise();
        if (response.httpStatusCode !== 200) return await answerOf(response);
        const body = response.body.stream();
        return { lines: body === null ? noLines() : linesOf(body) };
      } catch (error) {
        ended.throwIfAborted();
        if (error instanceof ServiceError) throw error;
        dropDispatcher();
        throw unavailable(
          name,
          controller.signal.aborted
            ? new NoAnswer(`no response within ${pace.requestMs / 1000} s`)
            : new NoAnswer(scrubbed(networkFault(error))),
        );
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      closing.abort();
      await dispatcher?.close();
    },
  };
}

/** Whether another attempt can succeed: rate limit, server error, or a race with another writer. */
function isPassing({ status }: RestAnswer, { reason, causes }: Refusal): boolean {
  if (status === 429 || status >= 500) return true;
  return (
    status === 409 &&
    (reason === 'AlreadyExists' || reason === 'Conflict') &&
    causes.every((cause) => cause.reason !== 'FieldManagerConflict')
  );
}

function unavailable(name: string, { message, retryAfterMs }: NoAnswer): ServiceError {
  return new ServiceError('cluster_unavailable', `the cluster ${name} is unavailable: ${message}`, {
    remedy: 'Check that service-local can reach the API server of the cluster, or try again later.',
    ...(retryAfterMs > 0 ? { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) } : {}),
  });
}

export function credentialsFault(name: string): ServiceError {
  return new ServiceError('conflict', `the cluster ${name} rejected the credentials`, {
    reason: 'cluster_credentials',
    remedy: 'Correct the credentials of the user in the kubeconfig.',
  });
}

/** The error of `fetch` is always "fetch failed"; its cause has the details. */
function networkFault(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message : (error as Error).message;
}

function rememberSecrets(seen: Set<string>, context: RequestContext, config: KubeConfig): void {
  const authorization = Object.entries(context.getHeaders()).find(
    ([header]) => header.toLowerCase() === 'authorization',
  )?.[1];
  const user = config.getCurrentUser() ?? {};
  const texts = [authorization?.replace(/^\w+ /, ''), user['token'], user['password']];
  for (const text of texts) {
    if (typeof text === 'string' && text.trim() !== '') seen.add(text.trim());
  }
}

async function* noLines(): AsyncIterable<string> {}

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    yield* lines.filter((line) => line !== '');
  }
}
