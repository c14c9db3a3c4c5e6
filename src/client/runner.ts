import type { reportRunner, RunnerAnswer, RunnerReport } from '../api/production.ts';
import { createClient, type ClientOptions } from './client.ts';

export type { RunnerAnswer, RunnerReport };

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
        body,
      }),
  };
}
