/**
 * Life of a hosted session, from its claim to its end: plain data, no I/O. The host passes each event
 * to `decide`, applies each decision with `evolve`, and then performs it.
 */
import type { ServiceError } from '../base/errors.ts';
import {
  checkHoldings,
  type Comparison,
  type HoldingsCheck,
  type NextComparison,
} from './holdings-check.ts';
import type { SessionInput } from './session-events.ts';
import type { Ending, Facts, SessionLife, Stage } from './session-life.ts';
import { decideSupervision, type SessionSupervision } from './session-supervision.ts';
import { denialReason } from './trading-permission.ts';
import type { DenyReason } from '../engine/orders/order.ts';
import type { Mismatch } from './venues/reconcile.ts';

/** Author and reason of a halt, for its event. */
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
      /** Recorded reason for which new orders were denied. */
      readonly denying: DenyReason | null;
      readonly foreignEpoch: number;
      /** Why it failed, if it did. */
      readonly error: ServiceError | undefined;
    }
  | ({ readonly kind: 'compared' } & Omit<Comparison, 'isFirst'>)
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
      readonly input: Exclude<
        SessionInput,
        { readonly kind: `data.${string}` | `venue.${string}` }
      >;
      readonly details?: HaltDetails;
    }
  | {
      readonly kind: 'restoration_adopted';
      readonly denying: DenyReason | null;
      readonly foreignEpoch: number;
    }
  /** Entering a stage starts its work. */
  | { readonly kind: 'stage_entered'; readonly stage: Stage }
  | { readonly kind: 'staleness_changed'; readonly isStale: boolean }
  | { readonly kind: 'holdings_checked'; readonly holdings: HoldingsCheck }
  | { readonly kind: 'mismatches_changed'; readonly mismatches: readonly Mismatch[] }
  | {
      readonly kind: 'latched';
      readonly mismatches: readonly Mismatch[];
      readonly share: number;
    }
  | { readonly kind: 'latch_lifted' }
  | { readonly kind: 'comparison_scheduled'; readonly next: NextComparison }
  | ({ readonly kind: 'superseded' } & ForeignOrder)
  | { readonly kind: 'journal_broken' }
  | { readonly kind: 'journal_lost' }
  /** The feed must end, and open orders must be canceled. */
  | { readonly kind: 'ending_began'; readonly ending: Ending }
  | { readonly kind: 'ending_changed'; readonly ending: Ending }
  | { readonly kind: 'ended'; readonly verified: boolean };

export type EventOf<K extends LifeEvent['kind']> = Extract<LifeEvent, { readonly kind: K }>;
export type DecisionOf<K extends Decision['kind']> = Extract<Decision, { readonly kind: K }>;

export function decide(life: SessionLife, event: LifeEvent, facts: Facts): readonly Decision[] {
  // Another instance trades and must not be disturbed, or everything is over.
  if (life.claim === 'fenced' || life.verified !== undefined) return [];
  return REACTIONS[event.kind](life, event as never, facts);
}

const REACTIONS: {
  readonly [K in LifeEvent['kind']]: (
    life: SessionLife,
    event: EventOf<K>,
    facts: Facts,
  ) => readonly Decision[];
} = {
  ticked: (life, _, facts) => [
    ...decideDenial(life, facts),
    ...decideSupervisionInputs(life, facts),
  ],
  claimed: (life) => settleClaim(life),
  answered: decideAnswer,
  fenced: () => [{ kind: 'claim_settled', claim: 'fenced' }],
  disowned: (life, _, facts) => [
    { kind: 'claim_settled', claim: 'gone' },
    ...end(life, STOPPED_FOR_GOOD, facts),
  ],
  server_failed: (life, { error }, facts) => [
    ...(error.reason === 'log_lost' ? [{ kind: 'journal_lost' } as const] : []),
    ...settleClaim(life),
    ...(error.retryable ? fail(life, error, facts) : failRecord(life, error, facts)),
  ],
  restored: decideRestored,
  compared: decideCompared,
  feed_connected: ({ ending }) =>
    ending === undefined ? [{ kind: 'stage_entered', stage: 'trading' }] : [],
  feed_ended: (life, _, facts) => finish(life, facts),
  bars_arrived: decideBars,
  foreign_order_seen: ({ foreignEpoch }, event) =>
    event.epoch > foreignEpoch ? [{ ...event, kind: 'superseded' }] : [],
  stop_requested: (life, { isFinal }, facts) => end(life, { outcome: 'stopped', isFinal }, facts),
  interrupted: (life, _, facts) => [
    BROKEN,
    ...end(evolve(life, BROKEN), { outcome: 'stopped', isFinal: false }, facts),
  ],
  write_failed: (life, { error }, facts) => [
    BROKEN,
    ...failRecord(evolve(life, BROKEN), error, facts),
  ],
  failed: (life, { error }, facts) => fail(life, error, facts),
  // A process that can write the journal must record what the venue has reported since.
  orders_canceled: ({ isBroken, isAtVenue }, { verified }) => [
    { kind: 'ended', verified: verified && !(isBroken && isAtVenue) },
  ],
};

