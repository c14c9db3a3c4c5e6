import { ServiceError } from '../../base/errors.ts';
import { stateHash, type SessionState } from '../../events/session-state.ts';
import type { BotEventsTable } from '../../storage/tables.ts';
import { INPUT_KINDS, type SessionInput } from '../../trading/session-events.ts';

/** Position at which a fork leaves a session: after everything that follows the last bars up to an event. */
export interface ForkPoint {
  /** Time of these bars, ms since epoch. */
  readonly time: number;
  /** Number of inputs of the session up to the fork, without the bars before its first step. */
  readonly inputs: number;
  /** Newest recorded state up to the fork; undefined if none was recorded. */
  readonly state: RecordedState | undefined;
}

interface RecordedState {
  readonly seq: number;
  readonly payload: string;
  /** Number of inputs before it. */
  readonly inputs: number;
}

/** Finds the fork point among the rows of a bot's log. */
export class ForkPointFinder {
  readonly #run_id: string;
  readonly #at: number;
  #inputs = 0;
  #firstBars: number | undefined;
  #lastBars: number | undefined;
  #last = 0;
  #time: number | undefined;
  #state: RecordedState | undefined;
  #point: ForkPoint | undefined;

  /** @param at sequence number of an event. */
  constructor(run_id: string, at: number) {
    this.#run_id = run_id;
    this.#at = at;
  }

  take(rows: readonly BotEventsTable[]): void {
    for (const row of rows) {
      this.#last = row.seq;
      if (row.run_id === this.#run_id) this.#add(row);
    }
  }

  /**
   * @param command that lists the events of the session, for the remedy of an error
   * @throws ServiceError `conflict` if no bar of the session is up to the event, or none after it.
   */
  find(command: string): ForkPoint {
    if (this.#point !== undefined) return this.#point;
    const noFork = (message: string) =>
      new ServiceError('conflict', message, {
        reason: 'no_fork_point',
        remedy: `Name an event between two bars of the session; see \`${command}\`.`,
      });
    const [at, first, last] = [this.#at, this.#firstBars, this.#lastBars];
    if (first === undefined) throw noFork('the session has no bars');
    if (at < first)
      throw noFork(`the first bars of the session are event ${first}, after event ${at}`);
    if (at > this.#last)
      throw noFork(`the session ends at event ${this.#last}, before event ${at}`);
    throw noFork(`the last bars of the session are event ${last}, so none follow event ${at}`);
  }

  #add({ kind, seq, occurred_at, payload }: BotEventsTable): void {
    if (kind === 'data.bars') {
      this.#firstBars ??= seq;
      this.#lastBars = seq;
      if (seq > this.#at && this.#time !== undefined) {
        this.#point ??= { time: this.#time, inputs: this.#inputs, state: this.#state };
      }
      if (seq <= this.#at) this.#time = occurred_at;
      this.#inputs += 1;
    } else if (isStepInput(kind)) {
      this.#inputs += 1;
    } else if (kind === 'session.state') {
      this.#state = { seq, payload, inputs: this.#inputs };
    }
  }
}

/** Hash of a recorded state without its deployment id, which only sessions at an exchange record. */
export function recordedHash({ payload }: RecordedState): string {
  const { deployment_id: _, ...state } = JSON.parse(payload) as Recorded;
  return stateHash(state);
}

/** Whether an event records an input other than the bars before the first step. */
export function isStepInput(kind: string): kind is SessionInput['kind'] {
  return kind !== 'data.warm_up' && (INPUT_KINDS as readonly string[]).includes(kind);
}

type Recorded = SessionState & { readonly deployment_id?: string };
