/** Generates load for the session code of a bot: a fixed amount per bar, even if the bot falls behind. */
import type { Order } from '../../engine/orders/order.ts';
import { MINUTE } from '../../market/bar-time.ts';
import { SESSION, type BotLine, type World } from '../conformance/world.ts';
import type { VenueLine } from '../venue/session/simulated-venue.ts';
import { openSpan, type HostMeters, type Span } from './host.ts';
import type { MessageClass } from './peaks.ts';

/** Counters of the real world, which continue in virtual time. */
export interface Meters extends HostMeters {
  /** Resident memory of the process, bytes. */
  readonly rss: () => number;
  /** Memory in use by this thread after a forced garbage collection, bytes. */
  readonly heap: () => number;
  /** Time spent on garbage collection so far, ms, without the collections that `heap` forces. */
  readonly gc: () => { readonly total: number; readonly longest: number };
}

/** Relative weights of the instruments. */
export type Shares = readonly (readonly [symbol: string, weight: number])[];

export interface Load {
  /** Outgoing messages: orders, and cancels of resting orders. */
  readonly out: number;
  /** Number of cancels in `out`. */
  readonly cancels: number;
  /** Number of orders in `out` that are filled; the remaining orders rest. */
  readonly fills: number;
  /** Trades of other market participants. */
  readonly trades: number;
  /** Distribution over instruments; even by default. */
  readonly mix?: { readonly orders: Shares; readonly cancels: Shares; readonly trades: Shares };
  /** Orders to be filled; by default the minimum quantity, with instruments by `mix`. */
  readonly lots?: readonly Lot[];
}

/** A number of filled orders with the same quantity. */
export interface Lot {
  readonly symbol: string;
  readonly orders: number;
  readonly quantity: number;
}

/**
 * Distributes `count` items over instruments. Each item goes to the instrument that is furthest behind its
 * share, so that every prefix has the same mix as the whole.
 */
function distribute(count: number, shares: Shares): string[] {
  const total = shares.reduce((sum, [, weight]) => sum + weight, 0);
  const given = shares.map(() => 0);
  return Array.from({ length: count }, (_, place) => {
    let most = -Infinity;
    let to = 0;
    for (const [at, [, weight]] of shares.entries()) {
      const behind = ((place + 1) * weight) / total - given[at]!;
      if (behind > most + 1e-9) [most, to] = [behind, at];
    }
    given[to]! += 1;
    return shares[to]![0];
  });
}

/** Results of one bar. */
export interface BarResult extends Span {
  readonly asked: { readonly orders: number; readonly cancels: number };
  /** Messages of each class that the venue and the bot have exchanged. */
  readonly counts: Readonly<Record<MessageClass, number>>;
  readonly sent: { readonly orders: number; readonly cancels: number };
  readonly denied: Readonly<Record<string, number>>;
  /** Fills by instrument. */
  readonly fills: Readonly<Record<string, Filled>>;
  /** Number of orders that the venue rejected, by reason. */
  readonly rejected: Readonly<Record<string, number>>;
  /** Number of differences found between venue and session. */
  readonly breaks: number;
  /** The largest position, as a share of the equity. */
  readonly position: number;
  /** Longest time from the end of the bar to an alert, ms: virtual time plus real time; null without alerts. */
  readonly alertMs: number | null;
  /** The same by net time. */
  readonly alertNetMs: number | null;
}

export interface Filled {
  readonly count: number;
  readonly value: number;
  readonly quantity: number;
}

export interface Durations {
  /** Durations of a strategy's decision at a bar, including all its orders, ms. */
  readonly decision: number[];
  /** Durations of submitting one order to the engine, with all pre-trade checks, ms. */
  readonly check: number[];
  /** Durations from sending an order until the venue answers, including queueing, ms. */
  readonly ack: number[];
}

export interface Loader {
  readonly durations: Durations;
  playBar(load: Load): Promise<BarResult>;
  /** Number of orders that the session submitted, that never reached the venue and that are not closed. */
  lost(): number;
  /** Number of order events that the session generated, and of those that its log contains. */
  logged(): { readonly generated: number; readonly persisted: number };
}

