import type { Bars } from '../../src/market/bars.ts';

/**
 * Simple reference implementations of the built-in strategies, to compare with the engine: plain arrays,
 * averages recomputed over the whole window, no orders and no events.
 */
export interface Outcome {
  readonly equity: readonly number[];
  readonly maxDrawdown: number;
  readonly fills: number;
  readonly closedTrades: number;
  readonly fees: number;
}

export interface Money {
  readonly cash: number;
  readonly fee: number;
  readonly units: 'fractional' | 'whole';
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export function maxDrawdown(equity: Iterable<number>): number {
  let peak = 0;
  let deepest = 0;
  for (const value of equity) {
    peak = Math.max(peak, value);
    deepest = Math.min(deepest, value / peak - 1);
  }
  return deepest;
}

/** Fully invested or in cash: decided at a close, filled at the next open, with a percentage fee. */
function longOnly(
  bars: Bars,
  { cash: initial, fee, units }: Money,
  decide: (bar: number, held: boolean) => 'buy' | 'sell' | undefined,
): Outcome {
  let cash = initial;
  let held = 0;
  let fills = 0;
  let closedTrades = 0;
  let fees = 0;
  let decision: 'buy' | 'sell' | undefined;
  const equity = Array.from(bars.close, (close, bar) => {
    const open = bars.open[bar]!;
    if (decision === 'buy' && held === 0) {
      const affordable = cash / (open * (1 + fee));
      held = units === 'whole' ? Math.floor(affordable) : affordable;
      cash -= held * open * (1 + fee);
      fees += held * open * fee;
      if (held > 0) fills += 1;
    } else if (decision === 'sell' && held > 0) {
      cash += held * open * (1 - fee);
      fees += held * open * fee;
      held = 0;
      fills += 1;
      closedTrades += 1;
    }
    decision = decide(bar, held > 0);
    return cash + held * close;
  });
  return { equity, maxDrawdown: maxDrawdown(equity), fills, closedTrades, fees };
}

export function smaCrossover(
  bars: Bars,
  params: { fast: number; slow: number },
  money: Money,
): Outcome {
  const closes = [...bars.close];
  const average = (period: number, bar: number): number =>
    mean(closes.slice(bar + 1 - period, bar + 1));
  return longOnly(bars, money, (bar) => {
    if (bar < params.slow) return undefined;
    const fast = average(params.fast, bar);
    const slow = average(params.slow, bar);
    const fastBefore = average(params.fast, bar - 1);
    const slowBefore = average(params.slow, bar - 1);
    if (fast > slow && fastBefore <= slowBefore) return 'buy';
    return fast < slow && fastBefore >= slowBefore ? 'sell' : undefined;
  });
}

export function rsiReversion(
  bars: Bars,
  params: { period: number; lower: number; upper: number },
  money: Money,
): Outcome {
  const { period } = params;
  const changes = Array.from(bars.close, (close, i) => close - bars.close[Math.max(0, i - 1)]!);
  const wilder = (moves: readonly number[]): number =>
    moves
      .slice(period)
      .reduce(
        (average, move) => (average * (period - 1) + move) / period,
        mean(moves.slice(0, period)),
      );
  return longOnly(bars, money, (bar, held) => {
    if (bar < period) return undefined;
    const sofar = changes.slice(1, bar + 1);
    const gain = wilder(sofar.map((change) => Math.max(change, 0)));
    const loss = wilder(sofar.map((change) => Math.max(-change, 0)));
    const rsi = gain + loss === 0 ? 50 : 100 - 100 / (1 + gain / loss);
    if (!held && rsi < params.lower) return 'buy';
    return held && rsi > params.upper ? 'sell' : undefined;
  });
}

export function donchianBreakout(
  bars: Bars,
  params: { entry: number; exit: number },
  money: Money,
): Outcome {
  return longOnly(bars, money, (bar, held) => {
    const close = bars.close[bar]!;
    const { entry, exit } = params;
    if (!held && bar >= entry && close > Math.max(...bars.high.slice(bar - entry, bar))) {
      return 'buy';
    }
    return held && bar >= exit && close < Math.min(...bars.low.slice(bar - exit, bar))
      ? 'sell'
      : undefined;
  });
}

/** Data of a strategy of several markets, oldest bar first. */
interface View {
  readonly seen: readonly number[][];
  readonly isNew: readonly boolean[];
  readonly held: readonly number[];
  /** Markets with a target that waits for their next open. */
  readonly waiting: readonly number[];
  readonly step: number;
}

type Wish = readonly [market: number, weight: number];

/**
 * Weights of equity, decided at closes. Each is traded at its own market's next open, in order, unless a
 * newer weight replaces it before.
 */
function weighted(
  markets: readonly Bars[],
  { cash: initial, fee, units, shorts }: Money & { readonly shorts: boolean },
  decide: (view: View) => readonly Wish[],
): Outcome {
  const times = [...new Set(markets.flatMap((bars) => [...bars.time]))].toSorted((a, b) => a - b);
  const held = markets.map(() => 0);
  const price = markets.map(() => 0);
  const seen: number[][] = markets.map(() => []);
  let cash = initial;
  let fills = 0;
  let fees = 0;
  let closedTrades = 0;
  let wishes: Wish[] = [];
  const worth = (): number => held.reduce((sum, units_, i) => sum + units_ * price[i]!, cash);

  const equity: number[] = [];
  for (const [step, time] of times.entries()) {
    const bar = markets.map((bars) => bars.time.indexOf(time));
    const isNew = bar.map((at) => at >= 0);
    markets.forEach((bars, i) => {
      if (isNew[i]) price[i] = bars.open[bar[i]!]!;
    });
    const waiting: Wish[] = [];
    for (const [i, weight] of wishes) {
      if (!isNew[i]) {
        waiting.push([i, weight]);
        continue;
      }
      const open = price[i]!;
      const before = held[i]!;
      let trade = weight === 0 ? -before : (weight * Math.max(0, worth())) / open - before;
      // Ignores differences of a billionth.
      const dust = 1e-9 * Math.max(Math.abs(before), Math.abs(before + trade));
      if (trade > 0 && !shorts) trade = Math.min(trade, Math.max(0, cash / (open * (1 + fee))));
      if (units === 'whole') trade = Math.trunc(trade);
      if (Math.abs(trade) <= dust) continue;
      held[i] = weight === 0 ? 0 : before + trade;
      cash -= trade * open + Math.abs(trade) * open * fee;
      fees += Math.abs(trade) * open * fee;
      fills += 1;
      if (before !== 0 && Math.sign(before) !== Math.sign(held[i])) closedTrades += 1;
    }
    markets.forEach((bars, i) => {
      if (!isNew[i]) return;
      price[i] = bars.close[bar[i]!]!;
      seen[i]!.push(price[i]);
    });
    const made = decide({ seen, isNew, held, waiting: waiting.map(([i]) => i), step });
    wishes = [...waiting.filter(([i]) => !made.some(([other]) => other === i)), ...made];
    equity.push(worth());
    if (worth() <= 0) break;
  }
  return { equity, maxDrawdown: maxDrawdown(equity), fills, closedTrades, fees };
}

export function momentumRotation(
  markets: readonly Bars[],
  params: { lookback: number; hold: number; top: number },
  money: Money,
): Outcome {
  const { lookback, hold, top } = params;
  let next = lookback;
  return weighted(markets, { ...money, shorts: false }, ({ seen, held, waiting, step }) => {
    if (step < next) return [];
    const known = seen.flatMap((closes, i) =>
      closes.length > lookback ? [{ i, rise: closes.at(-1)! / closes.at(-1 - lookback)! - 1 }] : [],
    );
    if (known.length < top) return [];
    next = step + hold;
    const best = known
      .toSorted((a, b) => b.rise - a.rise)
      .slice(0, top)
      .map(({ i }) => i);
    const value = (i: number): number => held[i]! * (seen[i]!.at(-1) ?? 0);
    const dropped = held.flatMap((units, i) =>
      (units !== 0 || waiting.includes(i)) && !best.includes(i) ? [i] : [],
    );
    return [
      ...dropped.map((i) => [i, 0] as const),
      ...best.toSorted((a, b) => value(b) - value(a)).map((i) => [i, 1 / top] as const),
    ];
  });
}

export function pairsReversion(
  markets: readonly Bars[],
  params: { lookback: number; entry: number; exit: number },
  money: Money,
): Outcome {
  const ratios: number[] = [];
  return weighted(markets, { ...money, shorts: true }, ({ seen, isNew, held }) => {
    if (!isNew[0] || !isNew[1]) return [];
    ratios.push(Math.log(seen[0]!.at(-1)! / seen[1]!.at(-1)!));
    const window = ratios.slice(-params.lookback);
    if (window.length < params.lookback) return [];
    const centre = mean(window);
    const spread = Math.sqrt(mean(window.map((ratio) => (ratio - centre) ** 2)));
    // The mean of equal numbers can differ from them in the last bit.
    const z = spread < 1e-12 ? 0 : (window.at(-1)! - centre) / spread;
    const side = Math.sign(held[0]!);
    const both = (weight: number): Wish[] => [
      [0, weight],
      [1, -weight],
    ];
    if (z > params.entry && side >= 0) return both(-0.5);
    if (z < -params.entry && side <= 0) return both(0.5);
    return side !== 0 && Math.abs(z) < params.exit ? both(0) : [];
  });
}
