/** What has to be there before a deployment trades: the venue, the session, what the venue has, and bars. */
import { reconcileHoldings, reconcileOrders } from '../../venues/reconcile.ts';
import { restoreSession } from '../../restore-session.ts';
import type { DenyReason, Venue, VenueOrderId } from '../../venue.ts';
import type { RunningFeed } from './deployed-bot.ts';
import { openOrderGateway } from './order-gateway.ts';
import { mayPlace } from './permission.ts';
import {
  workingAtVenue,
  type VenueConnection,
  type Item,
  type Opened,
  type Runner,
} from './runner.ts';
import { untilAnswered } from './cancel-all.ts';

/** After that, an order would be by a price that nobody has any more. */
const PLACE_WITHIN_MS = 60_000;

/** The session that the log leads to, once there is a claim to trade by and a venue to trade at. */
export async function open(runner: Runner): Promise<Item> {
  try {
    await runner.claimed.promise;
    await openVenue(runner);
    if (!runner.isLost) return { opened: await resume(runner) };
    // An empty log would begin from nothing where there is more.
    runner.resumed.resolve();
    return 'look';
  } catch (error) {
    runner.resumed.resolve();
    throw error;
  }
}

async function openVenue(runner: Runner): Promise<void> {
  const { config, bot, journal, log, venueTimes = {} } = runner.parts;
  const { venue: chosen, exchange } = config;
  if (chosen.type !== 'exchange') return;
  const { name, ...definition } = exchange!;
  const {
    cancelWithinMs: _c,
    placeWithinMs = PLACE_WITHIN_MS,
    freshForMs: _f,
    reconcileMs: _r,
    confirmMs: _m,
    ...times
  } = venueTimes;
  const { universe } = bot.bot.spec.spec;
  const isAllowed = (order?: VenueOrderId): boolean => mayPlace(runner, order);
  const venue = await answered(runner, 'the venue is not to be had', () =>
    runner.connections.openExchangeVenue({
      name,
      definition,
      deploymentId: config.deployment_id,
      signal: runner.signal,
      credentialsDir: chosen.credentials_dir,
      symbols: universe.symbols,
      currency: universe.currency,
      account: runner.setup.config.account.model,
      onTrouble: (text) => log.warn(`${name}: ${text}`),
      // Checked right before sending, because the machine may have slept while the order waited.
      mayPlace: (id) => isAllowed() && runner.connection?.gateway.isTimely(id) === true,
      ...times,
    }),
  );
  runner.connection = { venue, gateway: openGateway(runner, venue, isAllowed, placeWithinMs) };
  if (journal.rules === undefined) {
    const rules = await answered(runner, 'the rules of the venue', () => venue.rules());
    await journal.keepRules(rules);
  }
}

const openGateway = (
  runner: Runner,
  venue: Venue,
  isAllowed: (order?: VenueOrderId) => boolean,
  placeWithinMs: number,
) =>
  openOrderGateway({
    venue,
    log: runner.parts.log,
    signal: runner.signal,
    mayPlace: isAllowed,
    placeWithinMs,
    onReport: (report) => runner.inbox.put({ report }),
    onRetry: () => runner.inbox.put('look'),
  });

async function resume(runner: Runner): Promise<Opened> {
  const { setup, connection } = runner;
  const { journal, bot, config } = runner.parts;
  let denying: DenyReason | null = null;
  let epoch = 1;
  let foreignEpoch = 0;
  const inputs = async function* () {
    for await (const input of journal.inputs()) {
      if (input.kind === 'control.epoch_set') ({ epoch } = input);
      else if (input.kind === 'control.denying') {
        denying = input.reason;
        if (denying === 'superseded') foreignEpoch = epoch + 1;
      }
      yield input;
    }
  };
  const venue = connection && { deployment_id: config.deployment_id, rules: journal.rules! };
  const session = await restoreSession({ ...setup, venue }, inputs(), bot.take, journal.state);
  return { session, denying, foreignEpoch };
}

/** What became of the orders that work while nobody looked. */
export async function reconcile(runner: Runner): Promise<Item> {
  const reconciled = await answered(runner, 'orders are not reconciled', () =>
    reconcileOrders(
      runner.connection!.venue,
      runner.parts.config.deployment_id,
      workingAtVenue(runner),
      Date.now(),
    ),
  );
  return { reconciled };
}

/** Whether the venue has what the session says that there is. */
export async function compare(runner: Runner): Promise<Item> {
  const holdings = await answered(runner, 'holdings are not known', () =>
    reconcileHoldings(runner.connection!.venue, runner.session!.state()),
  );
  return { holdings };
}

/**
 * The same while it trades. Nothing is compared while an order is on its way to the venue: it may have
 * been filled there, and to ask for it by name would withdraw it.
 */
export async function compareAgain(runner: Runner): Promise<Item> {
  const orders = workingAtVenue(runner);
  if (orders.some(({ order }) => !runner.reported.has(order))) return { holdings: undefined };
  for (const order of orders) {
    const report = await answered(runner, 'an order is not known', () =>
      runner.connection!.venue.find(order),
    );
    if (report !== undefined) runner.inbox.put({ report });
  }
  return compare(runner);
}

export async function openBars(runner: Runner): Promise<Item> {
  const { config, bot, catalogueDir, log } = runner.parts;
  const feedOpened = await answered(runner, 'no bars are to be had', () =>
    runner.connections.openFeed(config, bot.bot, catalogueDir, log),
  );
  return { feedOpened };
}

export async function pumpBars(runner: Runner, feed: RunningFeed): Promise<Item | undefined> {
  const { time } = runner.session!.state();
  const stopped = AbortSignal.any([runner.signal, runner.feeding.signal]);
  try {
    for await (const item of feed.items(time === null ? undefined : Date.parse(time), stopped)) {
      await runner.inbox.putBehind({ feed: item });
      stopped.throwIfAborted();
    }
    await runner.inbox.putBehind('feed_ended');
    return undefined;
  } catch (error) {
    if (stopped.aborted) return undefined;
    throw error;
  }
}

export async function pumpReports(
  runner: Runner,
  { venue, gateway }: VenueConnection,
): Promise<undefined> {
  for await (const report of venue.reports(runner.signal)) {
    gateway.noteAnswer();
    runner.inbox.put({ report });
  }
}

export async function pumpTerms(runner: Runner, { venue }: VenueConnection): Promise<undefined> {
  for await (const terms of venue.terms(runner.signal)) runner.inbox.put({ terms });
}

const answered = <T>(runner: Runner, what: string, work: () => Promise<T>): Promise<T> =>
  untilAnswered(work, (error) => runner.parts.log.warn(`${what}: ${error.message}`), runner.signal);
