/**
 * One deployment at work. Whatever happens (bars, what the venue tells, what the server says, a
 * signal) comes to one inbox and is taken in order, bars after all else: the session is told, what it
 * was told and what came of it is put on disk, and only then the venue is asked for anything. Nobody
 * who takes waits for the venue or the server; they answer into the inbox.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../base/errors.ts';
import { openExchangeVenue } from '../../venues/exchange-venue.ts';
import { VenueSession } from '../../venue-session.ts';
import { openFeed } from './deployed-bot.ts';
import { connectToServer } from './server-connection.ts';
import { fail, finish } from './ending.ts';
import { handle } from './handle.ts';
import { open } from './startup.ts';
import { describeRunner, missing, settleSupervision, settleDenial } from './permission.ts';
import { record } from './record.ts';
import { begin, newTrading, working } from './runner.ts';
import type { Doors, RunEnd, Trade, Trading } from './runner.ts';

export type { Doors, RunEnd } from './runner.ts';

/** Of a deployment. A run in virtual time has others, which answer as these do. */
const DOORS: Doors = { openExchangeVenue, openFeed, connectToServer };

const LOOK_EVERY_MS = 1000;
/** Bars are taken for so long before what they came to is put on disk. */
const TURN_MS = 50;
/** For connections to be closed, once there is nothing more to be said by them. */
const CLOSE_WITHIN_MS = 2000;

export async function trade(parts: Trade): Promise<RunEnd> {
  const { journal, stop, onView } = parts;
  const closing = new AbortController();
  const t = newTrading(parts, parts.doors ?? DOORS, closing.signal);
  startReports(t);
  onView({
    working: () => working(t),
    times: () => ({ bar: t.barAt, report: t.server?.heardAt, venue: t.at?.desk.heardAt }),
    missing: () => missing(t),
  });
  const look = setInterval(() => t.inbox.put('look'), LOOK_EVERY_MS);
  const onStop = (): void => t.inbox.put('stop');
  stop.addEventListener('abort', onStop);
  if (stop.aborted) onStop();
  begin(t, () => open(t));
  try {
    while (!t.isFenced && t.verified === undefined) await turn(t);
    const state = t.session?.state() ?? journal.state;
    if (!t.isFenced && t.ending !== undefined) {
      return await finish(t, t.ending, t.verified === true, state);
    }
    const nothing = { verified: false, orders: [], error: undefined };
    return { outcome: 'fenced', ...nothing, state, steps: t.steps };
  } finally {
    clearInterval(look);
    stop.removeEventListener('abort', onStop);
    closing.abort(new ServiceError('interrupted', 'the runner ends'));
    const closed = Promise.allSettled([t.feed?.close(), t.at?.venue.close()]);
    await Promise.race([closed, delay(CLOSE_WITHIN_MS, undefined, { ref: false })]);
  }
}

function startReports(t: Trading): void {
  const { config, instanceId, log, journal } = t.parts;
  if (config.control === undefined) return t.claimed.resolve();
  t.server = t.doors.connectToServer({
    control: config.control,
    deploymentId: config.deployment_id,
    instanceId,
    describeRunner: () => describeRunner(t),
    log,
    signal: t.signal,
    nextBatch: (recorded) => journal.nextBatch(recorded),
    onNews: (news) => t.inbox.put({ server: news }),
  });
}

function settle(t: Trading): void {
  settleDenial(t);
  settleSupervision(t);
}

/** Takes what waits, puts on disk what came of it, and asks the venue for what is to be asked. */
async function turn(t: Trading): Promise<void> {
  await t.inbox.news();
  const until = performance.now() + TURN_MS;
  try {
    for (let item = t.inbox.take(); item !== undefined; item = t.inbox.take()) {
      settle(t);
      await handle(t, item);
      if (t.isFenced || performance.now() >= until) break;
    }
    settle(t);
    await record(t);
  } catch (error) {
    t.isBroken = true;
    fail(t, error);
  }
  if (t.isFenced || t.isBroken) return;
  if (t.session instanceof VenueSession) t.at!.desk.send(t.session.outbox());
}
