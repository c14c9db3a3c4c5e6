/** The end of a deployment: nothing more is placed, all that is open is canceled, and the server is told. */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../base/errors.ts';
import { toErrorData } from '../../../base/error-data.ts';
import type { SessionState } from '../../../events/session-state.ts';
import type { Ended } from './server-connection.ts';
import { take } from './record.ts';
import {
  begin,
  working,
  workingAtVenue,
  type Ending,
  type Item,
  type RunEnd,
  type Trading,
} from './runner.ts';
import { cancelAll } from './cancel-all.ts';

/** Both fit into the minute that a cluster waits before it kills. */
const CANCEL_WITHIN_MS = 20_000;
const TELL_WITHIN_MS = 25_000;

interface Why {
  readonly error?: ServiceError;
  /** What is to be known of a halt. */
  readonly halt?: Readonly<Record<string, string>>;
}

/** Begins the end, or has it be for good where it was not. */
export function end(
  t: Trading,
  outcome: Ending['outcome'],
  isFinal: boolean,
  { error, halt = {} }: Why = {},
): void {
  if (t.ending === undefined) {
    t.ending = { outcome, isFinal, error, orders: working(t) };
    t.feeding.abort();
    t.parts.log.info(`ending: ${outcome}`);
    begin(t, () => conclude(t));
  } else if (isFinal && !t.ending.isFinal) Object.assign(t.ending, { outcome, isFinal, error });
  else return;
  haltSession(t, halt);
}

export function fail(t: Trading, error: unknown): void {
  const { log } = t.parts;
  if (!(error instanceof ServiceError)) log.error({ err: error, msg: 'it fails' });
  const known =
    error instanceof ServiceError
      ? error
      : new ServiceError('failure', 'unexpected error; see the log', { cause: error });
  if (t.ending !== undefined) log.error(`while it ends: ${known.message}`);
  end(t, 'failed', true, { error: known });
}

/** What ends for good is halted, that nothing of it goes on whoever resumes it. */
export function haltSession(t: Trading, why: Readonly<Record<string, string>> = {}): void {
  const { ending, session } = t;
  if (ending?.isFinal !== true || session === undefined || t.isBroken) return;
  const { status, working: left } = session.state();
  if (status !== 'running' && left.length === 0) return;
  take(t, { kind: 'control.halted' }, session.halt(), why);
}

async function conclude(t: Trading): Promise<Item> {
  const { config, journal, venueTimes } = t.parts;
  const withinMs = venueTimes?.cancelWithinMs ?? CANCEL_WITHIN_MS;
  const until = performance.now() + withinMs;
  const soon = delay(withinMs, undefined, { signal: t.signal }).catch(() => {});
  const { server } = t;
  const isClaimed = (): boolean => server === undefined || server.hasClaim || t.isGone;
  if (!isClaimed()) {
    // What is open may be another's; or of a process before, whose claim is over before long.
    if (working(t).length > 0) await Promise.race([t.claimed.promise, soon]);
    if (!isClaimed()) return { concluded: working(t).length === 0 };
  }
  // A session that comes yet is to be halted, too.
  const resumed = Promise.race([t.resumed.promise, soon]);
  if (!t.isExchange) {
    await resumed;
    return { concluded: true };
  }
  const isUnbegun = t.session === undefined && journal.state === undefined && !t.isLost;
  if (isUnbegun) return { concluded: true };
  const cancel = (forMs: number): Promise<boolean> =>
    cancelAll({
      deploymentId: config.deployment_id,
      at: () => t.at,
      working: () => workingAtVenue(t),
      onOpen(count) {
        t.openOrders = count;
        t.checkedAt = Date.now();
      },
      withinMs: forMs,
      signal: t.signal,
    });
  let [concluded] = await Promise.all([cancel(until - performance.now()), resumed]);
  while (!concluded && keepsCanceling(t)) {
    t.parts.log.error(
      'orders may still be open at the venue: the runner keeps canceling until none is open',
    );
    concluded = await cancel(withinMs);
  }
  return { concluded };
}

/** No other process has the credentials, so an ending runner exits only when it must. */
function keepsCanceling({ ending, isGone, parts, signal }: Trading): boolean {
  return ending?.isFinal === true && !isGone && !parts.stop.aborted && !signal.aborted;
}

/** Tells the server how it ended. */
export async function finish(
  t: Trading,
  { outcome, isFinal, error, orders: begun }: Ending,
  verified: boolean,
  state: SessionState | undefined,
): Promise<RunEnd> {
  const { server, parts } = t;
  const { log } = parts;
  const left = new Set(t.isExchange ? working(t).map(({ order }) => order) : []);
  const orders = begun.map(({ order, symbol }) => ({
    order,
    symbol,
    verified: verified || (t.session !== undefined && !left.has(order)),
  }));
  const keepEnd = (): Promise<void> =>
    parts.journal.keepEnd({ outcome }).catch((fault: unknown) => {
      log.error(`the end could not be put on disk: ${String(fault)}`);
    });
  const result = { outcome, verified, orders, error, state, steps: t.steps };
  if (t.isGone && verified) await keepEnd();
  if (server === undefined || t.isGone || !server.hasClaim) return result;
  const answer = await server.end(
    {
      outcome: outcome === 'finished' ? 'stopped' : outcome,
      verified,
      orders,
      error: error === undefined ? null : reportedError(error),
    },
    TELL_WITHIN_MS,
  );
  if (answer === undefined) log.warn('the server could not be told how it ended');
  const isOver = isFinal && verified && (outcome === 'failed' || answer?.command !== 'trade');
  if (answer !== undefined && isOver) await keepEnd();
  return result;
}

function reportedError(thrown: ServiceError): Ended['error'] {
  const { code, message, reason, remedy } = toErrorData(thrown).error;
  return {
    code,
    message,
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
  };
}
