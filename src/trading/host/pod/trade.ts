/**
 * One deployment at work. Whatever happens (bars, what the venue tells, what the server says, a
 * signal) comes to one inbox and is taken in order, bars after all else: the session is told, what it
 * was told and what came of it is put on disk, and only then the venue is asked for anything. Nobody
 * who takes waits for the venue or the server; they answer into the inbox.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../base/errors.ts';
import { openExchangeVenue } from '../../venues/exchange-venue.ts';
import { openFeed } from './deployed-bot.ts';
import { connectToServer } from './server-connection.ts';
import { fail, finish } from './ending.ts';
import { handle } from './handle.ts';
import { open } from './startup.ts';
import { describeRunner, missing, settleSupervision, settleDenial } from './permission.ts';
import { record } from './record.ts';
import { begin, newRunner, working } from './runner.ts';
import type { Connections, RunEnd, TradeOptions, Runner } from './runner.ts';

export type { Connections, RunEnd } from './runner.ts';

/** Of a deployment. A run in virtual time has others, which answer as these do. */
const CONNECTIONS: Connections = { openExchangeVenue, openFeed, connectToServer };

const LOOK_EVERY_MS = 1000;
/** Bars are taken for so long before what they came to is put on disk. */
const TURN_MS = 50;
/** For connections to be closed, once there is nothing more to be said by them. */
const CLOSE_WITHIN_MS = 2000;

export async function trade(parts: TradeOptions): Promise<RunEnd> {
  const { journal, stop, onView } = parts;
  const closing = new AbortController();
  const runner = newRunner(parts, parts.connections ?? CONNECTIONS, closing.signal);
  startReports(runner);
  onView({
    working: () => working(runner),
    times: () => ({
      bar: runner.barAt,
      report: runner.server?.answeredAt,
      venue: runner.connection?.gateway.answeredAt,
    }),
    missing: () => missing(runner),
  });
  const look = setInterval(() => runner.inbox.put('look'), LOOK_EVERY_MS);
  const onStop = (): void => runner.inbox.put('stop');
  stop.addEventListener('abort', onStop);
  if (stop.aborted) onStop();
  begin(runner, () => open(runner));
  try {
    while (!runner.isFenced && runner.verified === undefined) await turn(runner);
    const state = runner.session?.state() ?? journal.state;
    if (!runner.isFenced && runner.ending !== undefined) {
      return await finish(runner, runner.ending, runner.verified === true, state);
    }
    const nothing = { verified: false, orders: [], error: undefined };
    return { outcome: 'fenced', ...nothing, state, steps: runner.steps };
  } finally {
    clearInterval(look);
    stop.removeEventListener('abort', onStop);
    closing.abort(new ServiceError('interrupted', 'the runner ends'));
    const closed = Promise.allSettled([runner.feed?.close(), runner.connection?.venue.close()]);
    await Promise.race([closed, delay(CLOSE_WITHIN_MS, undefined, { ref: false })]);
  }
}

function startReports(runner: Runner): void {
  const { config, instanceId, log, journal } = runner.parts;
  if (config.control === undefined) return runner.claimed.resolve();
  runner.server = runner.connections.connectToServer({
    control: config.control,
    deploymentId: config.deployment_id,
    instanceId,
    describeRunner: () => describeRunner(runner),
    log,
    signal: runner.signal,
    nextBatch: (recorded) => journal.nextBatch(recorded),
    onNews: (news) => runner.inbox.put({ server: news }),
  });
}

function settle(runner: Runner): void {
  settleDenial(runner);
  settleSupervision(runner);
}

/** Takes what waits, puts on disk what came of it, and asks the venue for what is to be asked. */
async function turn(runner: Runner): Promise<void> {
  await runner.inbox.news();
  const until = performance.now() + TURN_MS;
  try {
    for (let item = runner.inbox.take(); item !== undefined; item = runner.inbox.take()) {
      settle(runner);
      await handle(runner, item);
      if (runner.isFenced || performance.now() >= until) break;
    }
    settle(runner);
    await record(runner);
  } catch (error) {
    runner.isBroken = true;
    fail(runner, error);
  }
  if (runner.isFenced || runner.isBroken) return;
  if (runner.session?.rules !== undefined) runner.connection!.gateway.send(runner.session.outbox());
}
