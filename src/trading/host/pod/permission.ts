/** Whether orders may be placed, and what is told of that. */
import { msSince } from '../../../base/elapsed.ts';
import type { Mismatch } from '../../venues/reconcile.ts';
import { decideSupervision } from '../../session-supervision.ts';
import { VenueSession } from '../../venue-session.ts';
import type { DenyReason, VenueOrderId } from '../../venue.ts';
import type { RunnerState } from './server-connection.ts';
import type { Missing } from './health-server.ts';
import { take } from './record.ts';
import { working, type Trading } from './runner.ts';

const FEATURE = 'live_trading';
/** Beside the length of two bars: after that, no bars that should have come are overdue. */
const SILENCE_MS = 60_000;

/** Why new orders are to be denied at this very moment; null when they are not. */
function whyDeny(t: Trading): DenyReason | null {
  const { ending, mismatches, server, parts } = t;
  if (ending !== undefined) return ending.outcome === 'finished' ? t.denying : 'stopping';
  if (t.foreignEpoch > epochOf(t)) return 'superseded';
  const isMissing = mismatches !== undefined && mismatches.length > 0;
  if (t.isLatched || isMissing) return 'reconcile_mismatch';
  if (parts.gate?.check(FEATURE).allowed === false) return 'license_invalid';
  if (server !== undefined && !server.mayTrade()) return 'control_unreachable';
  return t.isStale ? 'stale_data' : null;
}

/** Epoch of the server's database that the session last received. */
export function epochOf({ session }: Trading): number {
  return session?.supervised.epoch ?? 1;
}

/** Whether an order that is on disk may be sent to the venue at this very moment, or any at all. */
export function mayPlace(t: Trading, order?: VenueOrderId): boolean {
  const { session } = t;
  if (order !== undefined && session instanceof VenueSession && session.isShut(order)) return false;
  // What was to be placed by a process before may be there: that is found out first.
  const isKnown = t.mismatches !== undefined;
  return isKnown && !t.isFenced && !t.isBroken && t.ending === undefined && whyDeny(t) === null;
}

/** Tells the session what people have settled, where that is new, and which permits have expired. */
export function settleSupervision(t: Trading): void {
  const { session, supervision } = t;
  if (session === undefined || supervision === undefined || t.isBroken) return;
  if (session.status !== 'running') return;
  const { supervised } = session;
  // The server counts latches of the session and of the runner together.
  if (t.isLatched && supervision.latches_lifted >= supervised.latches + t.latches) {
    t.isLatched = false;
    t.parts.log.info('a person has lifted the latch');
  }
  const latches_lifted = supervision.latches_lifted - t.latches;
  for (const input of decideSupervision(
    supervised,
    { ...supervision, latches_lifted },
    Date.now(),
  )) {
    take(t, input, session.supervise(input));
    t.parts.log.info(`people have settled: ${input.kind}`);
  }
}

/** Tells the session whether orders are denied, where that is new. */
export function settleDenial(t: Trading): void {
  const { session, parts, server } = t;
  if (session === undefined || t.isBroken || session.status !== 'running') return;
  const reason = whyDeny(t);
  if (reason === t.denying) return;
  t.denying = reason;
  take(t, { kind: 'control.denying', reason }, session.deny(reason));
  const { log, metrics } = parts;
  metrics.denying(reason);
  if (reason === null) log.info('new orders are taken again');
  else log[reason === 'stopping' ? 'info' : 'warn'](`new orders are denied: ${reason}`);
  server?.report();
}

/** For the server. */
export function describeRunner(t: Trading): RunnerState {
  const { ending, mismatches, denying, isExchange, at, checkedAt } = t;
  const status = (): RunnerState['status'] => {
    if (ending !== undefined) return ending.outcome === 'halted' ? 'halting' : 'stopping';
    if (mismatches === undefined) return 'starting';
    return denying === null ? 'trading' : 'denying';
  };
  const database_epoch = Math.max(epochOf(t), t.foreignEpoch);
  return {
    status: status(),
    denying,
    // Servers without epochs reject unknown fields.
    ...(database_epoch > 1 && { database_epoch }),
    venue: {
      connected: isExchange ? at !== undefined && at.desk.isConnected : true,
      open_orders: isExchange ? t.openOrders : working(t).length,
      checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    },
  };
}

/** What keeps it from trading, for people and clusters. */
export function missing(t: Trading): Missing {
  const { server, session, mismatches, at, ending } = t;
  const denying = whyDeny(t);
  const silent = silentSeconds(t);
  return {
    ...(server && !server.hasClaim && { claim: 'the server has not granted it' }),
    ...(session === undefined && { session: 'it is not resumed yet' }),
    ...(mismatches === undefined && { venue: 'it is not reconciled yet' }),
    ...(mismatches !== undefined && mismatches.length > 0 && { venue: told(mismatches) }),
    ...(t.feed === undefined && { feed: 'no bars come yet' }),
    ...(silent !== undefined && { feed: `no bars for ${silent} s` }),
    ...(at !== undefined && !at.desk.isConnected && { venue: 'it does not answer' }),
    ...(denying !== null && { denying }),
    ...(ending !== undefined && { ending: ending.outcome }),
  };
}

/** For how long there was no bar of an exchange, where there should have been one. */
function silentSeconds(t: Trading): number | undefined {
  if (t.feed === undefined || t.parts.config.exchange === undefined) return undefined;
  const ms = msSince(t.barAt ?? t.feedAt);
  return ms > 2 * t.barMs + SILENCE_MS ? Math.round(ms / 1000) : undefined;
}

export function told(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ kind, symbol, expected, held }) => `${symbol ?? kind}: ${held} of ${expected}`)
    .join('; ');
}
