import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  evaluateGates,
  gatesOfSpec,
  impossibleToFail,
  impossibleToPass,
  isMetric,
  METRIC_NAMES,
  parseAssertion,
  valueOf,
} from '../../src/backtest/gates.ts';
import type { GateFigures, RunAssertion } from '../../src/backtest/gates.ts';
import { compareWithBenchmark } from '../../src/backtest/benchmark.ts';
import { statistics } from '../../src/backtest/statistics.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { daily, goldenRun, run } from './golden.ts';

function figuresOf(of = goldenRun()): GateFigures {
  const conventions = daily(of.time);
  const figures = statistics(of, conventions);
  const market = of.equity.map((value, step) => value * (1 + Math.sin(step) / 10));
  const against = compareWithBenchmark(of, { equity: market }, conventions);
  return {
    ...figures,
    benchmark: against.benchmark,
    deflated_sharpe: { probability: 0.4, expected_max_sharpe: 1.1, trials: 12 },
    undefined: { ...figures.undefined, ...against.undefined },
    orders: {
      submitted: 9,
      filled: 5,
      fills: 6,
      canceled: 0,
      expired: 0,
      working: 0,
      rejected: 3,
      denied: 1,
      refused: 4,
      reasons: {},
    },
    ambiguity: { bars: 2 },
    margin_calls: 0,
  };
}

function refusal(text: string): ServiceError {
  try {
    parseAssertion(text);
  } catch (error) {
    if (error instanceof ServiceError) return error;
  }
  throw new Error(`${text} was not refused`);
}

describe('an assertion', () => {
  it.each<[string, RunAssertion]>([
    ['sharpe>=0.5', { name: 'sharpe', op: '>=', threshold: 0.5 }],
    [' max_drawdown  >  -0.2 ', { name: 'max_drawdown', op: '>', threshold: -0.2 }],
    ['trades<1e3', { name: 'trades', op: '<', threshold: 1000 }],
    ['var_95<=-.01', { name: 'var_95', op: '<=', threshold: -0.01 }],
  ])('is parsed from %s', (text, expected) => {
    expect(parseAssertion(text)).toEqual(expected);
  });

  it.each(['', 'sharpe', 'sharpe=1', 'sharpe==1', '>=1', 'sharpe>=', 'sharpe>=1 2'])(
    'is not parsed from %j',
    (text) => {
      const error = refusal(text);
      expect(error.code).toBe('usage');
      expect(error.message).toContain('not of the form');
      expect(error.remedy).toContain('sharpe>=0.5');
    },
  );

  it('suggests a similar metric, or lists all metrics', () => {
    expect(refusal('sharp>=1').remedy).toBe('Did you mean sharpe?');
    expect(refusal('max_drawdwon>=-0.2').remedy).toBe('Did you mean max_drawdown?');
    expect(refusal('toString>=1').remedy).toContain('sortino');
  });

  it.each(['win_rate>=50%', 'sharpe>=NaN', 'sharpe<=Infinity', 'fees<=ten'])(
    'requires a number, unlike %s',
    (text) => {
      expect(refusal(text).message).toContain('not a number');
    },
  );

  it('is rejected if it can never fail or never pass', () => {
    expect(refusal('max_drawdown<=0.2').message).toContain('can never fail');
    expect(refusal('win_rate>1').message).toContain('can never pass');
  });
});

describe('the gates of a spec', () => {
  it('are one for each limit, and values equal to a limit pass', () => {
    expect(
      gatesOfSpec([
        { name: 'sharpe', min: 0.5 },
        { name: 'exposure', min: 0.1, max: 0.9 },
        { name: 'fees', max: undefined },
      ]),
    ).toEqual([
      { name: 'sharpe', op: '>=', threshold: 0.5 },
      { name: 'exposure', op: '>=', threshold: 0.1 },
      { name: 'exposure', op: '<=', threshold: 0.9 },
    ]);
  });
});

