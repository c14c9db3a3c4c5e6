/** Whether orders may be placed, and what is told of that. */
import { msSince } from '../../../base/elapsed.ts';
import type { Mismatch } from '../../venues/reconcile.ts';
import { decideSupervision } from '../../session-supervision.ts';
import type { DenyReason, VenueOrderId } from '../../venue.ts';
import type { RunnerState } from './server-connection.ts';
import type { Missing } from './health-server.ts';
import { take } from './record.ts';
import { working, type Runner } from './runner.ts';

const FEATURE = 'live_trading';
/** Beside the length of two bars: after that, no bars that should have come are overdue. */
const SILENCE_MS = 60_000;

/** Why new orders are to be denied at this very moment; null when they are not. */
function whyDeny(runner: Runner): DenyReason | null {
  const { ending, mismatches, server, parts } = runner;
  if (ending !== undefined) return ending.outcome === 'finished' ? runner.denying : 'stopping';
  if (runner.foreignEpoch > epochOf(runner)) return 'superseded';
  const isMissing = mismatches !== undefined && mismatches.length > 0;
  if (runner.isLatched || isMissing) return 'reconcile_mismatch';
  if (parts.gate?.check(FEATURE).allowed === false) return 'license_invalid';
  if (server !== undefined && !server.mayTrade()) return 'control_unreachable';
  return runner.isStale ? 'stale_data' : null;
}

/** Epoch of the server's database that the session last received. */
export function epochOf({ session }: Runner): number {
  return session?.supervised.epoch ?? 1;
}

/** Whether an order that is on disk may be sent to the venue at this very moment, or any at all. */
export function mayPlace(runner: Runner, order?: VenueOrderId): boolean {
  const { session } = runner;
  if (order !== undefined && session?.rules !== undefined && session.isShut(order)) return false;
  // What was to be placed by a process before may be there: that is found out first.
  const isKnown = runner.mismatches !== undefined;
  return (
    isKnown &&
    !runner.isFenced &&
    !runner.isBroken &&
    runner.ending === undefined &&
    whyDeny(runner) === null
  );
}

/** Tells the session what people have settled, where that is new, and which permits have expired. */
export function settleSupervision(runner: Runner): void {
  const { session, supervision } = runner;
  if (session === undefined || supervision === undefined || runner.isBroken) return;
  if (session.status !== 'running') return;
  const { supervised } = session;
  // The server counts latches of the session and of the runner together.
  if (runner.isLatched && supervision.latches_lifted >= supervised.latches + runner.latches) {
    runner.isLatched = false;
    runner.parts.log.info('a person has lifted the latch');
  }
  const latches_lifted = supervision.latches_lifted - runner.latches;
  for (const input of decideSupervision(
    supervised,
    { ...supervision, latches_lifted },
    Date.now(),
  )) {
    take(runner, input, session.supervise(input));
    runner.parts.log.info(`people have settled: ${input.kind}`);
  }
}

/** Tells the session whether orders are denied, where that is new. */
export function settleDenial(runner: Runner): void {
  const { session, parts, server } = runner;
  if (session === undefined || runner.isBroken || session.status !== 'running') return;
  const reason = whyDeny(runner);
  if (reason === runner.denying) return;
  runner.denying = reason;
  take(runner, { kind: 'control.denying', reason }, session.deny(reason));
  const { log, metrics } = parts;
  metrics.denying(reason);
  if (reason === null) log.info('new orders are taken again');
  else log[reason === 'stopping' ? 'info' : 'warn'](`new orders are denied: ${reason}`);
  server?.report();
}

/** For the server. */
export function describeRunner(runner: Runner): RunnerState {
  const { ending, mismatches, denying, isExchange, connection, checkedAt } = runner;
  const status = (): RunnerState['status'] => {
    if (ending !== undefined) return ending.outcome === 'halted' ? 'halting' : 'stopping';
    if (mismatches === undefined) return 'starting';
    return denying === null ? 'trading' : 'denying';
  };
  const database_epoch = Math.max(epochOf(runner), runner.foreignEpoch);
  return {
    status: status(),
    denying,
    // Servers without epochs reject unknown fields.
    ...(database_epoch > 1 && { database_epoch }),
    venue: {
      connected: isExchange ? connection !== undefined && connection.gateway.isConnected : true,
      open_orders: isExchange ? runner.openOrders : working(runner).length,
      checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    },
  };
}

/** What keeps it from trading, for people and clusters. */
export function missing(runner: Runner): Missing {
  const { server, session, mismatches, connection, ending } = runner;
  const denying = whyDeny(runner);
  const silent = silentSeconds(runner);
  return {
    ...(server && !server.hasClaim && { claim: 'the server has not granted it' }),
    ...(session === undefined && { session: 'it is not resumed yet' }),
    ...(mismatches === undefined && { venue: 'it is not reconciled yet' }),
    ...(mismatches !== undefined &&
      mismatches.length > 0 && { venue: formatMismatches(mismatches) }),
    ...(runner.feed === undefined && { feed: 'no bars come yet' }),
    ...(silent !== undefined && { feed: `no bars for ${silent} s` }),
    ...(connection !== undefined &&
      !connection.gateway.isConnected && { venue: 'it does not answer' }),
    ...(denying !== null && { denying }),
    ...(ending !== undefined && { ending: ending.outcome }),
  };
}

/** For how long there was no bar of an exchange, where there should have been one. */
function silentSeconds(runner: Runner): number | undefined {
  if (runner.feed === undefined || runner.parts.config.exchange === undefined) return undefined;
  const ms = msSince(runner.barAt ?? runner.feedAt);
  return ms > 2 * runner.barMs + SILENCE_MS ? Math.round(ms / 1000) : undefined;
}

export function formatMismatches(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ kind, symbol, expected, held }) => `${symbol ?? kind}: ${held} of ${expected}`)
    .join('; ');
}
