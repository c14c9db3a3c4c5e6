/** Generates load for the session code of a bot: a fixed amount per bar, even if the bot falls behind. */
import type { Order } from '../../engine/orders/order.ts';
import { MINUTE } from '../../base/durations.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { World } from '../conformance/world.ts';
import type { ExchangeLine } from '../venue/exchange-line.ts';
import { openSpan, type Meters } from './meters.ts';
import { sum } from './samples.ts';

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

type SidedLot = Lot & { readonly side: 'buy' | 'sell' };

/** Plays bars with a load; the exerciser of the world creates the orders. */
export class LoadPlayer {
  /** Durations of a strategy's decision at a bar, including all its orders, ms. */
  readonly decisionMs: number[] = [];
  /** Durations of submitting one order to the engine, with all pre-trade checks, ms. */
  readonly checkMs: number[] = [];
  /** Number of orders that the session submitted, that never reached the venue and that are not closed. */
  lost = 0;
  readonly #world: World;
  readonly #meters: Meters;
  readonly #onEvents: (events: readonly SessionEvent[]) => void;
  readonly #evenly: Shares;
  readonly #resting: Map<string, Readonly<Order>[]>;
  /** Messages that the venue and the bot have exchanged in this bar. */
  #exchanged = { orders: 0, cancels: 0, in_order: 0, in_md: 0 };
  #logged = 0;

  /** @param onEvents receives the events that the bot logged during a bar. */
  constructor(
    world: World,
    meters: Meters,
    onEvents: (events: readonly SessionEvent[]) => void = () => {},
  ) {
    this.#world = world;
    this.#meters = meters;
    this.#onEvents = onEvents;
    this.#evenly = world.symbols.map((symbol) => [symbol, 1]);
    this.#resting = new Map(world.symbols.map((symbol) => [symbol, []]));
    world.exchange.listen((line) => this.#count(line));
  }

  #count({ kind, call }: ExchangeLine): void {
    const counted = this.#exchanged;
    if (kind === 'trade') counted.in_md += 1;
    else if (kind === 'pushed') counted.in_order += 1;
    else if (kind === 'request' && call === 'POST /order') counted.orders += 1;
    else if (kind === 'request' && call === 'DELETE /order') counted.cancels += 1;
  }

