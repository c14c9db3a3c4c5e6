/** The safeguards of RTS 6 Articles 12 to 17, and how a stress test tries each under the target load. */
import type { Order } from '../../engine/orders/order.ts';
import { MINUTE } from '../../base/durations.ts';
import type { ActContext } from '../conformance/exerciser.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { inWorld } from '../conformance/world.ts';
import { BOUNDS } from './bounds.ts';
import { MOST_AT_ONCE } from './load-schedule.ts';
import { rebuildFromLog } from './rebuild-from-log.ts';
import { Trial, type Finding } from './safeguard-trial.ts';
import { openSpan, type Meters } from './meters.ts';
import type { Load } from './stress-load.ts';
import { arePositionsEqual } from './venue-agreement.ts';

/** Variants of the bot under test. */
export interface BotVariants {
  /** The unchanged bot. */
  readonly own: TriedBot;
  /** The bot without limits on messages and repeated executions. */
  readonly lifted: TriedBot;
  /** The bot without the limit on messages. */
  readonly latching: TriedBot;
}

interface Safeguard {
  readonly id: string;
  /** Citations, see `article`. */
  readonly articles: readonly string[];
  /** `lifted` by default. */
  readonly bot?: keyof BotVariants;
  /** Whether the first bar has one order only, so that it uses up no limit; it has the load by default. */
  readonly startsQuietly?: true;
  readonly play: (trial: Trial) => Promise<void>;
}

const SAFEGUARDS = [
  { id: 'kill', articles: ['12(1)', '10'], play: tryKill },
  { id: 'limits', articles: ['15(1)', '10'], play: tryOrderLimits },
  { id: 'collar_period', articles: ['15(1)(a)', '10'], play: tryPeriodCollar },
  {
    id: 'reserve',
    articles: ['15(1)(d)', '10'],
    bot: 'own',
    startsQuietly: true,
    play: tryReserve,
  },
  {
    id: 'repetition',
    articles: ['15(3)', '10'],
    bot: 'latching',
    startsQuietly: true,
    play: tryRepetition,
  },
  { id: 'throttle', articles: ['10', 'RTS 7 9(3)(c)'], play: tryThrottle },
  { id: 'market', articles: ['10', '16(5)'], play: tryMarket },
  { id: 'reconciliation', articles: ['17(3)', '10'], play: tryReconciliation },
  { id: 'alerts', articles: ['16(5)', '10'], play: tryAlerts },
  { id: 'surveillance', articles: ['13(7)', '17(3)', '10'], play: trySurveillance },
  { id: 'shutdown', articles: ['14(3)', '10'], play: tryShutdown },
] as const satisfies readonly Safeguard[];

type SafeguardId = (typeof SAFEGUARDS)[number]['id'];

export interface SafeguardResult extends Finding {
  readonly id: SafeguardId;
  /** Citations, see `article`. */
  readonly articles: readonly string[];
}

/** @param load the target load of one bar. */
export async function trySafeguards(
  bots: BotVariants,
  seed: number,
  load: Load,
  meters: Meters,
): Promise<SafeguardResult[]> {
  const results: SafeguardResult[] = [];
  for (const { id } of SAFEGUARDS) results.push(await trySafeguard(id, bots, seed, load, meters));
  return results;
}

export async function trySafeguard(
  id: SafeguardId,
  bots: BotVariants,
  seed: number,
  load: Load,
  meters: Meters,
): Promise<SafeguardResult> {
  const safeguard: Safeguard = SAFEGUARDS.find((one) => one.id === id)!;
  const { articles, bot = 'lifted', startsQuietly, play } = safeguard;
  return inWorld(bots[bot], { seed, latencyMs: 0 }, async (world) => {
    const trial = new Trial(world, load, meters);
    await world.begin();
    await trial.player.playBar(startsQuietly ? { ...load, fills: 0, cancels: 0, out: 1 } : load);
    await play(trial);
    return { id, articles, ...trial.conclude() };
  });
}

async function tryKill(trial: Trial): Promise<void> {
  const { world, load, meters } = trial;
  let sent = -Infinity;
  world.exchange.listen(({ kind, call, time }) => {
    if (kind === 'request' && call === 'DELETE /order') sent = time;
  });
  await trial.playLoad();
  const open = trial.countOpenOrders();
  const begun = world.exchange.now;
  const span = openSpan(meters);
  const isConfirmed = await trial.endSession('halt');
  // The venue's virtual clock stands still while the machine computes, so both times count.
  const { realMs, netMs } = span();
  const since = (time: number) => ({ ms: time - begun + realMs, netMs: time - begun + netMs });
  const allSent = open === 0 ? { ms: 0, netMs: 0 } : since(sent);
  const allConfirmed = since(world.exchange.now);
  trial.measure({
    open_orders: open,
    sent_ms: allSent.ms,
    sent_net_ms: allSent.netMs,
    confirmed_ms: allConfirmed.ms,
    confirmed_net_ms: allConfirmed.netMs,
  });
  trial.check(open > 0 || load.cancels === 0, 'the bot has an open order to cancel');
  trial.check(isConfirmed, 'the bot is halted, and the venue confirms that no order is open');
  trial.check(trial.countOpenOrders() === 0, 'no order is left open');
  trial.checkDuration(allSent, BOUNDS.killSentMs, 'all cancels are sent');
  trial.checkDuration(allConfirmed, BOUNDS.killConfirmedMs, 'all cancels are confirmed');
}