/** @param onEvents receives the events that the bot logged during a bar. */
export function openLoader(
  world: World,
  meters: Meters,
  durations: Durations,
  onEvents?: (events: World['journal']['events']) => void,
): Loader {
  const { others, sizes, exerciser, symbols } = world;
  const evenly: Shares = symbols.map((symbol) => [symbol, 1]);
  const counted = { orders: 0, cancels: 0, in_order: 0, in_md: 0 };
  const totals = { submitted: 0, heard: 0, unsent: 0, logged: 0 };
  const resting = new Map<string, Readonly<Order>[]>(symbols.map((symbol) => [symbol, []]));
  world.venue.listen(({ kind, stream, whose, message }) => {
    const { type, exec_type } = message as { readonly type?: string; readonly exec_type?: string };
    if (stream === 'feed') {
      if (type === 'trade') counted.in_md += 1;
    } else if (stream !== 'orders' || whose !== SESSION) return;
    else if (kind === 'heard' && type === 'new_order') counted.orders += 1;
    else if (kind === 'heard' && type === 'cancel') counted.cancels += 1;
    else if (kind === 'said' && isAboutOrders(type, exec_type)) counted.in_order += 1;
  });

  /** Takes the oldest working order of the instrument, or else of any instrument. */
  const oldest = (symbol: string): Readonly<Order> | undefined =>
    resting.get(symbol)!.shift() ??
    [...resting.values()].find((those) => those.length > 0)?.shift();

  const act = (load: Load, plan: Plan, asked: { orders: number; cancels: number }): void =>
    exerciser.tell(({ broker, instruments }) => {
      const begun = meters.now();
      const bySymbol = new Map(instruments.map((one) => [one.symbol, one]));
      for (const [symbol, those] of resting) {
        resting.set(
          symbol,
          those.filter(({ status }) => status === 'working'),
        );
      }
      for (const symbol of distribute(load.cancels, load.mix?.cancels ?? evenly)) {
        const order = oldest(symbol);
        if (order === undefined) break;
        broker.cancel(order);
        asked.cancels += 1;
      }
      const place = (symbol: string, how: object): Readonly<Order> => {
        const at = meters.now();
        const instrument = bySymbol.get(symbol)!;
        const order = broker.order({ instrument, side: 'buy', quantity: sizes.unit, ...how });
        durations.check.push(meters.now() - at);
        asked.orders += 1;
        return order;
      };
      for (const { symbol, side, orders, quantity } of plan) {
        for (let i = 0; i < orders; i += 1) place(symbol, { side, quantity });
      }
      for (const symbol of distribute(load.out, load.mix?.orders ?? evenly).slice(load.fills)) {
        if (asked.orders + asked.cancels >= load.out) break;
        const order = place(symbol, { type: 'limit', limit: sizes.below });
        if (order.status === 'working') resting.get(symbol)!.push(order);
      }
      durations.decision.push(meters.now() - begun);
    });

  return {
    durations,
    async playBar(load) {
      const asked = { orders: 0, cancels: 0 };
      const before = { ...counted };
      const notes = { alerts: world.alerts.length };
      const lots =
        load.lots ?? groupLots(distribute(load.fills, load.mix?.orders ?? evenly), sizes.unit);
      const plan: Plan = lots.map((lot) => {
        // Sells what earlier bars bought, as soon as the position is large enough.
        const wanted = lot.orders * lot.quantity;
        const isThere = (world.state()?.positions[lot.symbol] ?? 0) >= wanted * (1 - 1e-9);
        return { ...lot, side: isThere ? 'sell' : 'buy' };
      });
      for (const { symbol, side, orders, quantity } of plan) {
        // Trades between other participants consume some of this liquidity.
        const units = world.units(orders * quantity) + load.trades + 2;
        const there = { price: sizes.price, units };
        if (side === 'sell') others.quote(symbol, there, undefined);
        else others.quote(symbol, undefined, there);
      }
      for (const symbol of distribute(load.trades, load.mix?.trades ?? evenly)) {
        others.print(symbol, sizes.price);
      }
      act(load, plan, asked);
      const span = openSpan(meters);
      const end = (Math.floor(world.venue.now / MINUTE) + 1) * MINUTE;
      await world.bar();
      await world.time.pass(2000);
      const took = span();
      for (const { symbol } of plan) others.quote(symbol, undefined, undefined);
      const made = countEvents(world);
      onEvents?.(world.journal.events);
      const alerts = world.alerts.slice(notes.alerts).filter(({ time }) => time >= end);
      const latest = Math.max(...alerts.map(({ time }) => time - end));
      totals.submitted += made.submitted;
      totals.unsent += made.unsent;
      totals.logged += made.logged;
      totals.heard += counted.orders - before.orders;
      const sent = {
        orders: counted.orders - before.orders,
        cancels: counted.cancels - before.cancels,
      };
      clearLogs(world);
      return {
        asked,
        sent,
        counts: {
          out: sent.orders + sent.cancels,
          in_order: counted.in_order - before.in_order,
          in_md: counted.in_md - before.in_md,
        },
        denied: made.denied,
        rejected: made.rejected,
        breaks: made.breaks,
        fills: made.fills,
        position: findLargestPosition(world),
        ...took,
        alertMs: alerts.length === 0 ? null : latest + took.realMs,
        alertNetMs: alerts.length === 0 ? null : latest + took.netMs,
      };
    },
    lost: () => totals.submitted - totals.unsent - totals.heard,
    logged() {
      const left = countEvents(world).logged;
      return { generated: world.state()?.seq ?? 0, persisted: totals.logged + left };
    },
  };
}

