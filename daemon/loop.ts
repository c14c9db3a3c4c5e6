import type { HeldLease } from '../src/gate/license.ts';
import type { LeaseStatus } from '../src/lease/status.ts';
import type { Log } from '../src/log.ts';
import type { Machine } from './renewal.ts';
import type { DaemonState } from './state.ts';

/** Has itself called; what it returns ends that. */
export type Subscribe = (call: () => void) => () => void;

/** How things are after a look. */
export interface Tick {
  readonly state: DaemonState;
  readonly lease: HeldLease | undefined;
  /** Of that lease. */
  readonly status: LeaseStatus | undefined;
}

export interface LoopOptions {
  /** Ends the loop, also in the middle of a request. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Whoever wants it to look now, and not to wait any longer after a failure: SIGHUP. */
  readonly wake?: Subscribe;
  /** Whoever sees that the files may have changed: it looks now. */
  readonly watch?: Subscribe;
  /** After each look, at least once a minute but while a request is waited for. */
  readonly onTick?: (tick: Tick) => void;
  /** Rejects or resolves when the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Keeps the lease of this machine fresh and its files whole, until it is told to end. */
export async function runLoop(_machine: Machine, _options: LoopOptions): Promise<void> {
  throw new Error('to come');
}
