import { ServiceError } from '../../base/errors.ts';
import type { Progress, SessionState } from '../../events/session-state.ts';
import type { EarlierPart } from '../../engine/earlier-bars.ts';
import type { DenyReason } from '../../engine/orders/order.ts';
import type { Step } from '../../engine/steps.ts';
import type { DataEvent, FeedItem } from '../feed.ts';
import {
  dataEvent,
  inputEvent,
  progressEvents,
  type SessionBatch,
  type SessionEvent,
  type SessionInput,
} from '../session-events.ts';
import type { Facts, SessionLife } from '../session-life.ts';
import {
  decide,
  evolve,
  type Decision,
  type HaltDetails,
  type LifeEvent,
} from '../session-lifecycle.ts';
import { denialReason, mayPlace } from '../trading-permission.ts';
import type { TradingSession } from '../trading-session.ts';
import type { VenueOrderId } from '../venue.ts';

/** Differences between hosts. */
export interface SessionHost {
  /** Conditions of trading that only the host can observe. */
  readonly observe: () => Pick<Facts, 'isLicensed' | 'isClaimFresh'>;
  /**
   * Starts the work that a decision requires outside the session. Must not dispatch events itself. A
   * host without background work reads `life` instead.
   */
  readonly perform?: (decision: Decision) => void;
  readonly onProgress?: (progress: Progress) => void;
  /** Whether halts are recorded as events; otherwise only the state records them. */
  readonly recordsHalts: boolean;
  /** Whether equity of 0 or below is a failure; otherwise it ends the session like the end of its bars. */
  readonly failsWhenRuined: boolean;
  /** Called with bars before the first step, before the session takes them. */
  readonly prepareWarmUp: (part: EarlierPart) => void;
  /**
   * Prepares the session for bars, before it takes them.
   *
   * @returns whether they are too old to trade by.
   */
  readonly prepareBars: (step: Step) => Promise<boolean>;
  /** Resolves when the batch is durable, or is certain to become so before the session ends. */
  readonly write: (batch: Omit<SessionBatch, 'number'>) => Promise<void>;
}

/** A session with its life, and the events that its host has not written yet. */
export class HostedSession {
  /** Undefined until it is restored. */
  session: TradingSession | undefined;
  /** Recorded orders that have not ended, as far as is known, until the session is restored. */
  unrestored: SessionState['working'] = [];
  #life: SessionLife;
  readonly #host: SessionHost;
  #events: SessionEvent[] = [];
  /** Time of the oldest event that is not written, ms since epoch. */
  #madeAt: number | undefined;
  #beforeBars: SessionEvent[] = [];

  constructor(life: SessionLife, host: SessionHost) {
    this.#life = life;
    this.#host = host;
  }

  get life(): SessionLife {
    return this.#life;
  }

  /** Orders that have not ended, as far as is known. */
  get working(): SessionState['working'] {
    return this.session?.state().working ?? this.unrestored;
  }