async function tryOrderLimits(trial: Trial): Promise<void> {
  const { exerciser, config, sizes } = trial.world;
  const { risk } = config;
  const { below, price, unit } = sizes;
  const breaches = {
    price_collar_bps: {
      limit: price * Math.max(0.01, 1 - (risk.price_collar_bps / 10_000) * 1.1),
      quantity: unit,
    },
    max_order_value: { limit: below, quantity: (risk.max_order_value / below) * 1.01 + unit },
    max_order_qty: { limit: below, quantity: risk.max_order_qty * 1.01 + unit },
  };
  const names = Object.keys(breaches) as (keyof typeof breaches)[];
  const isSet = (name: keyof typeof breaches): boolean => Number.isFinite(risk[name]);
  const set = names.filter(isSet);
  const unset = names.filter((name) => !isSet(name));
  trial.checkSet(unset, 'limits on price, value and volume are set');
  let caught = 0;
  exerciser.schedule(({ order }) => {
    for (const name of set) {
      const { status } = order({ type: 'limit', side: 'buy', ...breaches[name] });
      if (status === 'denied') caught += 1;
      else trial.check(false, `an order beyond ${name} is denied`, `the order is ${status}`);
    }
  });
  await trial.playLoad();
  trial.measure({ offered: set.length, caught, missed: set.length - caught });
}

async function tryPeriodCollar(trial: Trial): Promise<void> {
  const { world } = trial;
  const collar = world.config.optionalLimits?.price_collar_period;
  trial.checkSet(collar ? [] : ['price_collar_period'], 'a collar over a period is set');
  if (collar === undefined) return;
  // The market moves beyond the collar of the period, and the order follows it.
  const price = Number((world.sizes.price * (1 + (collar.bps / 10_000) * 1.1)).toFixed(2));
  await world.bar(price);
  let reason: string | undefined;
  await world.act(({ order }) => {
    const quantity = world.sizes.unit;
    reason = order({ side: 'buy', type: 'limit', limit: price, quantity }).reason;
  }, price);
  const isCaught = reason === 'price_collar_period';
  trial.measure({ offered: 1, caught: isCaught ? 1 : 0, missed: isCaught ? 0 : 1 });
  const seen = reason === undefined ? 'the order was accepted' : `denied as ${reason}`;
  trial.check(isCaught, 'an order beyond the collar of the period is denied', seen);
}

async function tryReserve(trial: Trial): Promise<void> {
  const { world, load } = trial;
  const { below: limit, unit: quantity } = world.sizes;
  const most = world.config.risk.max_messages_per_second;
  const kept = world.config.optionalLimits?.messages_kept_for_cancels ?? 0;
  const isLimited = Number.isFinite(most);
  trial.checkSet(isLimited ? [] : ['max_messages_per_second'], 'a limit on messages is set');
  trial.checkSet(kept > 0 ? [] : ['messages_kept_for_cancels'], 'capacity is kept for cancels');
  if (!isLimited) return;
  let denied = 0;
  let canceled = 0;
  let resting: readonly Readonly<Order>[] = [];
  const placeOrders = (context: ActContext): readonly Readonly<Order>[] => {
    const request = { side: 'buy', type: 'limit', limit, quantity } as const;
    const placed = Array.from({ length: load.out }, () => context.order(request));
    denied += placed.filter(({ status }) => status === 'denied').length;
    return placed.filter(({ status }) => status === 'working');
  };
  await world.act((context) => {
    resting = placeOrders(context);
  });
  await world.act((context) => {
    placeOrders(context);
    for (const order of resting) context.broker.cancel(order);
    canceled = resting.length;
  });
  await trial.settle();
  const sent = world.requests('DELETE /order').length;
  trial.measure({ orders_denied: denied, cancels_asked: canceled, cancels_sent: sent });
  trial.check(
    denied > 0 || load.out <= most - kept,
    'the limit on messages engages',
    `${denied} orders denied`,
  );
  trial.check(
    canceled > 0 && sent >= canceled,
    'cancels are sent while orders are denied',
    `${sent} of ${canceled} cancels reached the venue`,
  );
}

/** Maximum virtual time to wait for a limit with a long window, ms. */
const LONG_MS = 3 * 3_600_000;

