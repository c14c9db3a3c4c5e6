/**
 * Life of a hosted session, from its claim to its end: plain data, no I/O. The host passes each event
 * to `decide`, applies each decision with `evolve`, and then performs it.
 */
import type { ServiceError } from '../base/errors.ts';
import type { SessionStatus } from '../events/session-state.ts';
import {
  checkHoldings,
  newHoldingsCheck,
  type Comparison,
  type HoldingsCheck,
  type NextComparison,
} from './holdings-check.ts';
import type { SessionInput } from './session-input.ts';
import {
  decideSupervision,
  type SessionSupervision,
  type SupervisedState,
} from './session-supervision.ts';
import type { DenyReason } from './venue.ts';
import type { Mismatch } from './venues/reconcile.ts';

export interface SessionLife {
  /** Whether orders go to a venue, whose orders and holdings are then compared with the session. */
  readonly isAtVenue: boolean;
  /**
   * `settled`: the server has answered, or none supervises the session; `gone`: the server does not
   * know the deployment; `fenced`: another instance has the claim.
   */
  readonly claim: 'awaited' | 'settled' | 'gone' | 'fenced';
  readonly stage: Stage;
  /** Reason for which the session denies new orders. */
  readonly denying: DenyReason | null;
  /** Newest supervision by the server. */
  readonly supervision: SessionSupervision | undefined;
  readonly holdings: HoldingsCheck;
  /** Newest epoch seen in an order of another runner; 0 if none was seen. */
  readonly foreignEpoch: number;
  /** Whether the newest bars were too old to trade by. */
  readonly isStale: boolean;
  /** The session is ahead of its journal: nothing more of it may be recorded or sent. */
  readonly isBroken: boolean;
  /** The server has recorded more than the journal: the session must not be restored. */
  readonly isLost: boolean;
  readonly ending: Ending | undefined;
  /** Whether the venue confirmed that no order is open; undefined before the end. */
  readonly verified: boolean | undefined;
}

/** `reconciling` ends with the first comparison of holdings, `connecting` with the first feed. */
export type Stage = 'restoring' | 'reconciling' | 'connecting' | 'trading';

export interface Ending {
  readonly outcome: 'finished' | 'stopped' | 'halted' | 'failed';
  /** Whether the deployment has ended for good; else another process may resume it. */
  readonly isFinal: boolean;
  readonly error?: ServiceError | undefined;
}

/** Who halted the session, and why. */
export type HaltDetails = Readonly<Record<string, string>>;

/** Order at the venue with a newer epoch: another runner trades for an adopted copy of the server. */
interface ForeignOrder {
  readonly order: number;
  readonly client_order_id: string;
  readonly epoch: number;
}

export type LifeEvent =
  /** Permission and supervision must be evaluated again, because time has passed. */
  | { readonly kind: 'ticked' }
  /** The session may be restored: no server grants claims, or the task was claimed. */
  | { readonly kind: 'claimed' }
  | {
      readonly kind: 'answered';
      readonly command: 'trade' | 'halt' | 'stop';
      readonly halt: HaltDetails;
      readonly supervision: SessionSupervision;
    }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'disowned' }
  | { readonly kind: 'server_failed'; readonly error: ServiceError }
  | {
      readonly kind: 'restored';
      /** As recorded. */
      readonly denying: DenyReason | null;
      readonly foreignEpoch: number;
      /** Why it cannot trade, if it is neither running nor halted. */
      readonly error: ServiceError | undefined;
    }
  | { readonly kind: 'reconciled' }
  | ({ readonly kind: 'compared' } & Omit<Comparison, 'isFirst'>)
  | { readonly kind: 'comparison_due' }
  | { readonly kind: 'feed_connected' }
  | { readonly kind: 'feed_ended' }
  | { readonly kind: 'bars_arrived'; readonly isStale: boolean }
  | ({ readonly kind: 'foreign_order_seen' } & ForeignOrder)
  /** Not final: another process may resume the session. */
  | { readonly kind: 'stop_requested'; readonly isFinal: boolean }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'write_failed'; readonly error: ServiceError }
  | { readonly kind: 'failed'; readonly error: ServiceError }
  | { readonly kind: 'orders_canceled'; readonly verified: boolean };