describe('a gate without effect', () => {
  const gate = (text: string): RunAssertion => {
    const [, name, op, threshold] = /^(\w+) (\S+) (\S+)$/.exec(text)!;
    if (!isMetric(name!)) throw new Error(name);
    return { name, op: op as RunAssertion['op'], threshold: Number(threshold) };
  };

  it.each([
    'max_drawdown >= -1',
    'max_drawdown <= 0',
    'max_drawdown <= 0.2',
    'win_rate >= 0',
    'win_rate <= 1',
    'exposure > -0.1',
    'trades >= 0',
    'kelly <= 1',
    'cagr >= -1',
  ])('can never fail: %s', (text) => {
    expect(impossibleToFail(gate(text))).toMatch(/^can never fail: \w+ (lies|is never)/);
    expect(impossibleToPass(gate(text))).toBeUndefined();
  });

  it.each(['max_drawdown >= 0.2', 'max_drawdown > 0', 'win_rate > 1', 'trades < 0', 'kelly > 1'])(
    'can never pass: %s',
    (text) => {
      expect(impossibleToPass(gate(text))).toMatch(/^can never pass: \w+ (lies|is never)/);
      expect(impossibleToFail(gate(text))).toBeUndefined();
    },
  );

  it.each([
    'max_drawdown >= -0.2',
    'max_drawdown >= 0',
    'win_rate > 0',
    'sharpe >= -5',
    'kelly < 1',
  ])('is not %s', (text) => {
    expect(impossibleToFail(gate(text))).toBeUndefined();
    expect(impossibleToPass(gate(text))).toBeUndefined();
  });

  it('is rejected with the range of the metric', () => {
    expect(impossibleToFail(gate('max_drawdown <= 0'))).toContain(
      'max_drawdown lies between -1 and 0',
    );
    expect(impossibleToFail(gate('fees >= 0'))).toContain('fees is never below 0');
    expect(impossibleToPass(gate('kelly > 1'))).toContain('kelly is never above 1');
  });
});

describe('the evaluation of gates', () => {
  it('compares with the figures of the summary', () => {
    const gates = evaluateGates(
      [
        parseAssertion('sharpe>=1.2'),
        parseAssertion('max_drawdown>=-0.1'),
        parseAssertion('rejected_orders<=3'),
        parseAssertion('trades>504'),
        parseAssertion('trades<=504'),
      ],
      figuresOf(),
    );
    expect(gates.map(({ name, pass }) => [name, pass])).toEqual([
      ['sharpe', true],
      ['max_drawdown', false],
      ['rejected_orders', true],
      ['trades', false],
      ['trades', true],
    ]);
    expect(gates[0]!.value).toBeCloseTo(1.242040479, 8);
  });

  it('fails every gate on an undefined figure', () => {
    const nothing = figuresOf(run({ equity: [1000] }));
    for (const op of ['>=', '<=', '>', '<'] as const) {
      const gates = evaluateGates([{ name: 'sharpe', op, threshold: 0 }], nothing);
      expect(gates).toEqual([
        { name: 'sharpe', op, threshold: 0, value: null, pass: false, reason: 'too_few_returns' },
      ]);
      expect(gates.map(valueOf)).toEqual(['undefined: there are too few returns']);
    }
  });

  it('finds every metric in its summary, within its range', () => {
    const figures = figuresOf();
    fc.assert(
      fc.property(fc.constantFrom(...METRIC_NAMES), (name) => {
        const [gate] = evaluateGates([{ name, op: '>=', threshold: -1e9 }], figures);
        expect(gate).toMatchObject({ name, value: expect.any(Number), pass: true });
        for (const op of ['>', '<'] as const) {
          const atValue: RunAssertion = { name, op, threshold: gate!.value! };
          expect(evaluateGates([atValue], figures)[0]!.pass).toBe(false);
          expect(impossibleToFail(atValue)).toBeUndefined();
        }
      }),
    );
  });
});
