import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Identity } from '../identity/context.ts';
import type { CheckedProof, ProvenRequest } from '../identity/device-proof.ts';
import type { Session } from '../identity/sessions.ts';
import type { Caller } from '../identity/tokens.ts';
import type { LicenseGate } from '../gate/gate.ts';
import type { Federation } from '../research/knowledge/federation.ts';
import type { Log } from '../base/log.ts';
import type { ProductionService } from '../fleet/deployments/production-service.ts';
import type { Chat } from '../research/chat.ts';
import type { TaskRunner } from '../fleet/tasks/task-runner.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import type { Metrics } from './metrics.ts';

/** What the slices work with. */
export interface Services {
  readonly identity: Identity;
  /** Under which clients know this server, such as `https://licenses.example`; the first is told. */
  readonly origins: readonly [string, ...string[]];
  /** Whether `X-Forwarded-For` counts if this peer sends it. */
  readonly isProxy: (address: string) => boolean;
  /** Of this server's own license. */
  readonly gate: Pick<LicenseGate, 'check'>;
  readonly tasks: TaskService & Pick<TaskRunner, 'wake' | 'release'>;
  readonly production: ProductionService;
  /** Of the knowledge of other servers. */
  readonly federation: Federation;
  /** With research bots. */
  readonly chat: Chat;
  /** Aborted when the server stops: what would go on for ever ends then. */
  readonly stopping: AbortSignal;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface AppEnv {
  Variables: Callers & {
    /** In the answer's `X-Request-Id`, in problems and in the log. */
    request_id: string;
    /** The bytes of the body; empty where there is none. */
    body: Uint8Array;
    /** In which a page of the console was asked for. */
    session?: Session;
  };
}

export type App = OpenAPIHono<AppEnv>;

/** Who sent the request: one of these is there, by the schemes that the route's `security` names. */
export interface Callers {
  /** For `administrator`. */
  caller?: Caller;
  /** For `device`: to be used up by the handler, with `useDeviceProof`. */
  device?: CheckedProof;
  /** For `new_device`, not checked yet: the handler knows which key must have signed. */
  proof?: { readonly jwt: string; readonly request: ProvenRequest };
  /** For `runner`, not checked yet: the handler knows of which deployment it must be the token. */
  runner_token?: string;
}
