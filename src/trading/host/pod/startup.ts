/** What has to be there before a deployment trades: the venue, the session, what the venue has, and bars. */
import { ServiceError } from '../../../base/errors.ts';
import { reconcileHoldings, reconcileOrders } from '../../venues/reconcile.ts';
import type { SessionInput } from '../../session-input.ts';
import { stateHash } from '../../../events/session-state.ts';
import { Session } from '../../session.ts';
import { VenueSession } from '../../venue-session.ts';
import type { DenyReason, Venue, VenueOrderId } from '../../venue.ts';
import type { RunningBot, RunningFeed } from './deployed-bot.ts';
import { openDesk } from './order-gateway.ts';
import { mayPlace } from './permission.ts';
import { workingAtVenue, type AtVenue, type Item, type Opened, type Trading } from './runner.ts';
import { untilAnswered } from './cancel-all.ts';

/** After that, an order would be by a price that nobody has any more. */
const PLACE_WITHIN_MS = 60_000;

/** The session that the log leads to, once there is a claim to trade by and a venue to trade at. */
export async function open(t: Trading): Promise<Item> {
  try {
    await t.claimed.promise;
    await openVenue(t);
    if (!t.isLost) return { opened: await resume(t) };
    // An empty log would begin from nothing where there is more.
    t.resumed.resolve();
    return 'look';
  } catch (error) {
    t.resumed.resolve();
    throw error;
  }
}

async function openVenue(t: Trading): Promise<void> {
  const { config, bot, journal, log, venueTimes = {} } = t.parts;
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
  const isAllowed = (order?: VenueOrderId): boolean => mayPlace(t, order);
  const venue = await answered(t, 'the venue is not to be had', () =>
    t.doors.openExchangeVenue({
      name,
      definition,
      deploymentId: config.deployment_id,
      signal: t.signal,
      credentialsDir: chosen.credentials_dir,
      symbols: universe.symbols,
      currency: universe.currency,
      account: t.setup.config.account.model,
      onTrouble: (text) => log.warn(`${name}: ${text}`),
      // Checked right before sending, because the machine may have slept while the order waited.
      mayPlace: (id) => isAllowed() && t.at?.desk.isTimely(id) === true,
      ...times,
    }),
  );
  t.at = { venue, desk: deskOf(t, venue, isAllowed, placeWithinMs) };
  if (journal.rules === undefined) {
    const rules = await answered(t, 'the rules of the venue', () => venue.rules());
    await journal.keepRules(rules);
  }
}

const deskOf = (
  t: Trading,
  venue: Venue,
  isAllowed: (order?: VenueOrderId) => boolean,
  placeWithinMs: number,
) =>
  openDesk({
    venue,
    log: t.parts.log,
    signal: t.signal,
    mayPlace: isAllowed,
    placeWithinMs,
    onReport: (report) => t.inbox.put({ report }),
    onRetry: () => t.inbox.put('look'),
  });

async function resume(t: Trading): Promise<Opened> {
  const { setup, at } = t;
  const { journal, bot, config } = t.parts;
  let denying: DenyReason | null = null;
  let epoch = 1;
  let foreignEpoch = 0;
  const inputs = shown(journal.inputs(), bot.take, (input) => {
    if (input.kind === 'control.epoch_set') ({ epoch } = input);
    else if (input.kind === 'control.denying') {
      denying = input.reason;
      if (denying === 'superseded') foreignEpoch = epoch + 1;
    }
  });
  const session =
    at === undefined
      ? await Session.resume(setup, inputs)
      : await VenueSession.resume(
          { ...setup, deployment_id: config.deployment_id, rules: journal.rules! },
          inputs,
        );
  if (journal.state !== undefined && stateHash(session.state()) !== stateHash(journal.state)) {
    throw new ServiceError('failure', 'its log leads to another state than was recorded', {
      reason: 'not_reproducible',
      remedy: 'Deploy anew: the engine or the strategy is not what it was.',
    });
  }
  return { session, denying, foreignEpoch };
}

/** Steps shown to a strategy elsewhere at once. */
const STEPS_AT_ONCE = 256;

/** What was recorded, with steps shown to the strategy before the session takes them. */
async function* shown(
  inputs: AsyncIterable<SessionInput>,
  show: RunningBot['take'],
  onInput: (input: SessionInput) => void,
): AsyncGenerator<SessionInput> {
  let some: SessionInput[] = [];
  const flush = async function* () {
    const all = some;
    some = [];
    const steps = all.flatMap((input) => (input.kind === 'data.bars' ? [input.step] : []));
    if (steps.length > 0) await show(steps);
    yield* all;
  };
  for await (const input of inputs) {
    onInput(input);
    some.push(input);
    if (some.length === STEPS_AT_ONCE) yield* flush();
  }
  yield* flush();
}

/** What became of the orders that work while nobody looked. */
export async function reconcile(t: Trading): Promise<Item> {
  const reconciled = await answered(t, 'orders are not reconciled', () =>
    reconcileOrders(t.at!.venue, t.parts.config.deployment_id, workingAtVenue(t), Date.now()),
  );
  return { reconciled };
}

/** Whether the venue has what the session says that there is. */
export async function compare(t: Trading): Promise<Item> {
  const holdings = await answered(t, 'holdings are not known', () =>
    reconcileHoldings(t.at!.venue, t.session!.state()),
  );
  return { holdings };
}

/**
 * The same while it trades. Nothing is compared while an order is on its way to the venue: it may have
 * been filled there, and to ask for it by name would withdraw it.
 */
export async function compareAgain(t: Trading): Promise<Item> {
  const orders = workingAtVenue(t);
  if (orders.some(({ order }) => !t.reported.has(order))) return { holdings: undefined };
  for (const order of orders) {
    const report = await answered(t, 'an order is not known', () => t.at!.venue.find(order));
    if (report !== undefined) t.inbox.put({ report });
  }
  return compare(t);
}

export async function openBars(t: Trading): Promise<Item> {
  const { config, bot, catalogueDir, log } = t.parts;
  const feedOpened = await answered(t, 'no bars are to be had', () =>
    t.doors.openFeed(config, bot.bot, catalogueDir, log),
  );
  return { feedOpened };
}

export async function pumpBars(t: Trading, feed: RunningFeed): Promise<Item | undefined> {
  const { time } = t.session!.state();
  const stopped = AbortSignal.any([t.signal, t.feeding.signal]);
  try {
    for await (const item of feed.items(time === null ? undefined : Date.parse(time), stopped)) {
      await t.inbox.putBehind({ feed: item });
      stopped.throwIfAborted();
    }
    await t.inbox.putBehind('feed_ended');
    return undefined;
  } catch (error) {
    if (stopped.aborted) return undefined;
    throw error;
  }
}

export async function pumpReports(t: Trading, { venue, desk }: AtVenue): Promise<undefined> {
  for await (const report of venue.reports(t.signal)) {
    desk.heard();
    t.inbox.put({ report });
  }
}

export async function pumpTerms(t: Trading, { venue }: AtVenue): Promise<undefined> {
  for await (const terms of venue.terms(t.signal)) t.inbox.put({ terms });
}

const answered = <T>(t: Trading, what: string, work: () => Promise<T>): Promise<T> =>
  untilAnswered(work, (error) => t.parts.log.warn(`${what}: ${error.message}`), t.signal);
