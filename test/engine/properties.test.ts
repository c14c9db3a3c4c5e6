import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OrderEvent } from '../../src/engine/journal.ts';
import { LIMIT_REASONS, type ExitPrice } from '../../src/engine/orders/order.ts';
import type { BarColumn, Bars } from '../../src/market/bars.ts';
import { allocateBars, sliceBars } from '../../src/market/bars.ts';
import { runs } from '../length.ts';
import { ENGINE_DEFAULTS } from './market.ts';
import type { Played } from './market.ts';
import { enact, namedMarkets, scenario, STEP } from './scenario.ts';
import type { Deed, Scenario } from './scenario.ts';

type Submitted = Extract<OrderEvent, { kind: 'order.submitted' }>;
type Filled = Extract<OrderEvent, { kind: 'order.filled' }>;

const LIMITS: ReadonlySet<string> = new Set(LIMIT_REASONS);
const FEW = 38;
const DAY = 4 * STEP;

interface Case extends Played {
  readonly scenario: Scenario;
  readonly markets: Readonly<Record<string, Bars>>;
  readonly cash: number;
}

/** Runs random strategies of every kind of order on random bars. */
function always(claim: (run: Case) => void, few = FEW): void {
  fc.assert(
    fc.property(scenario, (drawn) => {
      const markets = namedMarkets(drawn.markets);
      const cash = drawn.config.cash!;
      claim({ scenario: drawn, markets, cash, ...enact(drawn, markets) });
    }),
    { numRuns: runs(few) },
  );
}

const filled = (events: readonly OrderEvent[]): Filled[] =>
  events.filter((event) => event.kind === 'order.filled');
const submissions = (events: readonly OrderEvent[]): Map<number, Submitted> =>
  new Map(
    events
      .filter((event) => event.kind === 'order.submitted')
      .map((event) => [event.order, event] as const),
  );
const signed = ({ side, quantity }: Filled): number => (side === 'buy' ? quantity : -quantity);
const barAt = (bars: Bars, time: string): number => bars.time.indexOf(Date.parse(time));

function expectClose(actual: number, expected: number, scale: number): void {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(1e-9 * scale);
}