export function evolve(life: SessionLife, decision: Decision): SessionLife {
  const change = TRANSITIONS[decision.kind]?.(decision as never, life);
  return change === undefined ? life : { ...life, ...change };
}

/** Decisions that are missing here have effects only outside this state. */
const TRANSITIONS: {
  readonly [K in Decision['kind']]?: (
    decision: DecisionOf<K>,
    life: SessionLife,
  ) => Partial<SessionLife> | undefined;
} = {
  claim_settled: ({ claim }) => ({ claim }),
  supervision_received: ({ supervision }) => ({ supervision }),
  input_decided: ({ input }) =>
    input.kind === 'control.denying' ? { denying: input.reason } : undefined,
  restoration_adopted: ({ denying, foreignEpoch }, life) => ({
    denying,
    foreignEpoch: Math.max(life.foreignEpoch, foreignEpoch),
  }),
  stage_entered: ({ stage }) => ({ stage }),
  staleness_changed: ({ isStale }) => ({ isStale }),
  holdings_checked: ({ holdings }) => ({ holdings }),
  latch_lifted: (_, { holdings }) => ({ holdings: { ...holdings, isLatched: false } }),
  superseded: ({ epoch }) => ({ foreignEpoch: epoch }),
  journal_broken: () => ({ isBroken: true }),
  journal_lost: () => ({ isLost: true }),
  ending_began: ({ ending }) => ({ ending }),
  ending_changed: ({ ending }) => ({ ending }),
  ended: ({ verified }) => ({ verified }),
};

const BROKEN: Decision = { kind: 'journal_broken' };
const STOPPED_FOR_GOOD: Ending = { outcome: 'stopped', isFinal: true };

function settleClaim({ claim }: SessionLife): Decision[] {
  return claim === 'awaited' ? [{ kind: 'claim_settled', claim: 'settled' }] : [];
}

function decideAnswer(
  life: SessionLife,
  { command, halt, supervision }: EventOf<'answered'>,
  facts: Facts,
): Decision[] {
  const received: Decision[] = [
    { kind: 'supervision_received', supervision },
    ...settleClaim(life),
  ];
  if (command === 'halt') {
    return [...received, ...end(life, { outcome: 'halted', isFinal: true }, facts, halt)];
  }
  return command === 'stop' ? [...received, ...end(life, STOPPED_FOR_GOOD, facts)] : received;
}

function decideRestored(
  life: SessionLife,
  { denying, foreignEpoch, error }: EventOf<'restored'>,
  facts: Facts,
): Decision[] {
  const adopted: Decision = { kind: 'restoration_adopted', denying, foreignEpoch };
  const { status } = facts.session!;
  if (life.ending !== undefined) return [adopted, ...haltIfFinal(life, life.ending, facts)];
  if (status === 'halted')
    return [adopted, ...end(life, { outcome: 'halted', isFinal: true }, facts)];
  if (error !== undefined) return [adopted, ...fail(life, error, facts)];
  // The account is ruined, which is no failure on paper.
  if (status !== 'running') return [adopted, ...finish(life, facts)];
  const stage = life.isAtVenue ? 'reconciling' : 'connecting';
  return [adopted, { kind: 'stage_entered', stage }];
}

function decideCompared(life: SessionLife, comparison: EventOf<'compared'>): Decision[] {
  const isFirst = life.stage === 'reconciling';
  const { after, hasNews, isLatchedNow, next } = checkHoldings(life.holdings, {
    ...comparison,
    isFirst,
  });
  const { mismatches } = after;
  return [
    { kind: 'holdings_checked', holdings: after },
    ...(hasNews ? [{ kind: 'mismatches_changed', mismatches } as const] : []),
    ...(isLatchedNow ? [{ kind: 'latched', mismatches, share: comparison.share } as const] : []),
    { kind: 'comparison_scheduled', next },
    ...(isFirst && life.ending === undefined
      ? [{ kind: 'stage_entered', stage: 'connecting' } as const]
      : []),
  ];
}

function decideBars(
  life: SessionLife,
  { isStale }: EventOf<'bars_arrived'>,
  facts: Facts,
): Decision[] {
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

function finish(life: SessionLife, facts: Facts): Decision[] {
  return end(life, { outcome: 'finished', isFinal: false }, facts);
}

function fail(life: SessionLife, error: ServiceError, facts: Facts): Decision[] {
  return end(life, { outcome: 'failed', isFinal: true, error }, facts);
}

/** An end that is missing from the record is a failure, even if it was final before. */
function failRecord(life: SessionLife, error: ServiceError, facts: Facts): Decision[] {
  if (life.ending?.isFinal !== true) return fail(life, error, facts);
  if (life.ending.outcome === 'failed') return [];
  return [{ kind: 'ending_changed', ending: { outcome: 'failed', isFinal: true, error } }];
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
