import { ServiceError } from '../../../base/errors.ts';
import { isSystemError } from '../../../base/system-errors.ts';
import type { EventFault } from '../../../events/event.ts';
import type { SessionState } from '../../../events/session-state.ts';
import {
  INPUT_KINDS,
  parseInput,
  type SessionBatch,
  type SessionEvent,
  type SessionInput,
} from '../../session-events.ts';
import type { VenueRules } from '../../venue.ts';
import { JournalStore, type Payload } from './journal-store.ts';

/** The deployment of a journal. Another one is rejected. */
export interface Owner {
  readonly deployment_id: string;
  readonly version: number;
  /** See `versionHash`. */
  readonly spec_hash: string;
  readonly venue: string;
}

/** How a deployment ended for good. */
export interface LoggedEnd {
  readonly outcome: string;
}

const LATCHED = 'account.latched';
const ARCHIVE_EVERY = 10_000;
const MOST_EVENTS = 512;
/** A server accepts twice as much, including the state. */
const MOST_BYTES = 512 * 1024;
/** Events that are reported to the server. */
const REPORTED = /^(order|account|data|venue|control|risk|clock|strategy)\./;

/** Event that marks the end of a batch. */
interface Cut {
  readonly number: number;
  /** Sequence number of the last event. */
  readonly through: number;
}

interface LoggedState {
  readonly deployment_id: string;
  readonly steps: number;
}

/**
 * Opens or begins the journal in a directory, and verifies all of it. What it contains has happened;
 * what it does not contain was not sent to the venue.
 * @throws ServiceError `events_tampered`; `conflict`, reason `other_deployment`; `storage_unavailable`.
 */