type Plan = readonly (Lot & { readonly side: 'buy' | 'sell' })[];

function groupLots(symbols: readonly string[], quantity: number): Lot[] {
  return [...Map.groupBy(symbols, (symbol) => symbol)].map(([symbol, those]) => ({
    symbol,
    orders: those.length,
    quantity,
  }));
}

/** Whether a message reports a change of an order, rather than answering a status request. */
function isAboutOrders(type: string | undefined, exec: string | undefined): boolean {
  return type === 'cancel_reject' || (type === 'execution' && exec !== 'status');
}

function findLargestPosition(world: World): number {
  const { positions, equity } = world.state() ?? { positions: {}, equity: 0 };
  const most = Math.max(0, ...Object.values(positions).map(Math.abs));
  return equity > 0 ? (most * world.sizes.price) / equity : 0;
}

/** Counts the bot's log events since the last call of `clearLogs`. */
function countEvents(world: World) {
  const denied: Record<string, number> = {};
  const rejected: Record<string, number> = {};
  const fills: Record<string, { count: number; value: number; quantity: number }> = {};
  const made = { submitted: 0, unsent: 0, logged: 0, breaks: 0 };
  const add = (to: Record<string, number>, reason: unknown): void => {
    to[String(reason)] = (to[String(reason)] ?? 0) + 1;
  };
  for (const { kind, payload } of world.journal.events) {
    if ('seq' in payload) made.logged += 1;
    if (kind === 'order.submitted') made.submitted += 1;
    else if (kind === 'order.denied') add(denied, payload['reason']);
    else if (kind === 'order.rejected') add(rejected, payload['reason']);
    else if (kind === 'order.filled') {
      const quantity = Math.abs(Number(payload['quantity']));
      const own = (fills[String(payload['symbol'])] ??= { count: 0, value: 0, quantity: 0 });
      own.count += 1;
      own.quantity += quantity;
      own.value += quantity * Number(payload['price']);
    } else if (kind === 'order.canceled' && payload['reason'] === 'not_at_venue') made.unsent += 1;
    else if (kind === 'venue.mismatch' || kind === 'venue.orphan') made.breaks += 1;
  }
  return { ...made, denied, rejected, fills };
}

/** Clears the logs of the test, so that memory measurements cover only the bot. */
function clearLogs(world: World): void {
  (world.venueLog as VenueLine[]).length = 0;
  (world.botLog as BotLine[]).length = 0;
  (world.journal.events as unknown[]).length = 0;
}
