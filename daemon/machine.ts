import type { LicenseFiles } from '../src/gate/license-files.ts';
import type { Boot } from '../src/lease/known-time.ts';

/** The machine whose lease is renewed, and its access to clock, randomness and server. */
export interface Machine {
  readonly files: LicenseFiles;
  readonly url: string;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Boot id and uptime, which includes time asleep. */
  readonly boot: () => Boot;
  /** From 0 to 1, evenly distributed. */
  readonly random: () => number;
  /** Receives warnings for the user. */
  readonly warn: (text: string) => void;
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** Maximum time for all requests of one attempt, ms; `ANSWER_TIMEOUT_MS` by default. */
  readonly timeoutMs?: number | undefined;
  /** `machineHash` of this machine; `ownMachineHash` by default. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
}
