/** Every state of the life of a session and every event, by name, for a table of their outcomes. */
import { ServiceError } from '../../src/base/errors.ts';
import { newLife, type Facts, type SessionLife } from '../../src/trading/session-life.ts';
import {
  decide,
  evolve,
  type Decision,
  type LifeEvent,
} from '../../src/trading/session-lifecycle.ts';

const supervision = { thresholds: {}, permits: [], latches_lifted: 0 };
const lost = new ServiceError('conflict', 'the server has more batches', { reason: 'log_lost' });
const failure = new ServiceError('failure', 'it failed');
const missing = [{ kind: 'cash', expected: 100, held: 50 }] as const;
const answer = (command: 'trade' | 'halt' | 'stop'): LifeEvent => ({
  kind: 'answered',
  command,
  halt: {},
  supervision,
});
const restored = { kind: 'restored', denying: null, foreignEpoch: 0, error: undefined } as const;
const compared = { kind: 'compared', share: 0, hasSteps: true } as const;
const foreign = { order: 7, client_order_id: 'slabc-7' };

export const EVENTS = {
  tick: { kind: 'ticked' },
  claimed: { kind: 'claimed' },
  'answer trade': answer('trade'),
  'answer halt': answer('halt'),
  'answer stop': answer('stop'),
  fenced: { kind: 'fenced' },
  disowned: { kind: 'disowned' },
  'server failed': { kind: 'server_failed', error: failure },
  'log lost': { kind: 'server_failed', error: lost },
  restored,
  'holdings match': { ...compared, found: [] },
  'holdings missing': { ...compared, found: missing, share: 0.5 },
  'holdings unknown': { ...compared, found: undefined },
  'feed connected': { kind: 'feed_connected' },
  'feed ended': { kind: 'feed_ended' },
  'fresh bars': { kind: 'bars_arrived', isStale: false },
  'stale bars': { kind: 'bars_arrived', isStale: true },
  'foreign order': { kind: 'foreign_order_seen', ...foreign, epoch: 2 },
  stop: { kind: 'stop_requested', isFinal: false },
  'final stop': { kind: 'stop_requested', isFinal: true },
  interrupted: { kind: 'interrupted' },
  'write failed': { kind: 'write_failed', error: failure },
  failed: { kind: 'failed', error: failure },
  'orders canceled': { kind: 'orders_canceled', verified: true },
  'orders open': { kind: 'orders_canceled', verified: false },
} as const satisfies Readonly<Record<string, LifeEvent>>;

export type EventName = keyof typeof EVENTS;

/** A life with the facts that its host would observe. */
export interface Situation {
  readonly life: SessionLife;
  readonly facts: Facts;
}

const supervised = { thresholds: {}, open: [], used: [], latches: 0, lifted: 0, epoch: 1 };

const BEGINNING: Situation = {
  life: newLife(true, 0),
  facts: { now: 0, isLicensed: true, isClaimFresh: true, session: undefined },
};

/** Decisions that follow from an event, and the situation afterwards. */
export function happen({ life, facts }: Situation, name: EventName) {
  const isRestored = name === 'restored';
  const session = isRestored
    ? ({ status: 'running', hasWorkingOrders: true, supervised } as const)
    : facts.session;
  const before = { ...facts, session };
  const decisions = decide(life, EVENTS[name], before);
  const after: Situation = {
    life: decisions.reduce(evolve, life),
    facts: decisions.reduce(afterDecision, before),
  };
  return { decisions, after };
}

function afterDecision(facts: Facts, decision: Decision): Facts {
  if (decision.kind !== 'input_decided' || decision.input.kind !== 'control.halted') return facts;
  return { ...facts, session: { ...facts.session!, status: 'halted', hasWorkingOrders: false } };
}

const play = (...names: readonly EventName[]): Situation =>
  names.reduce((situation, name) => happen(situation, name).after, BEGINNING);

const RECONCILING = ['answer trade', 'restored'] as const;
const TRADING = [...RECONCILING, 'holdings match', 'feed connected'] as const;

export const SITUATIONS: Readonly<Record<string, Situation>> = {
  new: BEGINNING,
  restoring: play('answer trade'),
  reconciling: play(...RECONCILING),
  connecting: play(...RECONCILING, 'holdings match'),
  trading: play(...TRADING),
  stale: play(...TRADING, 'stale bars', 'tick'),
  suspecting: play(...TRADING, 'holdings missing'),
  latched: play(...TRADING, 'holdings missing', 'holdings missing', 'tick'),
  superseded: play(...TRADING, 'foreign order', 'tick'),
  finishing: play(...TRADING, 'feed ended'),
  stopping: play(...TRADING, 'stop', 'tick'),
  halting: play(...TRADING, 'answer halt'),
  failing: play(...TRADING, 'failed'),
  broken: play(...TRADING, 'write failed'),
  'halting early': play('answer halt'),
  'stopping early': play('stop', 'answer trade'),
  lost: play('log lost'),
  gone: play(...TRADING, 'disowned'),
  fenced: play(...TRADING, 'fenced'),
  ended: play(...TRADING, 'answer halt', 'orders canceled'),
};

/** Whether the event cannot occur, because the host begins the work that leads to it later, or once. */
export function isImpossible({ facts, life }: Situation, name: EventName): boolean {
  const { stage, claim, isLost, ending } = life;
  if (name === 'restored') return stage !== 'restoring' || claim === 'awaited' || isLost;
  if (name === 'orders canceled' || name === 'orders open') return ending === undefined;
  if (name === 'feed connected') return stage !== 'connecting';
  if (BARS.has(name)) return stage !== 'trading' || ending !== undefined;
  return COMPARISONS.has(name) && facts.session === undefined;
}

const BARS: ReadonlySet<EventName> = new Set([
  'fresh bars',
  'stale bars',
  'interrupted',
  'feed ended',
]);
const COMPARISONS: ReadonlySet<EventName> = new Set([
  'holdings match',
  'holdings missing',
  'holdings unknown',
  'foreign order',
]);

/** Short text of decisions; `ignored` without any. */
export function describe(decisions: readonly Decision[]): string {
  return decisions.map(describeOne).join(', ') || 'ignored';
}

function describeOne(decision: Decision): string {
  const { kind } = decision;
  if (kind === 'claim_settled') return `claim ${decision.claim}`;
  if (kind === 'input_decided') {
    const { input } = decision;
    return input.kind === 'control.denying' ? `deny ${input.reason ?? 'nothing'}` : input.kind;
  }
  if (kind === 'stage_entered') return `enter ${decision.stage}`;
  if (kind === 'comparison_scheduled') return `compare to ${decision.next}`;
  if (kind === 'ending_began' || kind === 'ending_changed') {
    const { outcome, isFinal } = decision.ending;
    return `${kind} ${outcome}${isFinal ? ' for good' : ''}`;
  }
  if (kind === 'ended') return decision.verified ? 'ended' : 'ended unverified';
  return kind;
}
