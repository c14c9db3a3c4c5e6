import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Identity } from '../identity/context.ts';
import type { CheckedProof, ProvenRequest } from '../identity/device-proof.ts';
import type { Session } from '../identity/login-sessions.ts';
import type { Caller } from '../identity/tokens.ts';
import type { LicenseGate } from '../gate/gate.ts';
import type { Federation } from '../research/knowledge/federation.ts';
import type { Log } from '../base/log.ts';
import type { Notifier } from '../fleet/notifications/notifier.ts';
import type { ProductionService } from '../fleet/deployments/production-service.ts';
import type { Chat } from '../research/chat.ts';
import type { TaskRunner } from '../fleet/tasks/task-runner.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import type { Metrics } from './metrics.ts';

export interface Services {
  readonly identity: Identity;
  /** Origins under which clients reach this server, such as `https://licenses.example`; the first is public. */
  readonly origins: readonly [string, ...string[]];
  /** Whether an address is a trusted proxy, whose `X-Forwarded-For` is used. */
  readonly isProxy: (address: string) => boolean;
  /** Gate of this server's own license. */
  readonly gate: Pick<LicenseGate, 'check'>;
  readonly tasks: TaskService & Pick<TaskRunner, 'wake' | 'release'>;
  readonly production: ProductionService;
  readonly federation: Federation;
  readonly notifier: Pick<Notifier, 'channels' | 'test'>;
  readonly chat: Chat;
  /** Aborted when the server stops, to end streams. */
  readonly stopping: AbortSignal;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface AppEnv {
  Variables: Callers & {
    /** Sent as `X-Request-Id`, and included in problem documents and the log. */
    request_id: string;
    /** Bytes of the body; empty without one. */
    body: Uint8Array;
    session?: Session;
  };
}

export type App = OpenAPIHono<AppEnv>;

/** Caller of the request; one of these is set, depending on the route's `security`. */
export interface Callers {
  /** For `administrator`. */
  caller?: Caller;
  /** For `device`; the handler marks it as used with `useDeviceProof`. */
  device?: CheckedProof;
  /** For `new_device`, not checked yet: only the handler knows the expected key. */
  proof?: { readonly jwt: string; readonly request: ProvenRequest };
  /** For `runner`; `admitRunner` checks that it belongs to the deployment. */
  runner_token?: string;
}