  async playBar(load: Load) {
    const world = this.#world;
    this.#exchanged = { orders: 0, cancels: 0, in_order: 0, in_md: 0 };
    const earlierAlerts = world.alerts.length;
    const lots = this.#planLots(load);
    this.#quote(lots, load);
    const asked = this.#submit(load, lots);
    const span = openSpan(this.#meters);
    const end = (Math.floor(world.exchange.now / MINUTE) + 1) * MINUTE;
    await world.bar();
    await world.time.pass(2000);
    const took = span();
    for (const { symbol } of lots) world.others.quote(symbol, undefined, undefined);
    const { events } = world.journal;
    const { submitted, unsent, ...made } = countEvents(events);
    this.#onEvents(events);
    const alerts = world.alerts.slice(earlierAlerts).filter(({ time }) => time >= end);
    const latest = Math.max(...alerts.map(({ time }) => time - end));
    const { orders, cancels, in_order, in_md } = this.#exchanged;
    this.lost += submitted - unsent - orders;
    this.#logged += countLogged(events);
    clearLogs(world);
    return {
      asked,
      sent: { orders, cancels },
      /** Messages of each class that the venue and the bot have exchanged. */
      counts: { out: orders + cancels, in_order, in_md },
      ...made,
      /** The largest position, as a share of the equity. */
      position: findLargestPosition(world),
      took,
      /** Longest time from the end of the bar to an alert: virtual time plus real time; null without alerts. */
      alert: alerts.length === 0 ? null : { ms: latest + took.realMs, netMs: latest + took.netMs },
    };
  }

  /** Counts the order events that the session generated, and those that its log contains. */
  countLogged(): { readonly generated: number; readonly persisted: number } {
    const left = countLogged(this.#world.journal.events);
    return { generated: this.#world.state()?.seq ?? 0, persisted: this.#logged + left };
  }

  /** Sells what earlier bars bought as soon as the position is large enough; buys otherwise. */
  #planLots({ lots, fills, mix }: Load): SidedLot[] {
    const world = this.#world;
    const symbols = distribute(lots === undefined ? fills : 0, mix?.orders ?? this.#evenly);
    const smallest = [...Map.groupBy(symbols, (symbol) => symbol)].map(([symbol, own]) => ({
      symbol,
      orders: own.length,
      quantity: world.sizes.unit,
    }));
    return (lots ?? smallest).map((lot) => {
      const held = world.state()?.positions[lot.symbol] ?? 0;
      const isHeld = held >= lot.orders * lot.quantity * (1 - 1e-9);
      return { ...lot, side: isHeld ? 'sell' : 'buy' };
    });
  }

  /** Makes other participants quote the quantity of the lots, and trade with each other. */
  #quote(lots: readonly SidedLot[], { trades, mix }: Load): void {
    const world = this.#world;
    const { others, sizes } = world;
    for (const { symbol, side, orders, quantity } of lots) {
      // Trades between other participants consume some of this liquidity.
      const quote = { price: sizes.price, units: world.units(orders * quantity) + trades + 2 };
      if (side === 'sell') others.quote(symbol, quote, undefined);
      else others.quote(symbol, undefined, quote);
    }
    for (const symbol of distribute(trades, mix?.trades ?? this.#evenly)) {
      others.print(symbol, sizes.price);
    }
  }

  /** Makes the bot send its messages at the end of the bar; until then, the returned numbers are 0. */
  #submit(load: Load, lots: readonly SidedLot[]) {
    const { sizes, exerciser } = this.#world;
    const { now } = this.#meters;
    const asked = { orders: 0, cancels: 0 };
    exerciser.schedule(({ broker, instruments }) => {
      const begun = now();
      const bySymbol = new Map(instruments.map((one) => [one.symbol, one]));
      const place = (symbol: string, how: object): Readonly<Order> => {
        const at = now();
        const instrument = bySymbol.get(symbol)!;
        const order = broker.order({ instrument, side: 'buy', quantity: sizes.unit, ...how });
        this.checkMs.push(now() - at);
        asked.orders += 1;
        return order;
      };
      for (const symbol of distribute(load.cancels, load.mix?.cancels ?? this.#evenly)) {
        const order = this.#takeOldest(symbol);
        if (order === undefined) break;
        broker.cancel(order);
        asked.cancels += 1;
      }
      for (const { symbol, side, orders, quantity } of lots) {
        for (let i = 0; i < orders; i += 1) place(symbol, { side, quantity });
      }
      const symbols = distribute(load.out, load.mix?.orders ?? this.#evenly);
      for (const symbol of symbols.slice(load.fills)) {
        if (asked.orders + asked.cancels >= load.out) break;
        const order = place(symbol, { type: 'limit', limit: sizes.below });
        if (order.status === 'working') this.#resting.get(symbol)!.push(order);
      }
      this.decisionMs.push(now() - begun);
    });
    return asked;
  }

  /** Takes the oldest working order of the instrument, or else of any instrument. */
  #takeOldest(symbol: string): Readonly<Order> | undefined {
    for (const resting of [this.#resting.get(symbol)!, ...this.#resting.values()]) {
      const at = resting.findIndex(({ status }) => status === 'working');
      const [order] = at < 0 ? [] : resting.splice(0, at + 1).slice(-1);
      if (order !== undefined) return order;
    }
    return undefined;
  }
}

export type BarResult = Awaited<ReturnType<LoadPlayer['playBar']>>;

/**
 * Distributes `count` items over instruments. Each item goes to the instrument that is furthest behind its
 * share, so that every prefix has the same mix as the whole.
 */
function distribute(count: number, shares: Shares): string[] {
  const total = sum(shares, ([, weight]) => weight);
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

function findLargestPosition(world: World): number {
  const { positions, equity } = world.state() ?? { positions: {}, equity: 0 };
  const most = Math.max(0, ...Object.values(positions).map(Math.abs));
  return equity > 0 ? (most * world.sizes.price) / equity : 0;
}

function countLogged(events: readonly SessionEvent[]): number {
  return events.filter(({ payload }) => 'seq' in payload).length;
}

function countEvents(events: readonly SessionEvent[]) {
  const of = (kind: string) => events.filter((event) => event.kind === kind);
  const count = (some: readonly SessionEvent[]): Record<string, number> =>
    Object.fromEntries(
      [...Map.groupBy(some, ({ payload }) => String(payload['reason']))].map(([reason, own]) => [
        reason,
        own.length,
      ]),
    );
  const fills = Map.groupBy(of('order.filled'), ({ payload }) => String(payload['symbol']));
  const unitsOf = ({ payload }: SessionEvent): number => Math.abs(Number(payload['quantity']));
  return {
    submitted: of('order.submitted').length,
    /** Orders that the session closed before they reached the venue. */
    unsent: count(of('order.canceled'))['not_at_venue'] ?? 0,
    /** Orders that a limit denied and that the venue rejected, by reason. */
    denied: count(of('order.denied')),
    rejected: count(of('order.rejected')),
    /** Number of differences found between venue and session. */
    breaks: of('venue.mismatch').length + of('venue.orphan').length,
    /** Fills by instrument. */
    fills: Object.fromEntries(
      [...fills].map(([symbol, own]) => [
        symbol,
        {
          count: own.length,
          value: sum(own, (fill) => unitsOf(fill) * Number(fill.payload['price'])),
          quantity: sum(own, unitsOf),
        },
      ]),
    ),
  };
}

/** Clears the logs of the test, so that memory measurements cover only the bot. */
function clearLogs(world: World): void {
  world.exchangeLog.length = 0;
  world.botLog.length = 0;
  (world.journal.events as unknown[]).length = 0;
}
