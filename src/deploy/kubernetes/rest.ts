/**
 * Requests to the API server of a cluster. The official client, which is loaded when the first
 * cluster is connected to, reads the kubeconfig, gets credentials and does TLS and proxies; what is
 * asked, how often and for how long is decided here, and nothing it knows is told but what the API
 * server says.
 */
import { createRequire } from 'node:module';
import { retry, type Backoff } from '../../base/backoff.ts';
import { ServiceError, isSystemError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { ClusterDefinition } from './clusters-file.ts';

/** How long a cluster is waited for. */
export interface Pace {
  /** For one answer. */
  readonly requestMs: number;
  readonly attempts: number;
  readonly backoff: Backoff;
  /** What is watched is listed anew after so long, whatever the watch has said. */
  readonly resyncMs: number;
  /** Events of a pod that does not start are looked for so often. */
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
  /** From `/` on. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly contentType?: string;
  /** Texts that no error may have, whoever says them. */
  readonly secrets?: readonly string[];
}

/** What the API server answered, other than that it cannot answer now. */
export interface RestAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** `Status` of the API, for what was refused; without secrets, in one line. */
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
  /** Aborted once it is closed, or what it was to last for is over. */
  readonly ended: AbortSignal;
  /** @throws ServiceError `cluster_unavailable` after several attempts, `conflict` */
  ask(request: RestRequest, attempts?: number): Promise<RestAnswer>;
  /** The lines of an answer without an end; other answers than 200 as `ask` has them. */
  stream(
    request: RestRequest,
    signal: AbortSignal,
  ): Promise<RestAnswer | { readonly lines: AsyncIterable<string> }>;
  refusal(answer: RestAnswer, secrets?: readonly string[]): Refusal;
  /** Ends what is under way, too. */
  close(): Promise<void>;
}

/** What is used of the official client. */
interface Client {
  readonly KubeConfig: new () => KubeConfig;
  readonly RequestContext: new (url: string, method: string) => RequestContext;
  createConfiguration(): {
    readonly httpApi: {
      send(context: RequestContext): { toPromise(): Promise<ResponseContext> };
    };
  };
}

interface KubeConfig {
  loadFromFile(file: string): void;
  loadFromCluster(): void;
  setCurrentContext(name: string): void;
  getContextObject(name: string): unknown;
  getCurrentCluster(): { readonly server: string } | null;
  getCurrentUser(): Readonly<Record<string, unknown>> | null;
  applySecurityAuthentication(context: RequestContext): Promise<void>;
}

interface Dispatcher {
  close(): Promise<void>;
}

interface RequestContext {
  setQueryParam(name: string, value: string): void;
  setHeaderParam(name: string, value: string): void;
  getHeaders(): Readonly<Record<string, string>>;
  setBody(body: string): void;
  setSignal(signal: AbortSignal): void;
  getDispatcher(): Dispatcher | undefined;
  setDispatcher(dispatcher: Dispatcher): void;
}

interface ResponseContext {
  readonly httpStatusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { text(): Promise<string>; stream(): AsyncIterable<Uint8Array> | null };
}

/** It was not answered, or by nobody who can answer; worth another attempt. */
class NoAnswer extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * @param name what errors call the cluster.
 * @throws ServiceError `conflict`, the reason `not_installed`, `invalid_kubeconfig` or `not_in_cluster`
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
  /** Of the credentials as they were then; the client would make one for each request. */
  let dispatcher: Dispatcher | undefined;
  const forget = (): void => {
    // Streams that use it go on until they end.
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
      // What a credential plugin prints is not to be repeated.
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
    if (httpStatusCode < 300) throw new NoAnswer('what answers is no API server');
    return { status: httpStatusCode, body: {} };
  };

  /** One attempt. */
  const once = async (request: RestRequest): Promise<RestAnswer> => {
    const timeout = AbortSignal.timeout(pace.requestMs);
    try {
      const context = await prepare(request);
      context.setSignal(AbortSignal.any([timeout, ended]));
      const response = await httpApi.send(context).toPromise();
      const answer = await answerOf(response);
      if (isPassing(answer, refusal(answer))) {
        const { status } = answer;
        const said = refusal(answer, request.secrets).message;
        const retryAfter = Number(response.headers['retry-after'] ?? 0) * 1000;
        throw new NoAnswer(
          said === '' ? `it answered ${status}` : `it answered ${status}: ${said}`,
          Math.min(retryAfter || 0, LONGEST_RETRY_AFTER_MS),
        );
      }
      if (answer.status === 401) forget();
      return answer;
    } catch (error) {
      ended.throwIfAborted();
      if (error instanceof NoAnswer || error instanceof ServiceError) throw error;
      forget();
      if (timeout.aborted) throw new NoAnswer(`no answer within ${pace.requestMs / 1000} s`);
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
        forget();
        throw unavailable(
          name,
          controller.signal.aborted
            ? new NoAnswer(`no answer within ${pace.requestMs / 1000} s`)
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

/** Too many requests, a fault of the server, or a race that another attempt decides. */
function isPassing({ status }: RestAnswer, { reason, causes }: Refusal): boolean {
  if (status === 429 || status >= 500) return true;
  return (
    status === 409 &&
    (reason === 'AlreadyExists' || reason === 'Conflict') &&
    causes.every((cause) => cause.reason !== 'FieldManagerConflict')
  );
}

function unavailable(name: string, { message, retryAfterMs }: NoAnswer): ServiceError {
  return new ServiceError(
    'cluster_unavailable',
    `the cluster ${name} does not answer: ${message}`,
    {
      remedy: 'Try again later, or see whether the server can reach the cluster.',
      ...(retryAfterMs > 0 ? { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) } : {}),
    },
  );
}

export function credentialsFault(name: string): ServiceError {
  return new ServiceError('conflict', `the cluster ${name} does not take the credentials`, {
    reason: 'cluster_credentials',
    remedy: 'Correct the user of its kubeconfig.',
  });
}

/** `fetch failed` says nothing, its cause says it all. */
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

function readConfig(
  client: Client,
  { kubeconfig, context, in_cluster }: ClusterDefinition,
): KubeConfig {
  const config = new client.KubeConfig();
  if (in_cluster === true) {
    if (process.env['KUBERNETES_SERVICE_HOST'] === undefined) {
      throw new ServiceError('conflict', 'the server does not run in a cluster', {
        reason: 'not_in_cluster',
        remedy: 'Name a kubeconfig in clusters_file instead of in_cluster.',
      });
    }
    config.loadFromCluster();
    return config;
  }
  const invalid = (message: string): ServiceError =>
    new ServiceError('conflict', `the kubeconfig ${kubeconfig!} ${message}`, {
      reason: 'invalid_kubeconfig',
      remedy: 'Correct it, or name another in clusters_file.',
    });
  try {
    config.loadFromFile(kubeconfig!);
  } catch (error) {
    // What the parser says has a part of the file in it.
    throw invalid(isSystemError(error) ? `cannot be read: ${error.code!}` : 'is no kubeconfig');
  }
  if (context !== undefined) {
    if (!config.getContextObject(context)) {
      throw invalid(`has no context ${JSON.stringify(context)}`);
    }
    config.setCurrentContext(context);
  }
  if (!config.getCurrentCluster()?.server) throw invalid('names no cluster');
  return config;
}

function loadClient(): Client {
  try {
    return createRequire(import.meta.url)('@kubernetes/client-node') as Client;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', 'deploying needs the package @kubernetes/client-node', {
      reason: 'not_installed',
      remedy: 'Install it beside service-local with `npm install @kubernetes/client-node`.',
    });
  }
}
