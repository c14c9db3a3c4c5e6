import { ServiceError } from '../../base/errors.ts';
import type { Progress, SessionState } from '../../events/session-state.ts';
import type { Step } from '../../engine/steps.ts';
import type { DataEvent } from '../feed.ts';
import { dataEvent, inputEvent, progressEvents, type SessionEvent } from '../session-events.ts';
import type { SessionInput } from '../session-input.ts';
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
  #gaps: DataEvent[] = [];

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
    this.#events.push({ kind, occurred_at: Date.now(), payload });
  }

  /** A gap is recorded with the bars after it: alone, it would be recorded again after a restart. */
  noteData(event: DataEvent): void {
    if (event.kind === 'data.gap') this.#gaps.push(event);
    else this.#events.push(dataEvent(event));
  }

  noteGaps(): void {
    this.#events.push(...this.#gaps.map(dataEvent));
    this.#gaps = [];
  }

  /**
   * Passes bars to the session. After Ctrl-C during the step, nothing of it is recorded.
   *
   * @returns whether the session continues.
   */
  takeBars(step: Step, isStale: boolean): boolean {
    this.dispatch({ kind: 'bars_arrived', isStale });
    const session = this.session!;
    const progress = session.push(step);
    if (session.failure?.code === 'interrupted') {
      this.dispatch({ kind: 'interrupted' });
      return false;
    }
    this.noteGaps();
    this.#record({ kind: 'data.bars', step }, progress);
    return progress.state.status === 'running';
  }

  /** Why the session cannot take bars. */
  get failure(): ServiceError {
    const ruined = new ServiceError('failure', 'the account is lost', { reason: 'ruined' });
    return this.session?.failure ?? ruined;
  }

  get eventCount(): number {
    return this.#events.length;
  }

  /** Removes and returns the events to be written. */
  takeEvents(): readonly SessionEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  get denial(): ReturnType<typeof denialReason> {
    return denialReason(this.#life, this.#facts());
  }

  /** Whether this order, or any, may be sent to the venue now. */
  mayPlace(order?: VenueOrderId): boolean {
    if (order !== undefined && this.session?.isShut(order) === true) return false;
    return mayPlace(this.#life, this.#facts());
  }

  /** Newest epoch of the server's database that the session has received. */
  get epoch(): number {
    return this.session?.supervised.epoch ?? 1;
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
      this.#events.push(inputEvent(input, Date.now(), details));
    }
    this.#events.push(...progressEvents(progress));
    this.#host.onProgress?.(progress);
    return progress;
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
