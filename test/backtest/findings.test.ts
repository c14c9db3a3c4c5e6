import { describe, expect, it } from 'vitest';
import { findings } from '../../src/backtest/findings.ts';
import type { FindingsInput } from '../../src/backtest/findings.ts';
import { statistics } from '../../src/backtest/statistics.ts';
import type { Finding } from '../../src/backtest/summary.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import { daily, day, run, trade } from './golden.ts';

const NOISE = [0.004, -0.002, 0.003, -0.004, 0.001];
/** 400 days of equity from 10,000 to about 11,700. */
const EQUITY = Array.from({ length: 400 }).reduce<number[]>(
  (equity, _, i) => [...equity, equity.at(-1)! * (1 + NOISE[i % 5]!)],
  [10_000],
);
const TRADES = Array.from({ length: 40 }, (_, i) => trade(i % 2 ? 140 : -60));

function bars(closes: readonly number[], range = 1): Bars {
  return barsFromRows(
    closes.map((close, i) => [day(i), close, close + range, close - range, close, 1000]),
  );
}

function instrument(history: Bars, { symbol = 'X', missing = 0, of = history.length } = {}) {
  return { symbol, bars: history, source: { bars: of, missing } };
}

type Overrides = Partial<Omit<FindingsInput, 'run'>> & {
  readonly equity?: readonly number[];
  readonly run?: Partial<FindingsInput['run']>;
};

/** What is found in a run that is sound but for what is given. */
function found({ equity = EQUITY, run: changes, ...rest }: Overrides = {}): Finding[] {
  const figures = {
    ...run({ equity, trades: TRADES }),
    orders: {
      submitted: 80,
      filled: 80,
      fills: 80,
      canceled: 0,
      expired: 0,
      rejected: {},
      denied: {},
    },
    ambiguousBars: 0,
    marginCalls: 0,
    ruinedAt: undefined,
    ...changes,
  };
  return findings({
    run: figures,
    statistics: statistics(figures, daily(figures.time)),
    instruments: [instrument(bars([100, 101, 102, 99, 101]))],
    heldEquity: 10_100,
    parameters: 2,
    ...rest,
  });
}

const codes = (overrides: Overrides): string[] => found(overrides).map(({ code }) => code);