export type Decision =
  | { readonly kind: 'claim_settled'; readonly claim: 'settled' | 'gone' | 'fenced' }
  | { readonly kind: 'supervision_received'; readonly supervision: SessionSupervision }
  /** The session takes and records this input. */
  | {
      readonly kind: 'input_decided';
      readonly input: Exclude<SessionInput, { readonly kind: 'data.bars' | `venue.${string}` }>;
      readonly details?: HaltDetails;
    }
  | {
      readonly kind: 'restoration_adopted';
      readonly denying: DenyReason | null;
      readonly foreignEpoch: number;
    }
  /** Entering a stage starts its work. */
  | { readonly kind: 'stage_entered'; readonly stage: Stage }
  | { readonly kind: 'work_due'; readonly work: 'reconcile' | 'compare' | 'compare_again' }
  | { readonly kind: 'staleness_changed'; readonly isStale: boolean }
  | { readonly kind: 'holdings_checked'; readonly holdings: HoldingsCheck }
  | { readonly kind: 'mismatches_changed'; readonly mismatches: readonly Mismatch[] }
  | {
      readonly kind: 'latched';
      readonly mismatches: readonly Mismatch[];
      readonly missingShare: number;
    }
  | { readonly kind: 'latch_lifted' }
  | { readonly kind: 'comparison_scheduled'; readonly next: NextComparison }
  | ({ readonly kind: 'superseded' } & ForeignOrder)
  | { readonly kind: 'journal_broken' }
  | { readonly kind: 'journal_lost' }
  /** No more bars are wanted, and open orders must be canceled. */
  | { readonly kind: 'ending_began'; readonly ending: Ending }
  | { readonly kind: 'ending_changed'; readonly ending: Ending }
  | { readonly kind: 'ended'; readonly verified: boolean };

/** What the host observes at the time of an event. */
export interface Facts {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly isLicensed: boolean;
  /** Whether the claim was renewed recently enough to trade by it. */
  readonly isClaimFresh: boolean;
  /** Undefined until the session is restored. */
  readonly session:
    | {
        readonly status: SessionStatus;
        readonly hasWorkingOrders: boolean;
        readonly supervised: SupervisedState;
      }
    | undefined;
}

/** @param latches count of recorded latches because the venue held too little. */
export function newLife(isAtVenue: boolean, latches: number): SessionLife {
  return {
    isAtVenue,
    claim: 'awaited',
    stage: 'restoring',
    denying: null,
    supervision: undefined,
    holdings: newHoldingsCheck(latches),
    foreignEpoch: 0,
    isStale: false,
    isBroken: false,
    isLost: false,
    ending: undefined,
    verified: undefined,
  };
}

export function decide(life: SessionLife, event: LifeEvent, facts: Facts): readonly Decision[] {
  // Another instance trades: this one touches nothing.
  if (life.claim === 'fenced' || life.verified !== undefined) return [];
  switch (event.kind) {
    case 'ticked':
      return [...decideDenial(life, facts), ...decideSupervisionInputs(life, facts)];
    case 'claimed':
      return settleClaim(life, 'settled');
    case 'answered':
      return decideAnswer(life, event, facts);
    case 'fenced':
      return [{ kind: 'claim_settled', claim: 'fenced' }];
    case 'disowned':
      return [{ kind: 'claim_settled', claim: 'gone' }, ...end(life, STOPPED_FOR_GOOD, facts)];
    case 'server_failed':
      return [
        ...(event.error.reason === 'log_lost' ? [{ kind: 'journal_lost' } as const] : []),
        ...settleClaim(life, 'settled'),
        ...fail(life, event.error, facts),
      ];
    case 'restored':
      return decideRestored(life, event, facts);
    case 'reconciled':
      return [{ kind: 'work_due', work: 'compare' }];
    case 'compared':
      return decideCompared(life, event);
    case 'comparison_due':
      return decideNextComparison(life);
    case 'feed_connected':
      return life.ending === undefined ? [{ kind: 'stage_entered', stage: 'trading' }] : [];
    case 'feed_ended':
      return end(life, { outcome: 'finished', isFinal: false }, facts);
    case 'bars_arrived':
      return decideBars(life, event.isStale, facts);
    case 'foreign_order_seen':
      return event.epoch > life.foreignEpoch ? [{ ...event, kind: 'superseded' }] : [];
    case 'stop_requested':
      return end(life, { outcome: 'stopped', isFinal: event.isFinal }, facts);
    case 'interrupted':
      return breakJournal(life, (broken) =>
        end(broken, { outcome: 'stopped', isFinal: false }, facts),
      );
    case 'write_failed':
      return breakJournal(life, (broken) => fail(broken, event.error, facts));
    case 'failed':
      return fail(life, event.error, facts);
    case 'orders_canceled':
      return [{ kind: 'ended', verified: event.verified }];
  }
}