  dispatch(event: LifeEvent): void {
    for (const decision of decide(this.#life, event, this.#facts())) {
      this.#life = evolve(this.#life, decision);
      if (decision.kind === 'input_decided') this.take(decision.input, decision.details);
      this.#noteDecision(decision);
      this.#host.perform?.(decision);
    }
  }

  /** Takes an input, and records it with the events that follow from it. */
  take(input: SessionInput, details?: HaltDetails): Progress {
    return this.#record(input, this.session!.take(input), details);
  }

  /** Records an event that is no input. */
  note(kind: string, payload: SessionEvent['payload']): void {
    this.#add({ kind, occurred_at: Date.now(), payload });
  }

  /**
   * Begins to trade with the session that was restored, unless it has ended.
   *
   * @param denying recorded reason for which new orders were denied.
   */
  adopt(session: TradingSession, denying: DenyReason | null = null, foreignEpoch = 0): void {
    this.session = session;
    this.dispatch({ kind: 'restored', denying, foreignEpoch, error: this.#failure });
  }

  async takeFeedItem(item: FeedItem): Promise<void> {
    const { session } = this;
    if (session === undefined || this.#life.ending !== undefined) return;
    if (item.kind === 'data.warm_up') {
      // If no bars follow before a restart, the feed begins again, and its first part replaces all others.
      this.#host.prepareWarmUp(item);
      this.take(item);
      return;
    }
    if (item.kind !== 'data.bars') return this.#noteData(item);
    const isStale = await this.#host.prepareBars(item.step);
    this.dispatch({ kind: 'bars_arrived', isStale });
    const progress = session.push(item.step);
    // After Ctrl-C during the step, nothing of it is recorded.
    if (session.failure?.code === 'interrupted') return this.dispatch({ kind: 'interrupted' });
    this.noteBeforeBars();
    this.#record(item, progress);
    if (session.status === 'running') return;
    const error = this.#failure;
    this.dispatch(error === undefined ? { kind: 'feed_ended' } : { kind: 'failed', error });
  }

  /**
   * Records the gap before new bars. It is written together with the bars, because the feed repeats it
   * after a restart without these bars.
   */
  noteBeforeBars(): void {
    this.#add(...this.#beforeBars);
    this.#beforeBars = [];
  }

  #noteData(event: DataEvent): void {
    if (event.kind === 'data.gap') this.#beforeBars.push(dataEvent(event));
    else this.#add(dataEvent(event));
  }

  /** Writes the events since the last call, and the state after them, unless the journal is broken. */
  async write(): Promise<void> {
    const { session } = this;
    const events = this.#events;
    this.#events = [];
    if (this.#life.isBroken || session === undefined) return;
    const { steps } = session;
    await this.#host.write({ events, made_at: this.#madeAt, state: session.state(), steps });
  }

  /** Count of events that are not written. */
  get eventCount(): number {
    return this.#events.length;
  }

  get denial(): ReturnType<typeof denialReason> {
    return denialReason(this.#life, this.#facts());
  }

  /** Whether this order, or any, may be sent to the venue now. */
  mayPlace(order?: VenueOrderId): boolean {
    if (order !== undefined && this.session?.isShut(order) === true) return false;
    return mayPlace(this.#life, this.#facts());
  }

  /**
   * Newest epoch of the server's database that the session has received. Orders of a newer one belong
   * to another runner.
   */
  get epoch(): number {
    return this.session?.supervised.epoch ?? this.#life.supervision?.database_epoch ?? 1;
  }

  /** Why the session failed; undefined if it did not. */
  get #failure(): ServiceError | undefined {
    const { failure, status } = this.session!;
    if (status !== 'ruined' || !this.#host.failsWhenRuined) return failure;
    return new ServiceError('failure', 'the equity of the account has fallen to 0 or below', {
      reason: 'ruined',
    });
  }

  #noteDecision(decision: Decision): void {
    if (decision.kind === 'mismatches_changed' && decision.mismatches.length > 0) {
      this.note('venue.mismatch', { mismatches: decision.mismatches });
    } else if (decision.kind === 'latched') {
      const { mismatches, share: share_of_equity } = decision;
      this.note('account.latched', { control: 'reconciliation', mismatches, share_of_equity });
    } else if (decision.kind === 'superseded') {
      const { order, client_order_id, epoch } = decision;
      this.note('venue.foreign', { order, client_order_id, epoch });
    }
  }

  #record(input: SessionInput, progress: Progress, details?: HaltDetails): Progress {
    if (input.kind !== 'control.halted' || this.#host.recordsHalts) {
      this.#add(inputEvent(input, Date.now(), details));
    }
    this.#add(...progressEvents(progress));
    this.#host.onProgress?.(progress);
    return progress;
  }

  #add(...events: readonly SessionEvent[]): void {
    if (this.#events.length === 0) this.#madeAt = Date.now();
    this.#events.push(...events);
  }

  #facts(): Facts {
    const { session } = this;
    return {
      now: Date.now(),
      ...this.#host.observe(),
      session: session && {
        status: session.status,
        hasWorkingOrders: session.hasWorkingOrders,
        supervised: session.supervised,
      },
    };
  }
}
