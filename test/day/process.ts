import type Database from 'better-sqlite3';
import { currentLife, type Life } from '../../src/compliance/conformance/virtual-time.ts';

/** Fault of one commit of a process. */
export type CommitFault =
  /** The process dies, and nothing is written. */
  | 'die_before'
  /** The transaction is durable, and the process dies before it knows. */
  | 'die_after'
  /** The disk has no space; nothing is written. */
  | 'full'
  /** The transaction is durable, but the connection breaks before the answer. */
  | 'lost';

/**
 * A process of the simulated day. After `kill`, none of its timers fires, no answer reaches it, and
 * its databases are closed, so that nothing that it still computes has an effect.
 */
export class SimulatedProcess implements Life {
  readonly name: string;
  isOver = false;
  /** Difference of its wall clock from the true time, ms. */
  skewMs = 0;
  /** Decides on the fault of the next commit. */
  nextCommit: () => CommitFault | undefined = () => undefined;
  /** Whether it has lost its volume, so that nothing it writes is kept. */
  hasLostVolume = false;
  /** Whether its database answers with errors. */
  isDatabaseAway = false;
  readonly #databases = new Set<Database.Database>();
  readonly #onKill: () => void;

  constructor(name: string, onKill: () => void = () => {}) {
    this.name = name;
    this.#onKill = onKill;
  }

  /** Closes the database when the process ends. @returns whether it is new */
  own(database: Database.Database): boolean {
    const isNew = !this.#databases.has(database);
    this.#databases.add(database);
    return isNew;
  }

  /** Ends the process at once. An open transaction is rolled back. */
  kill(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const database of this.#databases) database.close();
    this.#onKill();
  }
}

/** Process of the running code; undefined for the code of the test itself. */
export function currentProcess(): SimulatedProcess | undefined {
  const life = currentLife();
  return life instanceof SimulatedProcess ? life : undefined;
}

/** For answers to a process that has died. */
export const NEVER = new Promise<never>(() => {});
