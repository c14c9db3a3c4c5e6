/** Strategies that are called only where their condition holds. */
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { Crossover } from '../../src/engine/indicators/crossover.ts';
import { Ema, ema } from '../../src/engine/indicators/ema.ts';
import { Rsi, rsi } from '../../src/engine/indicators/rsi.ts';
import { Sma, sma } from '../../src/engine/indicators/sma.ts';
import type { Instrument } from '../../src/engine/instrument.ts';
import {
  above,
  all,
  any,
  below,
  crossedAbove,
  crossedBelow,
  crossing,
  crossingAbove,
  crossingBelow,
  every,
} from '../../src/engine/series/condition.ts';
import type { Condition } from '../../src/engine/series/condition.ts';
import type { BarSeries, Series } from '../../src/engine/series/declared-series.ts';
import { SharedComputations } from '../../src/engine/series/shared-computations.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { Strategy } from '../../src/engine/strategy.ts';
import { allocateBars } from '../../src/market/bars.ts';
import { some } from '../length.ts';
import { linesOf, runWith } from './bot-runs.ts';
import { generatedBots } from './generated-bots.ts';
import type { GeneratedBot } from './generated-bots.ts';
import { bars, ENGINE_DEFAULTS, scripted } from './market.ts';
import { scriptOf } from './scenario.ts';

/** A rule for the steps at which a bot acts, with declared indicators and with its own. */
interface Rule {
  readonly name: string;
  readonly declare: (instruments: readonly BarSeries[]) => readonly Series[];
  readonly wakeOn: (declared: readonly Series[]) => Condition;
  /** Whether the rule holds at the current step. */
  readonly holds: (declared: readonly Series[]) => boolean;
  /** The same with indicators that get every bar. */
  readonly own: () => (instruments: readonly Instrument[]) => boolean;
}

const RULES: readonly Rule[] = [
  {
    name: 'averages cross',
    declare: ([m]) => [sma(m!.close, 2), sma(m!.close, 3)],
    wakeOn: ([a, b]) => crossing(a!, b!),
    holds: ([a, b]) => crossedAbove(a!, b!) || crossedBelow(a!, b!),
    own: () => {
      const [a, b, crossover] = [new Sma(2), new Sma(3), new Crossover()];
      return onFresh(([m]) => crossover.next(a.next(m!.close), b.next(m!.close)) !== 0);
    },
  },
  {
    name: 'the close is high, or it falls below its average',
    declare: ([m]) => [m!.close, ema(m!.close, 3)],
    wakeOn: ([close, average]) => any(above(close!, 51), crossingBelow(close!, average!)),
    holds: ([close, average]) => close!.value > 51 || crossedBelow(close!, average!),
    own: () => {
      const [average, crossover] = [new Ema(3), new Crossover()];
      let isHigh = false;
      const falls = onFresh(([m]) => {
        isHigh = m!.close > 51;
        return crossover.next(m!.close, average.next(m!.close)) === -1;
      });
      return (instruments) => falls(instruments) || isHigh;
    },
  },
  {
    name: 'the last instrument is strong, and neither high nor low',
    declare: (instruments) => [rsi(instruments.at(-1)!.close, 2), instruments.at(-1)!.close],
    wakeOn: ([strength, close]) => all(above(strength!, 40), below(close!, 53), above(close!, 46)),
    holds: ([strength, close]) => strength!.value > 40 && close!.value < 53 && close!.value > 46,
    own: () => {
      const strength = new Rsi(2);
      return (instruments) => {
        const last = instruments.at(-1)!;
        if (last.fresh) strength.next(last.close);
        return strength.value > 40 && last.close < 53 && last.close > 46;
      };
    },
  },
];

/** The result of `test` at steps with a bar of the first instrument, and false at others. */
function onFresh(test: (instruments: readonly Instrument[]) => boolean): ReturnType<Rule['own']> {
  return (instruments) => instruments[0]!.fresh && test(instruments);
}

