import type { reportRunner, RunnerAnswer, RunnerReport as Body } from '../api/production.ts';
import { createClient, type ClientOptions } from './client.ts';

export type { RunnerAnswer };

type Sent<T> = T extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Sent<T[Key]> }
    : T;

/** See `reportRunner`. */
export interface RunnerReport extends Omit<Sent<Body>, 'batch'> {
  readonly batch: {
    /** From 1 for the life of the deployment. */
    readonly number: number;
    /** At most 512; `occurred_at` in milliseconds since the Unix epoch. */
    readonly events: readonly {
      readonly kind: string;
      readonly occurred_at: number;
      readonly payload: object;
    }[];
    /** A `SessionState`. */
    readonly state: object;
    readonly steps: number;
  } | null;
}

export interface RunnerClientOptions extends Pick<ClientOptions, 'url' | 'signal' | 'warn'> {
  /** Asked before each report: the secret may have been replaced. */
  readonly token: () => string;
  /** How long an answer may take: less than the claim lasts. */
  readonly timeoutMs?: number;
}

/** How a runner reaches the server that looks after it. */
export interface RunnerClient {
  /**
   * Reports, and hears what to do.
   * @throws ServiceError `conflict` with the reason `fenced`, and `retryAfterSeconds`, while another
   *   instance has the claim; `not_found` when the deployment has ended; `not_authenticated`; and
   *   those that are `retryable`, as `server_unreachable`.
   */
  report(deployment_id: string, report: RunnerReport): Promise<RunnerAnswer>;
}

const USUAL_TIMEOUT_MS = 10_000;

export function connectAsRunner({
  token,
  timeoutMs = USUAL_TIMEOUT_MS,
  ...options
}: RunnerClientOptions): RunnerClient {
  const client = createClient({ ...options, timeoutMs, authorize: () => `Bearer ${token()}` });
  return {
    report: (deployment_id, body) =>
      client.call<typeof reportRunner>('post', '/deployments/{deployment_id}/runner', {
        params: { deployment_id },
        body: body as Body,
      }),
  };
}
