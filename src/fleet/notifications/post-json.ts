import { lookupPublic, refusePrivateLiteral } from './public-address.ts';
import { SendFailure } from './send-failure.ts';

const LONGEST_RETRY_AFTER_MS = 3_600_000;

export interface PostRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
  readonly allowPrivate: boolean;
  /** Time limit to connect, ms. `signal` limits all of it. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface PostAnswer {
  readonly status: number;
  readonly retryAfterMs: number;
}

/**
 * Posts JSON over a connection of its own, and follows no redirects.
 * @throws SendFailure for a private address that is not allowed; errors of undici.
 */
export async function postJson(request: PostRequest): Promise<PostAnswer> {
  const { url, headers, body, allowPrivate, timeoutMs, signal } = request;
  if (!allowPrivate) refusePrivateLiteral(new URL(url).hostname);
  const undici = await import('undici');
  const dispatcher = new undici.Agent({
    connect: { timeout: timeoutMs, ...(!allowPrivate && { lookup: lookupPublic }) },
  });
  try {
    const answer = await undici.request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'service-local', ...headers },
      body,
      dispatcher,
      signal,
    });
    // The body is not needed: a receiver that accepts a notification may answer with any page.
    answer.body.on('error', () => {}).destroy();
    const retryAfterMs = parseRetryAfter(answer.headers['retry-after']);
    return { status: answer.statusCode, retryAfterMs };
  } finally {
    dispatcher.destroy().catch(() => {});
  }
}

/** @throws SendFailure unless the status is one of success. */
export function requireSuccess({ status, retryAfterMs }: PostAnswer): void {
  if (status >= 200 && status < 300) return;
  const isRedirect = status >= 300 && status < 400;
  const hint = isRedirect ? '; redirects are not followed' : '';
  throw new SendFailure(`the receiver answered with status ${status}${hint}`, {
    retryAfterMs,
    refusedStatus: status,
  });
}

/** Ignores dates, which depend on the clock of the receiver. */
function parseRetryAfter(header: unknown): number {
  const seconds = typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) : 0;
  return Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS);
}