describe('accounting', () => {
  it('derives cash and positions from the fills, and pays fees from cash', () => {
    always(({ events, cash: start, result, markets }) => {
      let cash = start;
      let fees = 0;
      let slippage = 0;
      let traded = 0;
      const positions = new Map(Object.keys(markets).map((symbol) => [symbol, 0]));
      for (const fill of filled(events)) {
        cash -= signed(fill) * fill.price + fill.fee;
        fees += fill.fee;
        slippage += fill.slippage;
        traded += fill.quantity * fill.price;
        const position = positions.get(fill.symbol)! + signed(fill);
        expectClose(fill.cash, cash, start + traded);
        expectClose(fill.position, position, fill.quantity);
        expectClose(fill.slippage, fill.quantity * Math.abs(fill.price - fill.reference), traded);
        positions.set(fill.symbol, fill.position);
      }
      expectClose(result.cash, cash, start + traded);
      expectClose(result.fees, fees, start);
      expectClose(result.slippage, slippage, start);
      expectClose(result.tradedNotional, traded, start + traded);
      for (const [symbol, position] of positions) {
        expect(result.positions[symbol] ?? 0).toBe(position);
      }
    });
  });

  it('values equity as cash and positions at the last close, at every step', () => {
    always(({ events, cash: start, result, markets }) => {
      const fills = filled(events);
      let cash = start;
      let at = 0;
      const held = new Map<string, number>();
      const close = new Map<string, number>();
      let inMarket = 0;
      for (let step = 0; step < result.steps; step += 1) {
        const time = result.time[step]!;
        for (const [symbol, bars] of Object.entries(markets)) {
          const bar = bars.time.indexOf(time);
          if (bar >= 0) close.set(symbol, bars.close[bar]!);
        }
        for (; at < fills.length && Date.parse(fills[at]!.time) === time; at += 1) {
          cash = fills[at]!.cash;
          held.set(fills[at]!.symbol, fills[at]!.position);
        }
        let worth = cash;
        for (const [symbol, units] of held) worth += units * close.get(symbol)!;
        expectClose(result.equity[step]!, worth, start);
        if ([...held.values()].some((units) => units !== 0)) inMarket += 1;
      }
      expect(at).toBe(fills.length);
      expect(result.stepsInMarket).toBe(inMarket);
    });
  });

  it('has the same total profit in trades and in equity', () => {
    always(({ cash, result }) => {
      const all = [...result.trades, ...result.openTrades];
      const made = all.reduce((sum, { pnl }) => sum + pnl, 0);
      expectClose(made, result.equity.at(-1)! - cash, cash + result.tradedNotional);
      expectClose(
        all.reduce((sum, { fees }) => sum + fees, 0),
        result.fees,
        cash,
      );
      for (const trade of all) {
        const sign = trade.side === 'long' ? 1 : -1;
        const gross = sign * trade.quantity * (trade.exit_price - trade.entry_price);
        expectClose(trade.pnl, gross - trade.fees, cash);
        expectClose(trade.return, trade.pnl / (trade.quantity * trade.entry_price), 1);
      }
      expect(result.openTrades.length).toBe(Object.keys(result.positions).length);
      expect(all.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(all.map((_, i) => i + 1));
    });
  });

  it('never lets a cash account borrow or be short', () => {
    always(({ scenario: { config }, events }) => {
      if (config.account!.model !== 'cash') return;
      for (const fill of filled(events)) {
        expect(fill.position).toBeGreaterThanOrEqual(0);
        if (fill.side === 'buy') expect(fill.cash).toBeGreaterThanOrEqual(-1e-8);
      }
    });
  });

  it('counts orders as in the journal', () => {
    always(({ events, result: { orders } }) => {
      const count = (kind: string): number => events.filter((event) => event.kind === kind).length;
      const total = (counts: Readonly<Record<string, number>>): number =>
        Object.values(counts).reduce((sum, value) => sum + value, 0);
      expect(orders.submitted).toBe(count('order.submitted'));
      expect(orders.fills).toBe(count('order.filled'));
      expect(orders.canceled).toBe(count('order.canceled'));
      expect(orders.expired).toBe(count('order.expired'));
      expect(total(orders.rejected)).toBe(count('order.rejected'));
      expect(total(orders.denied)).toBe(count('order.denied'));
      const limited = events.filter(
        (event) =>
          (event.kind === 'order.canceled' || event.kind === 'order.expired') &&
          LIMITS.has(event.reason),
      );
      expect(total(orders.limited)).toBe(limited.length);
    });
  });
});

describe('fills', () => {
  it('happen within the range of a bar of their instrument', () => {
    always(({ events, markets, scenario: { config } }) => {
      for (const fill of filled(events)) {
        const bars = markets[fill.symbol]!;
        const bar = barAt(bars, fill.time);
        expect(bar).toBeGreaterThanOrEqual(0);
        expect(fill.reference).toBeGreaterThanOrEqual(bars.low[bar]!);
        expect(fill.reference).toBeLessThanOrEqual(bars.high[bar]!);
        if (config.slippage!.model === 'none') expect(fill.price).toBe(fill.reference);
        else expect(signed(fill) * (fill.price - fill.reference)).toBeGreaterThanOrEqual(0);
      }
    });
  });

  it('a limit order is never filled at a worse price, and a stop order not first at a better one', () => {
    always(({ events, scenario: { config } }) => {
      const orders = submissions(events);
      const seen = new Set<number>();
      for (const fill of filled(events)) {
        const { type, limit, stop } = orders.get(fill.order)!;
        const isBuy = fill.side === 'buy';
        if (type === 'limit' || type === 'stop_limit') {
          if (isBuy) expect(fill.price).toBeLessThanOrEqual(limit!);
          else expect(fill.price).toBeGreaterThanOrEqual(limit!);
        }
        // Without volume at its stop, or beyond the collar, an order is filled at any later price.
        const isHeldBack =
          config.risk!.price_collar_bps < Infinity || config.optionalLimits?.price_collar_period;
        const mayWait = config.fill!.model === 'volume_share' || isHeldBack;
        const isFirst = !seen.has(fill.order) && !mayWait;
        if (type === 'stop' && isFirst) {
          if (isBuy) expect(fill.reference).toBeGreaterThanOrEqual(stop!);
          else expect(fill.reference).toBeLessThanOrEqual(stop!);
        }
        seen.add(fill.order);
      }
    });
  });

  it('occur after the bar of the order, within its time in force', () => {
    always(({ events, markets }) => {
      const orders = submissions(events);
      const ends = new Map<number, string>();
      for (const event of events) {
        if (event.kind === 'order.submitted' || event.kind.startsWith('account.')) continue;
        if (event.kind !== 'order.filled') {
          ends.set(event.order, event.time);
          continue;
        }
        const order = orders.get(event.order)!;
        if (order.parent !== undefined) {
          expect(event.time >= order.time).toBe(true);
          continue;
        }
        expect(event.time > order.time).toBe(true);
        const { time } = markets[event.symbol]!;
        const first = time.find((opening) => opening > Date.parse(order.time))!;
        const now = Date.parse(event.time);
        if (order.time_in_force === 'ioc') expect(now).toBe(first);
        if (order.time_in_force === 'fok') {
          expect(now).toBe(first);
          // Positions limit orders that reduce them, and a partial fill in its group reduces an order.
          const isWhole = order.reduce_only !== true && order.oco_group === undefined;
          if (isWhole) expect(event.quantity).toBe(order.quantity);
        }
        if (order.time_in_force === 'day') {
          expect(Math.floor(now / DAY)).toBe(Math.floor(first / DAY));
        }
      }
    });
  });

  it('never exceed the order or occur after its end', () => {
    always(({ events, result }) => {
      const orders = submissions(events);
      const done = new Map<number, number>();
      const ended = new Set<number>();
      for (const event of events) {
        if (event.kind.startsWith('account.')) continue;
        expect(ended.has(event.order)).toBe(false);
        if (event.kind === 'order.filled') {
          const sum = (done.get(event.order) ?? 0) + event.quantity;
          done.set(event.order, sum);
          const { quantity, parent } = orders.get(event.order)!;
          // Exits grow with the fills of their entry.
          if (quantity !== undefined && parent === undefined) {
            expect(sum).toBeLessThanOrEqual(quantity * (1 + 1e-9));
          }
        } else if ('reason' in event) ended.add(event.order);
      }
      expect(result.orders.filled).toBeLessThanOrEqual(done.size);
    });
  });

  it('a reduce-only order reduces the position without reversing it', () => {
    always(({ events }) => {
      const orders = submissions(events);
      const positions = new Map<string, number>();
      for (const fill of filled(events)) {
        const before = positions.get(fill.symbol) ?? 0;
        if (orders.get(fill.order)!.reduce_only === true) {
          expect(Math.abs(fill.position)).toBeLessThan(Math.abs(before));
          expect(fill.position * before).toBeGreaterThanOrEqual(0);
        }
        positions.set(fill.symbol, fill.position);
      }
    });
  });

  it('within a bar never exceed their share of its volume', () => {
    always(({ events, markets, scenario: { config } }) => {
      if (config.fill!.model !== 'volume_share') return;
      const taken = new Map<string, number>();
      for (const fill of filled(events)) {
        const key = `${fill.symbol} ${fill.time}`;
        const sum = (taken.get(key) ?? 0) + fill.quantity;
        taken.set(key, sum);
        const bars = markets[fill.symbol]!;
        const share = config.fill!.limit * bars.volume[barAt(bars, fill.time)]!;
        expect(sum).toBeLessThanOrEqual(share * (1 + 1e-12));
      }
    });
  });

  it('are in whole units if units are whole', () => {
    always(({ events, scenario: { config } }) => {
      if (config.units !== 'whole') return;
      for (const { quantity } of filled(events)) expect(Number.isInteger(quantity)).toBe(true);
    });
  });

  it('have the fee of their model', () => {
    always(({ events, scenario: { config } }) => {
      const fees = config.fees!;
      for (const { quantity, price, fee } of filled(events)) {
        const base = fees.model === 'percent' ? quantity * price : quantity;
        const due = fees.model === 'none' ? 0 : Math.max(fees.min, base * fees.rate);
        expect(Math.abs(fee - due)).toBeLessThanOrEqual(1e-12);
      }
    });
  });
});

describe('a run', () => {
  it('does not depend on later bars', () => {
    fc.assert(
      fc.property(scenario, scenario, fc.nat(40), fc.boolean(), (drawn, other, cut, ends) => {
        const markets = namedMarkets(drawn.markets);
        const strangers = Object.values(namedMarkets(other.markets));
        const times = [...new Set(Object.values(markets).flatMap(({ time }) => [...time]))];
        const now = times.toSorted((a, b) => a - b)[Math.min(cut, times.length - 1)]!;
        const altered = Object.fromEntries(
          Object.entries(markets).map(([symbol, bars], i) => {
            const past = [...bars.time].filter((time) => time <= now).length;
            const future = repriced(bars, past, strangers[i % strangers.length]!);
            return [symbol, ends ? sliceBars(future, 0, past) : future];
          }),
        );
        const before = enact(drawn, markets);
        const after = enact(drawn, altered);
        const isPast = (event: OrderEvent): boolean => Date.parse(event.time) <= now;
        expect(after.events.filter(isPast)).toEqual(before.events.filter(isPast));
        const steps = [...before.result.time].filter((time) => time <= now).length;
        expect(after.result.equity.slice(0, steps)).toEqual(before.result.equity.slice(0, steps));
      }),
      { numRuns: runs(FEW) },
    );
  });

  it('is repeatable in slices of any size, and with bars appended time by time', () => {
    always(({ scenario: drawn, markets, events, result }) => {
      for (const slice of [1, 7, 1000, 'as they come'] as const) {
        const again = enact(drawn, markets, slice);
        expect(again.events).toEqual(events);
        expect({ ...again.result, journal: 0 }).toEqual({ ...result, journal: 0 });
      }
    }, 200);
  });

  it('does not change with the names of its instruments', () => {
    always(({ scenario: drawn, markets, events, result }) => {
      const symbols = Object.keys(markets);
      const names = new Map(symbols.map((symbol, i) => [symbol, `Z${symbols.length - i}`]));
      const renamed = enact(
        drawn,
        Object.fromEntries(symbols.map((symbol) => [names.get(symbol)!, markets[symbol]!])),
      );
      expect(renamed.result.equity).toEqual(result.equity);
      expect(renamed.events).toEqual(
        events.map((event) => ({ ...event, symbol: names.get(event.symbol) ?? '' })),
      );
    }, 200);
  });

  it('in one market is unaffected by a market that is only observed', () => {
    fc.assert(
      fc.property(scenario, scenario, (drawn, other) => {
        const [market] = Object.values(namedMarkets(drawn.markets));
        const [stranger] = Object.values(namedMarkets(other.markets));
        const inFirst = withDeeds(drawn, (deed) =>
          deed.kind === 'cancel' ? deed : { ...deed, market: 0 },
        );
        const single = enact(inFirst, { A: market! });
        const both = enact(inFirst, { A: market!, B: repriced(market!, 0, stranger!) });
        expect(both.events).toEqual(single.events);
        expect(both.result.equity).toEqual(single.result.equity);
      }),
      { numRuns: runs(50) },
    );
  });

  it('is symmetric: a buyer in a falling market has the same results as a seller in a rising one', () => {
    fc.assert(
      fc.property(scenario, fc.constantFrom('next_open', 'volume_share'), (drawn, model) => {
        const config = {
          ...ENGINE_DEFAULTS,
          cash: 1e9,
          fill: model === 'next_open' ? { model } : { model, limit: 0.1 },
          account: { model: 'margin', initial: 0, maintenance: 0 },
        } as const;
        const markets = namedMarkets(drawn.markets);
        const flipped = Object.fromEntries(
          Object.entries(markets).map(([symbol, bars]) => [symbol, upsideDown(bars)]),
        );
        const up = enact(withDeeds({ ...drawn, config }, withoutShares), markets);
        const down = enact(
          { ...withDeeds({ ...drawn, config }, mirrored), base: SKY - drawn.base },
          flipped,
        );
        expect(
          down.fills.map(([step, order, units, price]) => [step, order, -units, SKY - price]),
        ).toEqual(up.fills);
        expect(down.ends).toEqual(up.ends);
        expect(down.result.ambiguousBars).toBe(up.result.ambiguousBars);
      }),
      { numRuns: runs(FEW) },
    );
  });
});

/** The bars before `from`, followed by another market's prices at the same times. */
function repriced(bars: Bars, from: number, other: Bars): Bars {
  return mapPrices(bars, (column, at) =>
    at < from ? bars[column][at]! : other[column][at % other.length]! + 1,
  );
}

function mapPrices(bars: Bars, value: (column: BarColumn, at: number) => number): Bars {
  const mapped = allocateBars(bars.length);
  mapped.time.set(bars.time);
  for (const column of ['open', 'high', 'low', 'close', 'volume'] as const) {
    for (let at = 0; at < bars.length; at += 1) mapped[column][at] = value(column, at);
  }
  return mapped;
}

function withDeeds(drawn: Scenario, change: (deed: Deed) => Deed): Scenario {
  const all = (lists: Scenario['onBar']): Deed[][] => lists.map((list) => list.map(change));
  return { ...drawn, onBar: all(drawn.onBar), onFill: all(drawn.onFill) };
}

/** Far above all prices, so that mirrored prices are positive. */
const SKY = 10_000;

function upsideDown(bars: Bars): Bars {
  const from = { time: 'time', open: 'open', high: 'low', low: 'high', close: 'close' } as const;
  return mapPrices(bars, (column, at) =>
    column === 'volume' ? bars.volume[at]! : SKY - bars[from[column]][at]!,
  );
}

/** Shares of a price cannot be mirrored, so these actions are replaced. */
function withoutShares(deed: Deed): Deed {
  if (deed.kind === 'cancel') return deed;
  if (deed.kind === 'target') return { kind: 'cancel', which: 0 };
  const absolute = (exit: ExitPrice | undefined): number | undefined =>
    typeof exit === 'object' ? undefined : exit;
  return {
    ...deed,
    trail: absolute(deed.trail) ?? 3,
    takeProfit: absolute(deed.takeProfit),
    stopLoss: absolute(deed.stopLoss),
  };
}

function mirrored(deed: Deed): Deed {
  const plain = withoutShares(deed);
  if (plain.kind !== 'order') return plain;
  const below = (exit: ExitPrice | undefined): number | undefined =>
    exit === undefined ? undefined : SKY - (exit as number);
  return {
    ...plain,
    side: plain.side === 'buy' ? 'sell' : 'buy',
    limit: -plain.limit,
    stop: -plain.stop,
    takeProfit: below(plain.takeProfit),
    stopLoss: below(plain.stopLoss),
  };
}
