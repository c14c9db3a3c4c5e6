import type { HeldLease } from '../src/gate/license.ts';
import type { LeaseAnswer } from '../src/api/leases.ts';
import type { ServiceError } from '../src/errors.ts';
import type { LicenseFiles } from '../src/license-files.ts';
import type { AttemptReason, DaemonState } from './state.ts';

/** A machine that has leases renewed, and what it can see of the world. */
export interface Machine {
  readonly files: LicenseFiles;
  /** Origin of the server. */
  readonly url: string;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Seconds since the machine was started, those asleep included: `os.uptime`. */
  readonly uptime: () => number;
  /** From 0 to 1, evenly distributed. */
  readonly random: () => number;
  /** Told what the person should know. */
  readonly warn: (text: string) => void;
  /** How long an answer may take. */
  readonly timeoutMs?: number | undefined;
}

/** What came of it, and the state that it left. */
export type Outcome = {
  readonly state: DaemonState;
} & (
  | {
      readonly status: 'renewed';
      readonly lease: HeldLease;
      /** Where the lease lasts less than was due. */
      readonly limits: LeaseAnswer['limits'];
    }
  /** Nothing was asked. */
  | {
      readonly status: 'not_due';
      readonly because: AttemptReason;
      /** Milliseconds since the Unix epoch; null while there is nothing to wait for. */
      readonly next: number | null;
      readonly lease: HeldLease | undefined;
    }
  | {
      readonly status: 'failed';
      readonly error: ServiceError;
      /** What is held all the same. */
      readonly lease: HeldLease | undefined;
    }
);

export interface RenewOptions {
  /** Also when it is not due, or the wait after a failure is not over; not beyond the hourly limit. */
  readonly force: boolean;
  /** Breaks off what is waited for; what was begun is taken up by the next attempt. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Renews the lease of this machine, if that is due: one attempt. Whatever ends it, also a kill, the
 * next one takes it up where it stopped.
 *
 * @throws ServiceError `conflict`, reason `locked`, while another does the same, or `interrupted`.
 */
export async function renew(_machine: Machine, _options: RenewOptions): Promise<Outcome> {
  throw new Error('to come');
}
