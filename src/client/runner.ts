import { packageVersion } from '../base/package-version.ts';
import {
  RUNNER_PROTOCOL,
  RUNNER_PROTOCOL_HEADER,
  RUNNER_VERSION_HEADER,
} from '../base/runner-protocol.ts';
import { currentTraceparent } from '../base/tracing.ts';
import type { reportRunner, RunnerAnswer, RunnerReport as Body } from '../api/runners.ts';
import { createClient, type ClientOptions } from './client.ts';

export type { RunnerAnswer };

type Sent<T> = T extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Sent<T[Key]> }
    : T;

/** Body of `reportRunner`. */
export interface RunnerReport extends Omit<Sent<Body>, 'batch'> {
  readonly batch: {
    /** Counts from 1 over the life of the deployment. */
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
  /** Read before each report, because the mounted secret may have been replaced. */
  readonly token: () => string;
  /** Maximum time for one report, ms; must be shorter than the runner's claim. */
  readonly timeoutMs?: number;
}

/** Connection from a runner to the server that supervises it. */
export interface RunnerClient {
  /**
   * Sends a report and returns the server's instructions.
   * @throws ServiceError `conflict` with the reason `fenced`, and `retryAfterSeconds`, while another
   *   instance has the claim; `incompatible_version`; `not_found` when the deployment has ended; `not_authenticated`; and
   *   retryable errors such as `server_unreachable`.
   */
  report(deployment_id: string, report: RunnerReport): Promise<RunnerAnswer>;
}

const USUAL_TIMEOUT_MS = 10_000;

export function connectAsRunner({
  token,
  timeoutMs = USUAL_TIMEOUT_MS,
  ...options
}: RunnerClientOptions): RunnerClient {
  const headers = {
    [RUNNER_VERSION_HEADER]: packageVersion(),
    [RUNNER_PROTOCOL_HEADER]: RUNNER_PROTOCOL.newest,
  };
  const client = createClient({ ...options, timeoutMs, authorize: () => `Bearer ${token()}` });
  return {
    report(deployment_id, body) {
      const traceparent = currentTraceparent();
      return client.call<typeof reportRunner>('post', '/deployments/{deployment_id}/runner', {
        params: { deployment_id },
        headers: { ...headers, ...(traceparent !== null && { traceparent }) },
        body: body as Body,
      });
    },
  };
}