export function evolve(life: SessionLife, decision: Decision): SessionLife {
  switch (decision.kind) {
    case 'claim_settled':
      return { ...life, claim: decision.claim };
    case 'supervision_received':
      return { ...life, supervision: decision.supervision };
    case 'input_decided': {
      const { input } = decision;
      return input.kind === 'control.denying' ? { ...life, denying: input.reason } : life;
    }
    case 'restoration_adopted': {
      const { denying, foreignEpoch } = decision;
      return { ...life, denying, foreignEpoch: Math.max(life.foreignEpoch, foreignEpoch) };
    }
    case 'stage_entered':
      return { ...life, stage: decision.stage };
    case 'staleness_changed':
      return { ...life, isStale: decision.isStale };
    case 'holdings_checked':
      return { ...life, holdings: decision.holdings };
    case 'latch_lifted':
      return { ...life, holdings: { ...life.holdings, isLatched: false } };
    case 'superseded':
      return { ...life, foreignEpoch: decision.epoch };
    case 'journal_broken':
      return { ...life, isBroken: true };
    case 'journal_lost':
      return { ...life, isLost: true };
    case 'ending_began':
    case 'ending_changed':
      return { ...life, ending: decision.ending };
    case 'ended':
      return { ...life, verified: decision.verified };
    case 'work_due':
    case 'mismatches_changed':
    case 'latched':
    case 'comparison_scheduled':
      return life;
  }
}

/** Why new orders must be denied now; null if they may be placed. */
export function denialReason(life: SessionLife, facts: Facts): DenyReason | null {
  const { ending, holdings, foreignEpoch } = life;
  if (ending !== undefined) return ending.outcome === 'finished' ? life.denying : 'stopping';
  if (foreignEpoch > (facts.session?.supervised.epoch ?? 1)) return 'superseded';
  if (holdings.isLatched || holdings.mismatches.length > 0) return 'reconcile_mismatch';
  if (!facts.isLicensed) return 'license_invalid';
  if (!facts.isClaimFresh) return 'control_unreachable';
  return life.isStale ? 'stale_data' : null;
}

/** Whether a recorded order may be sent to the venue now. */
export function mayPlace(life: SessionLife, facts: Facts): boolean {
  // Until the orders are reconciled, an earlier process may have placed them.
  const isReconciled = life.stage === 'connecting' || life.stage === 'trading';
  const isAllowed = life.claim !== 'fenced' && !life.isBroken && life.ending === undefined;
  return isReconciled && isAllowed && denialReason(life, facts) === null;
}

const STOPPED_FOR_GOOD: Ending = { outcome: 'stopped', isFinal: true };

function settleClaim(life: SessionLife, claim: 'settled'): Decision[] {
  return life.claim === 'awaited' ? [{ kind: 'claim_settled', claim }] : [];
}

function decideAnswer(
  life: SessionLife,
  { command, halt, supervision }: Extract<LifeEvent, { readonly kind: 'answered' }>,
  facts: Facts,
): Decision[] {
  const received: Decision[] = [
    { kind: 'supervision_received', supervision },
    ...settleClaim(life, 'settled'),
  ];
  if (command === 'halt') {
    return [...received, ...end(life, { outcome: 'halted', isFinal: true }, facts, halt)];
  }
  return command === 'stop' ? [...received, ...end(life, STOPPED_FOR_GOOD, facts)] : received;
}