/** A bot that acts where the rule holds, and after its fills. */
function botOf(
  drawn: GeneratedBot,
  rule: Rule,
  indicators: 'own' | 'declared',
): { strategy: Strategy; calls: () => number } {
  const { everyBar, onFill } = scriptOf(drawn);
  const own = rule.own();
  let calls = 0;
  let acts = 0;
  const strategy = scripted({
    everyBar(scene) {
      calls += 1;
      const isDue =
        indicators === 'own'
          ? own(scene.instruments)
          : rule.holds(scene.context.indicators as readonly Series[]);
      if (!isDue) return;
      everyBar({ ...scene, step: acts });
      acts += 1;
    },
    onFill,
  });
  const declared = { indicators: ({ instruments }: never) => rule.declare(instruments) };
  return {
    strategy: indicators === 'own' ? strategy : { ...strategy, ...declared },
    calls: () => calls,
  };
}

/** Lines of two runs that share their columns. */
function linesOfRepeated(drawn: GeneratedBot, rule: Rule): string[][] {
  const computations = new SharedComputations();
  return [1, 2].map(() => {
    const { strategy } = botOf(drawn, rule, 'declared');
    const waking = { ...strategy, wakeOn: rule.wakeOn };
    return linesOf({ ...runWith(drawn, waking, computations), seen: [] });
  });
}

describe.each(some(1, RULES))('a bot that acts only when $name', (rule) => {
  it('has the same events with own, declared and shared indicators, and with wakeOn', () => {
    const tried = some(40, generatedBots());
    let saved = 0;
    let submitted = 0;
    for (const drawn of tried) {
      const own = botOf(drawn, rule, 'own');
      const declared = botOf(drawn, rule, 'declared');
      const waking = botOf(drawn, rule, 'declared');
      const [expected, ...actual] = [
        own.strategy,
        declared.strategy,
        { ...waking.strategy, wakeOn: rule.wakeOn },
      ].map((strategy) => {
        const { engine } = runWith(drawn, strategy);
        submitted += engine.result().orders.submitted;
        return linesOf({ engine, seen: [] });
      });
      for (const lines of actual) expect(lines).toEqual(expected);
      if (!drawn.isLive) expect(linesOfRepeated(drawn, rule)).toEqual([expected, expected]);
      saved += declared.calls() - waking.calls();
    }
    expect(submitted).toBeGreaterThan(6.25 * tried.length);
    expect(saved).toBeGreaterThan(1.25 * tried.length);
  });
});

/** The steps at which a strategy with this condition on the closes is called, by close. */
function callsOf(
  wakeOn: (close: Series) => Condition,
  closes: readonly number[],
  isLive: boolean,
): number[] {
  const history = [{ symbol: 'X', bars: bars(closes.map((x) => [x, x, x, x] as const)) }];
  const called: number[] = [];
  const engine = new Engine({
    instruments: isLive ? [{ symbol: 'X', bars: allocateBars(0) }] : history,
    strategy: defineStrategy({
      name: 'sleeper',
      description: 'Records when it is called.',
      params: {},
      indicators: ({ instruments: [x] }) => x.close,
      wakeOn,
      create: ({ instruments: [x] }) => ({ onBar: () => called.push(x.count - 1) }),
    }),
    params: {},
    config: ENGINE_DEFAULTS,
  });
  if (!isLive) while (engine.advance(3));
  else {
    for (const step of stepsOf(history)) {
      engine.append(step);
      engine.advance(1);
    }
  }
  expect(engine.done).toBe(closes.length);
  return called;
}