export async function openJournal(
  directory: string,
  owner: Owner,
  { archiveEvery = ARCHIVE_EVERY }: { readonly archiveEvery?: number } = {},
): Promise<Journal> {
  const run = { version: owner.version, run_id: owner.deployment_id };
  const store = await JournalStore.open({ directory, run, archiveEvery });
  try {
    const isNew = await store.begin(ownEvent('runner.begun', owner));
    if (!isNew) await check(store, directory, owner);
    return await RunnerJournal.load(store, directory, owner);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The log of a deployment. */
export class RunnerJournal {
  /** State after the newest entry; undefined before the first. */
  state: SessionState | undefined;
  /** Count of bar steps taken. */
  steps = 0;
  /** Rules of the venue with which the session began. */
  rules: VenueRules | undefined;
  /** Set once the deployment has ended for good. */
  end: LoggedEnd | undefined;
  /** Count of latches because the venue held too little. */
  latches = 0;
  readonly #store: JournalStore;
  readonly #directory: string;
  readonly #deploymentId: string;
  /** Last event of each batch, in the order of their numbers. A year has half a million batches. */
  readonly #cuts: number[];

  private constructor(store: JournalStore, directory: string, owner: Owner, cuts: number[]) {
    this.#store = store;
    this.#directory = directory;
    this.#deploymentId = owner.deployment_id;
    this.#cuts = cuts;
  }

  static async load(store: JournalStore, directory: string, owner: Owner): Promise<RunnerJournal> {
    const cuts: number[] = [];
    const journal = new RunnerJournal(store, directory, owner, cuts);
    for await (const { kind, payload } of store.rows(0, undefined, ['batch.cut', LATCHED])) {
      if (kind === 'batch.cut') cuts.push((JSON.parse(payload) as Cut).through);
      else if (isOwnLatch(JSON.parse(payload) as object)) journal.latches += 1;
    }
    Object.assign(journal, splitState(await store.latest('session.state')));
    journal.rules = (await store.latest('venue.rules')) as VenueRules | undefined;
    journal.end = (await store.latest('runner.ended')) as LoggedEnd | undefined;
    return journal;
  }

  /** Inputs of the session, oldest first. */
  async *inputs(): AsyncGenerator<SessionInput> {
    for await (const { kind, payload } of this.#store.rows(0, undefined, INPUT_KINDS)) {
      yield parseInput(kind as SessionInput['kind'], payload);
    }
  }

  /** Adds events and the state after them; resolves when they are on disk. */
  async append(events: readonly SessionEvent[], state: SessionState, steps: number): Promise<void> {
    const isChanged = JSON.stringify(state) !== JSON.stringify(this.state);
    const logged = { deployment_id: this.#deploymentId, steps, ...state };
    const change = isChanged ? [ownEvent('session.state', logged)] : [];
    if (events.length + change.length === 0) return;
    await this.#store.append([...events, ...change]);
    this.state = state;
    this.steps = steps;
    this.latches += events.filter(
      ({ kind, payload }) => kind === LATCHED && isOwnLatch(payload),
    ).length;
  }

  async keepRules(rules: VenueRules): Promise<void> {
    await this.#store.append([ownEvent('venue.rules', rules)]);
    this.rules = rules;
  }

  async keepEnd(end: LoggedEnd): Promise<void> {
    await this.#store.append([ownEvent('runner.ended', end)]);
    this.end = end;
  }

  /**
   * The batch after those that the server has recorded; undefined if there is nothing to report. A
   * batch keeps its number and its events, even after a crash.
   * @throws ServiceError `conflict`, reason `log_lost`, if the server has recorded more batches.
   */
  async nextBatch(recorded: number): Promise<SessionBatch | undefined> {
    if (recorded > this.#cuts.length) throw logLost(this.#directory, recorded);
    const after = this.#cuts[recorded - 1] ?? 0;
    await this.#rotate(after);
    if (this.state === undefined) return undefined;
    const number = recorded + 1;
    const cut = this.#cuts[recorded];
    const { events, made_at, through } = await this.#part(after, cut);
    const { state, steps } = await this.#stateAt(through);
    if (state === undefined) return undefined;
    if (cut === undefined) {
      if (events.length === 0) {
        const before = await this.#stateAt(after);
        if (JSON.stringify(before) === JSON.stringify({ state, steps })) return undefined;
      }
      await this.#store.append([ownEvent('batch.cut', { number, through } satisfies Cut)]);
      this.#cuts.push(through);
    }
    return { number, events, ...(made_at !== undefined && { made_at }), state, steps };
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** Archives recorded events. A full disk is reported by the next write, and nothing is lost. */
  async #rotate(through: number): Promise<void> {
    try {
      await this.#store.rotate(through);
    } catch (error) {
      if (!isSystemError(error) && !(error instanceof ServiceError)) throw error;
    }
  }

  /** Reported events after a batch, up to the end of the next one, or as many as fit in one. */
  async #part(after: number, until: number | undefined) {
    const events: SessionEvent[] = [];
    let made_at: number | undefined;
    let bytes = 0;
    let through = after;
    /** The last place with a recorded state, where a batch can end. */
    let whole = { through: after, count: 0 };
    for await (const row of this.#store.rows(after, until)) {
      const { seq, kind, occurred_at, recorded_at, payload } = row;
      if (REPORTED.test(kind)) {
        bytes += Buffer.byteLength(payload);
        const isFull = events.length === MOST_EVENTS || bytes > MOST_BYTES;
        if (until === undefined && isFull && events.length > 0) {
          if (whole.count === 0) return { events, made_at, through };
          return { events: events.slice(0, whole.count), made_at, through: whole.through };
        }
        made_at ??= recorded_at;
        events.push({ kind, occurred_at, payload: JSON.parse(payload) as Payload });
      }
      through = seq;
      if (kind === 'session.state') whole = { through, count: events.length };
    }
    return { events, made_at, through };
  }

  async #stateAt(seq: number): Promise<ReturnType<typeof splitState>> {
    return splitState(await this.#store.latest('session.state', seq));
  }
}

/** A journal; other implementations keep it elsewhere than on disk. */
export type Journal = Readonly<Pick<RunnerJournal, keyof RunnerJournal>>;

function ownEvent(kind: string, payload: object): SessionEvent {
  return { kind, occurred_at: Date.now(), payload: { ...payload } };
}

/** Verifies the hash chain, and that the journal belongs to this deployment. */
async function check(store: JournalStore, directory: string, owner: Owner): Promise<void> {
  const fault = await store.verify();
  if (fault !== undefined) throw tampered(directory, fault);
  await store.dropArchived();
  const before = (await store.latest('runner.begun')) as unknown as Owner;
  const other = (['deployment_id', 'version', 'spec_hash', 'venue'] as const).find(
    (name) => before[name] !== owner[name],
  );
  if (other === undefined) return;
  throw new ServiceError(
    'conflict',
    `${directory} has the log of another deployment: its ${other} is ${before[other]}, not ${owner[other]}`,
    {
      reason: 'other_deployment',
      remedy: 'Give each deployment, and each version, its own state_dir and id.',
    },
  );
}

function tampered(directory: string, { seq, fault }: EventFault): ServiceError {
  return new ServiceError(
    'events_tampered',
    `the log in ${directory} was changed after it was written: event ${seq} is ${fault}`,
    { remedy: 'Do not trade with it: restore the volume, or deploy again.' },
  );
}

function logLost(directory: string, recorded: number): ServiceError {
  return new ServiceError(
    'conflict',
    `the server has ${recorded} batches of this deployment, more than the log in ${directory}`,
    {
      reason: 'log_lost',
      remedy:
        'Restore the volume; or stop the deployment, check the holdings at the venue, and deploy again.',
    },
  );
}

/** Whether the runner itself latched the bot; the session latches only for `repeated_execution`. */
function isOwnLatch(payload: { readonly control?: unknown }): boolean {
  return payload.control === 'reconciliation';
}

function splitState(payload: Payload | undefined): {
  readonly state: SessionState | undefined;
  readonly steps: number;
} {
  if (payload === undefined) return { state: undefined, steps: 0 };
  const { deployment_id: _id, steps, ...state } = payload as unknown as LoggedState;
  return { state: state as unknown as SessionState, steps };
}