function decideRestored(
  life: SessionLife,
  { denying, foreignEpoch, error }: Extract<LifeEvent, { readonly kind: 'restored' }>,
  facts: Facts,
): Decision[] {
  const adopted: Decision = { kind: 'restoration_adopted', denying, foreignEpoch };
  const { status } = facts.session!;
  if (life.ending !== undefined) return [adopted, ...haltIfFinal(life, life.ending, facts)];
  if (status === 'halted')
    return [adopted, ...end(life, { outcome: 'halted', isFinal: true }, facts)];
  if (status !== 'running') return [adopted, ...fail(life, error!, facts)];
  const stage = life.isAtVenue ? 'reconciling' : 'connecting';
  return [adopted, { kind: 'stage_entered', stage }];
}

function decideCompared(
  life: SessionLife,
  comparison: Extract<LifeEvent, { readonly kind: 'compared' }>,
): Decision[] {
  const isFirst = life.stage === 'reconciling';
  const { after, hasNews, isLatchedNow, next } = checkHoldings(life.holdings, {
    ...comparison,
    isFirst,
  });
  const { missingShare } = comparison;
  const { mismatches } = after;
  return [
    { kind: 'holdings_checked', holdings: after },
    ...(hasNews ? [{ kind: 'mismatches_changed', mismatches } as const] : []),
    ...(isLatchedNow ? [{ kind: 'latched', mismatches, missingShare } as const] : []),
    { kind: 'comparison_scheduled', next },
    ...(isFirst && life.ending === undefined
      ? [{ kind: 'stage_entered', stage: 'connecting' } as const]
      : []),
  ];
}

function decideNextComparison({ ending, holdings }: SessionLife): Decision[] {
  if (ending !== undefined) return [];
  const isWhole = holdings.mismatches.length === 0;
  return [{ kind: 'work_due', work: isWhole ? 'compare_again' : 'reconcile' }];
}

function decideBars(life: SessionLife, isStale: boolean, facts: Facts): Decision[] {
  if (isStale === life.isStale) return decideDenial(life, facts);
  const changed: Decision = { kind: 'staleness_changed', isStale };
  return [changed, ...decideDenial(evolve(life, changed), facts)];
}

function decideDenial(life: SessionLife, facts: Facts): Decision[] {
  if (life.isBroken || facts.session?.status !== 'running') return [];
  const reason = denialReason(life, facts);
  if (reason === life.denying) return [];
  return [{ kind: 'input_decided', input: { kind: 'control.denying', reason } }];
}

function decideSupervisionInputs(life: SessionLife, { session, now }: Facts): Decision[] {
  const { supervision, isBroken, holdings } = life;
  if (supervision === undefined || isBroken || session?.status !== 'running') return [];
  const { supervised } = session;
  // The server counts latches of the session and of the host together.
  const { latches } = holdings;
  const isLifted = holdings.isLatched && supervision.latches_lifted >= supervised.latches + latches;
  const ownSupervision = { ...supervision, latches_lifted: supervision.latches_lifted - latches };
  return [
    ...(isLifted ? [{ kind: 'latch_lifted' } as const] : []),
    ...decideSupervision(supervised, ownSupervision, now).map(
      (input) => ({ kind: 'input_decided', input }) as const,
    ),
  ];
}

function breakJournal(life: SessionLife, then: (broken: SessionLife) => Decision[]): Decision[] {
  const broken: Decision = { kind: 'journal_broken' };
  return [broken, ...then(evolve(life, broken))];
}

function fail(life: SessionLife, error: ServiceError, facts: Facts): Decision[] {
  return end(life, { outcome: 'failed', isFinal: true, error }, facts);
}

/** Begins the end, or makes an end final that was not. */
function end(life: SessionLife, ending: Ending, facts: Facts, halt: HaltDetails = {}): Decision[] {
  const { ending: known } = life;
  if (known === undefined) {
    return [{ kind: 'ending_began', ending }, ...haltIfFinal(life, ending, facts, halt)];
  }
  if (known.isFinal || !ending.isFinal) return [];
  return [{ kind: 'ending_changed', ending }, ...haltIfFinal(life, ending, facts, halt)];
}

/** A session that ends for good is halted, so that no process can resume it. */
function haltIfFinal(
  { isBroken }: SessionLife,
  { isFinal }: Ending,
  { session }: Facts,
  details: HaltDetails = {},
): Decision[] {
  if (!isFinal || isBroken || session === undefined) return [];
  if (session.status !== 'running' && !session.hasWorkingOrders) return [];
  return [{ kind: 'input_decided', input: { kind: 'control.halted' }, details }];
}
