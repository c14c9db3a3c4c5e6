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
  type Runner,
} from './runner.ts';
import { cancelAll } from './cancel-all.ts';

/** Both fit into the minute that a cluster waits before it kills. */
const CANCEL_WITHIN_MS = 20_000;
const REPORT_WITHIN_MS = 25_000;

interface Why {
  readonly error?: ServiceError;
  /** What is to be known of a halt. */
  readonly halt?: Readonly<Record<string, string>>;
}

/** Begins the end, or has it be for good where it was not. */
export function end(
  runner: Runner,
  outcome: Ending['outcome'],
  isFinal: boolean,
  { error, halt = {} }: Why = {},
): void {
  if (runner.ending === undefined) {
    runner.ending = { outcome, isFinal, error, orders: working(runner) };
    runner.feeding.abort();
    runner.parts.log.info(`ending: ${outcome}`);
    begin(runner, () => conclude(runner));
  } else if (isFinal && !runner.ending.isFinal)
    Object.assign(runner.ending, { outcome, isFinal, error });
  else return;
  haltSession(runner, halt);
}

export function fail(runner: Runner, error: unknown): void {
  const { log } = runner.parts;
  if (!(error instanceof ServiceError)) log.error({ err: error, msg: 'it fails' });
  const known =
    error instanceof ServiceError
      ? error
      : new ServiceError('failure', 'unexpected error; see the log', { cause: error });
  if (runner.ending !== undefined) log.error(`while it ends: ${known.message}`);
  end(runner, 'failed', true, { error: known });
}

/** What ends for good is halted, that nothing of it goes on whoever resumes it. */
export function haltSession(runner: Runner, why: Readonly<Record<string, string>> = {}): void {
  const { ending, session } = runner;
  if (ending?.isFinal !== true || session === undefined || runner.isBroken) return;
  const { status, working: left } = session.state();
  if (status !== 'running' && left.length === 0) return;
  take(runner, { kind: 'control.halted' }, session.halt(), why);
}

async function conclude(runner: Runner): Promise<Item> {
  const { config, journal, venueTimes } = runner.parts;
  const withinMs = venueTimes?.cancelWithinMs ?? CANCEL_WITHIN_MS;
  const until = performance.now() + withinMs;
  const soon = delay(withinMs, undefined, { signal: runner.signal }).catch(() => {});
  const { server } = runner;
  const isClaimed = (): boolean => server === undefined || server.hasClaim || runner.isGone;
  if (!isClaimed()) {
    // What is open may be another's; or of a process before, whose claim is over before long.
    if (working(runner).length > 0) await Promise.race([runner.claimed.promise, soon]);
    if (!isClaimed()) return { concluded: working(runner).length === 0 };
  }
  // A session that comes yet is to be halted, too.
  const resumed = Promise.race([runner.resumed.promise, soon]);
  if (!runner.isExchange) {
    await resumed;
    return { concluded: true };
  }
  const isUnbegun = runner.session === undefined && journal.state === undefined && !runner.isLost;
  if (isUnbegun) return { concluded: true };
  const cancel = (forMs: number): Promise<boolean> =>
    cancelAll({
      deploymentId: config.deployment_id,
      connection: () => runner.connection,
      working: () => workingAtVenue(runner),
      onOpen(count) {
        runner.openOrders = count;
        runner.checkedAt = Date.now();
      },
      withinMs: forMs,
      signal: runner.signal,
    });
  let [concluded] = await Promise.all([cancel(until - performance.now()), resumed]);
  while (!concluded && keepsCanceling(runner)) {
    runner.parts.log.error(
      'orders may still be open at the venue: the runner keeps canceling until none is open',
    );
    concluded = await cancel(withinMs);
  }
  return { concluded };
}

/** No other process has the credentials, so an ending runner exits only when it must. */
function keepsCanceling({ ending, isGone, parts, signal }: Runner): boolean {
  return ending?.isFinal === true && !isGone && !parts.stop.aborted && !signal.aborted;
}

/** Tells the server how it ended. */
export async function finish(
  runner: Runner,
  { outcome, isFinal, error, orders: begun }: Ending,
  verified: boolean,
  state: SessionState | undefined,
): Promise<RunEnd> {
  const { server, parts } = runner;
  const { log } = parts;
  const left = new Set(runner.isExchange ? working(runner).map(({ order }) => order) : []);
  const orders = begun.map(({ order, symbol }) => ({
    order,
    symbol,
    verified: verified || (runner.session !== undefined && !left.has(order)),
  }));
  const keepEnd = (): Promise<void> =>
    parts.journal.keepEnd({ outcome }).catch((fault: unknown) => {
      log.error(`the end could not be put on disk: ${String(fault)}`);
    });
  const result = { outcome, verified, orders, error, state, steps: runner.steps };
  if (runner.isGone && verified) await keepEnd();
  if (server === undefined || runner.isGone || !server.hasClaim) return result;
  const answer = await server.end(
    {
      outcome: outcome === 'finished' ? 'stopped' : outcome,
      verified,
      orders,
      error: error === undefined ? null : reportedError(error),
    },
    REPORT_WITHIN_MS,
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