async function tryRepetition(trial: Trial): Promise<void> {
  const { world, load } = trial;
  const latch = world.config.optionalLimits?.repeated_execution;
  trial.checkSet(latch ? [] : ['repeated_execution'], 'a limit on repeated executions is set');
  if (latch === undefined) return;
  const { count, seconds } = latch;
  trial.check(
    count <= MOST_AT_ONCE,
    `the limit on repeated executions is at most ${MOST_AT_ONCE}, which this test can reach`,
    `${count} (spec.risk.repeated_execution)`,
  );
  if (count > MOST_AT_ONCE) return;
  const lots = [{ symbol: world.symbol, orders: count, quantity: world.sizes.unit }];
  await trial.player.playBar({ ...load, out: Math.max(load.out, count), fills: count, lots });
  const after = await trial.playLoad();
  trial.measure({ executed: count, sent_after: after.sent.orders });
  trial.check(
    after.sent.orders === 0,
    'no order is sent after the limit on repeated executions is reached',
    `${after.sent.orders} sent`,
  );
  // Only a person may enable the bot again.
  await world.time.pass(Math.min(seconds * 1000, LONG_MS));
  await trial.playLoad();
  const later = await trial.playLoad();
  trial.measure({ sent_later: later.sent.orders });
  trial.check(
    later.sent.orders === 0 && (later.denied['repeated_execution'] ?? 0) > 0,
    'the bot does not resume by itself',
    `${later.sent.orders} orders sent later`,
  );
}

async function tryThrottle(trial: Trial): Promise<void> {
  const { world, load } = trial;
  const limit = Math.max(1, Math.floor(load.out / 4));
  const throttle = { limit, per_ms: 1000, policy: 'reject' } as const;
  world.exchange.do({ do: 'throttle', throttle });
  await trial.playLoad();
  await trial.settle();
  world.exchange.do({ do: 'throttle', throttle: undefined });
  await trial.settle();
  trial.measure({ limit_per_second: limit });
  trial.checkAgreement('after the venue throttles');
}

async function tryMarket(trial: Trial): Promise<void> {
  const { world } = trial;
  const { price } = world.sizes;
  await trial.playLoad();
  for (const symbol of world.symbols) {
    world.others.quote(symbol, undefined, { price: price * 1.05, units: 1 });
  }
  await world.bar(price * 0.8);
  world.exchange.do({ do: 'phase', phase: 'halt' });
  await world.time.pass(MINUTE);
  world.exchange.do({ do: 'phase', phase: 'continuous' });
  world.exchange.do({ do: 'fault', fault: { on: 'kline', action: { kind: 'drop' } } });
  await world.bar(price);
  await world.bar(price);
  world.exchange.do({ do: 'clear_faults' });
  await world.bar(price);
  await trial.playLoad();
  await trial.settle();
  trial.measure({ open_orders: trial.countOpenOrders() });
  trial.check(
    world.end === undefined,
    'the session continues after a price gap, a trading halt and a loss of market data',
  );
  trial.checkAgreement();
}

async function tryReconciliation(trial: Trial): Promise<void> {
  await trial.playLoad();
  trial.world.exchange.do({ do: 'cut' });
  await trial.playLoad();
  await trial.settle();
  trial.measure({ lost: trial.player.lost });
  trial.checkAgreement('after a lost connection');
}

async function tryAlerts(trial: Trial): Promise<void> {
  const { world } = trial;
  // The order exceeds the position and is denied.
  world.exerciser.schedule(({ broker, instruments }) => {
    const quantity = 1e9 * world.sizes.quantity;
    broker.order({ instrument: instruments[0]!, side: 'sell', quantity });
  });
  const { alert } = await trial.playLoad();
  trial.measure({ alert_ms: alert?.ms ?? null, alert_net_ms: alert?.netMs ?? null });
  trial.check(alert !== null, 'a denied order raises an alert');
  if (alert === null) return;
  trial.checkDuration(alert, BOUNDS.alertMs, 'the alert is raised under full load');
}

async function trySurveillance(trial: Trial): Promise<void> {
  const { world, meters, log } = trial;
  await trial.playLoad();
  await trial.playLoad();
  await trial.settle();
  const events = [...log, ...world.journal.events];
  const begun = meters.now();
  const rebuilt = rebuildFromLog(events);
  trial.measure({ events: events.length, replay_ms: meters.now() - begun });
  trial.check(rebuilt.isWhole, 'the log has all order events in sequence');
  trial.check(
    rebuilt.open.size === trial.countOpenOrders(),
    'the log and the venue have the same number of open orders',
  );
  trial.check(
    arePositionsEqual(world, world.held().positions, rebuilt.positions),
    'positions computed from the log match those of the venue',
  );
}

async function tryShutdown(trial: Trial): Promise<void> {
  const { world, meters } = trial;
  await trial.playLoad();
  const open = trial.countOpenOrders();
  const begun = world.exchange.now;
  const real = meters.now();
  const isConfirmed = await trial.endSession('stop');
  trial.measure({ open_orders: open, took_ms: world.exchange.now - begun + meters.now() - real });
  trial.check(isConfirmed, 'the session ends, and the venue confirms that no order is open');
  trial.check(trial.countOpenOrders() === 0, 'no order is left open');
  trial.checkAgreement();
}