describe('findings', () => {
  it('are none in a sound run', () => {
    expect(found()).toEqual([]);
  });

  it('come with the gravest first', () => {
    const severities = found({
      run: { trades: TRADES.slice(0, 5), marginCalls: 1, ambiguousBars: 1 },
      instruments: [instrument(bars([100, 300]), { missing: 1 })],
      heldEquity: 30_000,
    }).map(({ severity }) => severity);
    expect(severities).toEqual(['critical', 'warning', 'warning', 'warning', 'info', 'info']);
  });

  it('each say what was found, by which numbers, and what to do', () => {
    const all = found({
      equity: EQUITY.slice(0, 15),
      run: { trades: [trade(5000)], openTrades: [trade(5000)], fees: 9e5, ambiguousBars: 1 },
      parameters: 9,
    });
    expect(all.length).toBeGreaterThan(5);
    for (const finding of all) {
      expect(finding.issue).toMatch(/^[A-Z0-9].*\.$/);
      expect(finding.remedy).toMatch(/^[A-Z].*\.$/);
      expect(Object.keys(finding.evidence)).not.toHaveLength(0);
      expect(finding.issue).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  it('a lost account', () => {
    const [finding] = found({ equity: [...EQUITY, -5], run: { ruinedAt: 401 } });
    expect(finding).toMatchObject({
      code: 'ruin',
      severity: 'critical',
      evidence: { end_equity: -5, time: new Date(day(401)).toISOString() },
    });
  });

  it('a strategy that never traded, and nothing about its missing trades besides', () => {
    const nothing = found({
      equity: EQUITY.map(() => 10_000),
      run: {
        trades: [],
        orders: {
          submitted: 3,
          filled: 0,
          fills: 0,
          canceled: 0,
          expired: 0,
          rejected: { insufficient_funds: 3 },
          denied: {},
        },
      },
    });
    expect(nothing.map(({ code }) => code)).toEqual(['never_traded', 'refused_orders']);
    expect(nothing[0]!.evidence).toMatchObject({ bars: 401, orders_rejected: 3 });
    expect(nothing[1]!.evidence).toMatchObject({ causes: 'insufficient_funds 3' });
  });

  it('margin calls', () => {
    expect(found({ run: { marginCalls: 2 } })).toMatchObject([
      { code: 'margin_call', severity: 'critical', evidence: { margin_calls: 2 } },
    ]);
  });

  it('fewer than 30 trades', () => {
    expect(codes({ run: { trades: TRADES.slice(0, 29) } })).toEqual(['few_trades']);
    expect(codes({ run: { trades: TRADES.slice(0, 30) } })).toEqual([]);
  });

  it('one trade that makes half of the profit', () => {
    const net = EQUITY.at(-1)! - 10_000;
    const withBest = (pnl: number) => codes({ run: { trades: [...TRADES, trade(pnl)] } });
    expect(withBest(net / 2)).toEqual(['one_trade_makes_the_profit']);
    expect(withBest(net / 2 - 1)).toEqual([]);
    // A losing run has no profit that one trade could have made.
    const loss = EQUITY.map((value) => 20_000 - value);
    expect(codes({ equity: loss, run: { trades: [...TRADES, trade(9000)] } })).toEqual([
      'holding_is_better',
    ]);
  });

  it('profit that is still open', () => {
    const net = EQUITY.at(-1)! - 10_000;
    expect(codes({ run: { openTrades: [trade(net * 0.3), trade(net * 0.3)] } })).toEqual([
      'open_position_carries_the_profit',
    ]);
    expect(codes({ run: { openTrades: [trade(net * 0.4)] } })).toEqual([]);
  });

  it('fees above half of what was made before them', () => {
    const net = EQUITY.at(-1)! - 10_000;
    expect(codes({ run: { fees: net * 1.01 } })).toEqual(['fees_eat_the_profit']);
    expect(codes({ run: { fees: net * 0.99 } })).toEqual([]);
  });

  it('fewer than ten trades per parameter', () => {
    expect(found({ parameters: 5 })).toMatchObject([
      { code: 'many_parameters', evidence: { parameters: 5, trades_per_parameter: 8 } },
    ]);
    expect(codes({ parameters: 4 })).toEqual([]);
    expect(codes({ parameters: 0 })).toEqual([]);
  });

  it('a Sharpe ratio too good to be true', () => {
    const equity = EQUITY.map((value, i) => value * 1.002 ** i);
    expect(codes({ equity })).toEqual(['sharpe_too_good']);
  });

  it('a window too short for yearly figures', () => {
    const short = found({ equity: EQUITY.slice(0, 20), run: { trades: TRADES } });
    expect(short.find(({ code }) => code === 'short_window')!.evidence).toEqual({
      days: 19,
      undefined: 'returns.cagr, returns.annual, risk.calmar, costs.turnover',
    });
  });

  it('stale bars: runs of five and more, with the symbol they are worst in', () => {
    const moving = Array.from({ length: 995 }, (_, i) => 100 + (i % 2));
    const flat = (count: number) => bars([...moving, ...Array<number>(count).fill(100)], 0);
    const stale = (count: number) => found({ instruments: [instrument(flat(count))] });
    // The last moving bar closes at 100 as well.
    expect(stale(3)).toEqual([]);
    expect(stale(4)).toMatchObject([{ code: 'stale_bars', severity: 'info', evidence: { X: 5 } }]);
    expect(stale(20)).toMatchObject([{ code: 'stale_bars', severity: 'warning' }]);
    const withRange = bars(Array<number>(50).fill(100), 1);
    expect(codes({ instruments: [instrument(withRange)] })).toEqual([]);
  });

  it('missing bars, by the instrument that lacks most, in bars of its source', () => {
    const of = (missing: number, sourceBars: number) => [
      instrument(bars([100, 101, 100]), { missing, of: sourceBars }),
      instrument(bars([100, 101, 100]), { symbol: 'Y', missing: 1, of: 1_000_000 }),
    ];
    expect(found({ instruments: of(2, 3) })).toMatchObject([
      { code: 'missing_bars', severity: 'warning', evidence: { X: 2, Y: 1 } },
    ]);
    const [footnote] = found({ instruments: of(30, 29_970) });
    expect(footnote).toMatchObject({ severity: 'info', evidence: { X: 30 } });
    expect(footnote!.issue).toContain('0.1 % of the bars that the source of X should have');
    expect(codes({ instruments: [instrument(bars([100, 101, 100]))] })).toEqual([]);
  });

  it('ambiguous bars, graver when many fills depend on them', () => {
    expect(found({ run: { ambiguousBars: 7 } })).toMatchObject([
      { code: 'ambiguous_bars', severity: 'info', evidence: { bars: 7, fills: 80 } },
    ]);
    expect(found({ run: { ambiguousBars: 8 } })[0]!.severity).toBe('warning');
  });

  it('that holding would have made more', () => {
    expect(found({ heldEquity: 20_000 })).toMatchObject([
      { code: 'holding_is_better', severity: 'info', evidence: { buy_and_hold: 1 } },
    ]);
  });

  it('that what was bought was held to the end, in one finding', () => {
    const made = EQUITY.at(-1)! - 10_000;
    const holder = { trades: [], openTrades: [trade(made)] };
    expect(found({ heldEquity: 20_000, run: holder })).toMatchObject([
      {
        code: 'never_closed',
        evidence: { open_positions: 1, total_return: expect.closeTo(made / 10_000, 12) },
      },
    ]);
  });
});