describe.each([
  ['in a backtest', false],
  ['live', true],
])('%s, a strategy is called', (_, isLive) => {
  const closes = [5, 6, 5, 4, 4, 5, 7, 5, 3, 5];

  it.each<[string, (close: Series) => Condition, number[]]>([
    ['where a series crosses a level', (close) => crossing(close, 5), [1, 3, 6, 8]],
    ['where it crosses above', (close) => crossingAbove(close, 5), [1, 6]],
    ['where it crosses below', (close) => crossingBelow(close, 5), [3, 8]],
    ['while it is above', (close) => above(close, 5), [1, 6]],
    ['while it is below', (close) => below(close, 5), [3, 4, 8]],
    ['while it is above an average', (close) => above(close, sma(close, 3)), [5, 6, 9]],
    ['at the first step and at intervals', () => every(4), [0, 4, 8]],
    ['where any condition holds', (close) => any(every(4), above(close, 5)), [0, 1, 4, 6, 8]],
    ['where all conditions hold', (close) => all(every(4), below(close, 5)), [4, 8]],
  ])('%s', (__, wakeOn, expected) => {
    expect(callsOf(wakeOn, closes, isLive)).toEqual(expected);
  });
});

it('a strategy is called wherever series cross in a history that is prepared in several parts', () => {
  const closes = Array.from({ length: 20_000 }, (_, step) => 1 + ((step * step) % 7));
  const expected = [...closes.keys()].filter((step) => {
    const [before, now] = [closes[step - 1]!, closes[step]!];
    return (now > 3 && before <= 3) || (now < 3 && before >= 3);
  });
  expect(callsOf((close) => crossing(close, 3), closes, false)).toEqual(expected);
  expect(callsOf((close) => any(crossing(close, 3)), closes, false)).toEqual(expected);
});

it('a strategy is called at each step that is due, in batches of any size after a single step', () => {
  const called: number[] = [];
  const engine = new Engine({
    instruments: [
      { symbol: 'X', bars: bars(Array.from({ length: 9 }, () => [6, 6, 6, 6] as const)) },
    ],
    strategy: defineStrategy({
      name: 'sleeper',
      description: 'Records when it is called.',
      params: {},
      wakeOn: () => every(1),
      create: ({ instruments: [x] }) => ({ onBar: () => called.push(x.count - 1) }),
    }),
    params: {},
    config: ENGINE_DEFAULTS,
  });
  engine.advance(1);
  engine.advance(8);
  expect(called).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

it('a strategy is called after a fill, an expiry and a rejection, but not for what it did itself', () => {
  const called: number[] = [];
  const strategy = defineStrategy({
    name: 'sleeper',
    description: 'Orders at its first call.',
    params: {},
    wakeOn: () => every(100),
    create: ({ instruments: [x], broker }) => ({
      onBar() {
        called.push(x.count - 1);
        const { length } = called;
        if (length === 1) {
          // Filled in the next step; the limit expires with the next day, at step 5.
          broker.order({ instrument: x, side: 'buy', quantity: 1 });
        } else if (length === 2) {
          broker.order({
            instrument: x,
            side: 'buy',
            quantity: 1,
            type: 'limit',
            limit: 1,
            timeInForce: 'day',
          });
        } else if (length === 3) {
          broker.order({ instrument: x, side: 'buy', quantity: 1e9 });
        }
      },
    }),
  });
  const candles = Array.from({ length: 12 }, () => [10, 11, 9, 10] as const);
  const engine = new Engine({
    instruments: [{ symbol: 'X', bars: bars(candles, Date.UTC(2024, 0, 1), 21_600_000) }],
    strategy,
    params: {},
    config: ENGINE_DEFAULTS,
  });
  while (engine.advance(5));
  const kinds = [...engine.result().journal.events()].map(({ kind }) => kind);
  expect(kinds).toEqual([
    'order.submitted',
    'order.filled',
    'order.submitted',
    'order.expired',
    'order.submitted',
    'order.rejected',
  ]);
  expect(called).toEqual([0, 1, 4, 5]);
});

it.each([0, -1, 1.5, Number.NaN])('every(%d) is rejected', (steps) => {
  expect(() => every(steps)).toThrow('every: steps must be a whole number of at least 1');
});
