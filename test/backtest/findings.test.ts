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

/** Daily bars with these closes, extended to the end of the run of `EQUITY`. */
function bars(closes: readonly number[], range = 1): Bars {
  const rest = Array.from(
    { length: Math.max(0, EQUITY.length - closes.length) },
    (_, i) => 100 + (i % 2),
  );
  return barsFromRows(
    [...closes, ...rest].map((close, i) => {
      return [day(i), close, close + range, close - range, close, 1000];
    }),
  );
}

function instrument(history: Bars, { symbol = 'X', missing = 0, of = history.length } = {}) {
  return { symbol, bars: history, source: { bars: of, missing } };
}

type Overrides = Partial<Omit<FindingsInput, 'run'>> & {
  readonly equity?: readonly number[];
  readonly run?: Partial<FindingsInput['run']>;
};

/** Findings of a sound run with the given changes. */
function found({ equity = EQUITY, run: changes, ...rest }: Overrides = {}): Finding[] {
  const figures = {
    ...run({ equity, trades: TRADES }),
    orders: {
      submitted: 80,
      filled: 80,
      fills: 80,
      canceled: 0,
      expired: 0,
      working: 0,
      rejected: {},
      denied: {},
      limited: {},
    },
    ambiguousBars: 0,
    marginCalls: 0,
    cappedTargets: { count: 0, since: undefined },
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

const ORDERS = {
  submitted: 3,
  filled: 0,
  fills: 0,
  canceled: 0,
  expired: 0,
  working: 0,
  rejected: {},
  denied: {},
  limited: {},
};

describe('findings', () => {
  it('are empty for a sound run', () => {
    expect(found()).toEqual([]);
  });

  it('are ordered by severity', () => {
    const severities = found({
      run: { trades: TRADES.slice(0, 5), marginCalls: 1, ambiguousBars: 1 },
      instruments: [instrument(bars([100, 300]), { missing: 1, of: 2 })],
      heldEquity: 30_000,
    }).map(({ severity }) => severity);
    expect(severities).toEqual(['critical', 'warning', 'warning', 'warning', 'info', 'info']);
  });

  it('each have an issue, numbers and a remedy', () => {
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

  it('report a lost account', () => {
    const [finding] = found({ equity: [...EQUITY, -5], run: { ruinedAt: 401 } });
    expect(finding).toMatchObject({
      code: 'ruin',
      severity: 'critical',
      evidence: { end_equity: -5, time: new Date(day(401)).toISOString() },
    });
  });

  it('report a strategy that never traded once, without findings about its trades', () => {
    const nothing = found({
      equity: EQUITY.map(() => 10_000),
      run: {
        trades: [],
        orders: { ...ORDERS, rejected: { insufficient_funds: 3 } },
      },
    });
    expect(nothing.map(({ code }) => code)).toEqual(['never_traded', 'refused_orders']);
    expect(nothing[0]!.evidence).toMatchObject({ bars: 401, orders_rejected: 3 });
    expect(nothing[0]!.issue).toContain('3 orders refused, most often for insufficient_funds');
    expect(nothing[0]!.remedy).toBe(nothing[1]!.remedy);
    expect(nothing[1]!.evidence).toMatchObject({ causes: 'insufficient_funds 3' });
  });

  it('attribute a threshold to the administrator, not to the spec', () => {
    const orders = { ...ORDERS, rejected: {}, denied: { threshold_order_value: 2 } };
    const refused = found({ equity: EQUITY, run: { orders } }).find(
      ({ code }) => code === 'refused_orders',
    );
    expect(refused!.remedy).toMatch(
      /^Trade within threshold_order_value, .*`.*risk thresholds list`/,
    );
    expect(refused!.remedy).not.toContain('under risk');
  });

  it('report margin calls', () => {
    expect(found({ run: { marginCalls: 2 } })).toMatchObject([
      { code: 'margin_call', severity: 'critical', evidence: { margin_calls: 2 } },
    ]);
  });

  it('report targets above the leverage of the account once, with the first time', () => {
    const cappedTargets = { count: 3, since: day(7) };
    expect(found({ run: { cappedTargets } })).toMatchObject([
      {
        code: 'capped_targets',
        severity: 'warning',
        issue: expect.stringMatching(/^3 targets .* first at 2024-01-08T00:00:00.000Z\.$/),
        evidence: { targets: 3, first: '2024-01-08T00:00:00.000Z' },
      },
    ]);
  });

  it('report fewer than 30 trades', () => {
    expect(codes({ run: { trades: TRADES.slice(0, 29) } })).toEqual(['few_trades']);
    expect(codes({ run: { trades: TRADES.slice(0, 30) } })).toEqual([]);
  });

  it('report a trade that makes half of the profit', () => {
    const net = EQUITY.at(-1)! - 10_000;
    const withBest = (pnl: number) => codes({ run: { trades: [...TRADES, trade(pnl)] } });
    expect(withBest(net / 2)).toEqual(['one_trade_makes_the_profit']);
    expect(withBest(net / 2 - 1)).toEqual([]);
    // A losing run has no profit.
    const loss = EQUITY.map((value) => 20_000 - value);
    expect(codes({ equity: loss, run: { trades: [...TRADES, trade(9000)] } })).toEqual([
      'holding_is_better',
    ]);
  });

  it('report profit that is still open', () => {
    const net = EQUITY.at(-1)! - 10_000;
    expect(codes({ run: { openTrades: [trade(net * 0.3), trade(net * 0.3)] } })).toEqual([
      'open_position_carries_the_profit',
    ]);
    expect(codes({ run: { openTrades: [trade(net * 0.4)] } })).toEqual([]);
  });

  it('report fees above half of the profit before fees', () => {
    const net = EQUITY.at(-1)! - 10_000;
    expect(codes({ run: { fees: net * 1.01 } })).toEqual(['fees_eat_the_profit']);
    expect(codes({ run: { fees: net * 0.99 } })).toEqual([]);
  });

  it('report fewer than ten trades per parameter', () => {
    expect(found({ parameters: 5 })).toMatchObject([
      { code: 'many_parameters', evidence: { parameters: 5, trades_per_parameter: 8 } },
    ]);
    expect(codes({ parameters: 4 })).toEqual([]);
    expect(codes({ parameters: 0 })).toEqual([]);
  });

  it('report an implausibly high Sharpe ratio', () => {
    const equity = EQUITY.map((value, i) => value * 1.002 ** i);
    expect(codes({ equity })).toEqual(['sharpe_too_good']);
  });

  it('report a window that is too short for yearly figures', () => {
    const short = found({ equity: EQUITY.slice(0, 20), run: { trades: TRADES } });
    const finding = short.find(({ code }) => code === 'short_window');
    expect(finding!.evidence).toEqual({ days: 19, enough: 30 });
    expect(finding!.issue).toContain('CAGR, annual return, Calmar and turnover are not computed');
    expect(finding!.issue).toContain(
      'Sharpe, Sortino and volatility, annualized from so few returns,',
    );
    const codesOf = (days: number) => codes({ equity: EQUITY.slice(0, days + 1) });
    expect(codesOf(29)).toContain('short_window');
    expect(codesOf(30)).not.toContain('short_window');
  });

  it('report runs of five or more stale bars, with the worst symbol', () => {
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

  it('report missing bars of the source, with the worst instrument', () => {
    const of = (missing: number, sourceBars: number) => [
      instrument(bars([100, 101, 100]), { missing, of: sourceBars }),
      instrument(bars([100, 101, 100]), { symbol: 'Y', missing: 1, of: 1_000_000 }),
    ];
    expect(found({ instruments: of(2, 3) })).toMatchObject([
      { code: 'missing_bars', severity: 'warning', evidence: { X: 2, Y: 1 } },
    ]);
    const [footnote] = found({ instruments: of(30, 29_970) });
    expect(footnote).toMatchObject({ severity: 'info', evidence: { X: 30 } });
    expect(footnote!.issue).toContain('0.10% of the bars that the source of X should have');
    expect(codes({ instruments: [instrument(bars([100, 101, 100]))] })).toEqual([]);
  });

  describe('of data that do not span the run', () => {
    // 401 steps to `day(400)`, on weekdays only.
    const weekdays = (from: number, to: number): Bars =>
      barsFromRows(
        Array.from({ length: to - from + 1 }, (_, i) => from + i)
          .filter((n) => n % 7 < 5)
          .map((n, i) => [day(n), 100, 101, 99, 100 + (i % 2), 1000]),
      );
    const whole = instrument(weekdays(0, 400));
    const beside = (history: Bars) => [whole, instrument(history, { symbol: 'Y' })];

    it('are critical if the data end early with an open position', () => {
      const instruments = beside(weekdays(0, 39));
      const [warning, ...others] = found({ instruments });
      expect(others).toEqual([]);
      expect(warning).toMatchObject({
        code: 'data_end_early',
        severity: 'warning',
        issue:
          'The data of Y end at 2024-02-09, 12 months before the run: no later order for it could be filled.',
        evidence: { Y: '2024-02-09' },
      });
      const openTrades = [trade(1, { symbol: 'Y' })];
      const [critical] = found({ instruments, run: { openTrades } });
      expect(critical).toMatchObject({ code: 'data_end_early', severity: 'critical' });
      expect(critical!.issue).toContain('its position is valued at that close');
    });

    it('name the instrument that is held first', () => {
      const openTrades = [trade(1, { symbol: 'Z' })];
      const held = instrument(weekdays(0, 300), { symbol: 'Z' });
      const [finding] = found({
        instruments: [...beside(weekdays(0, 39)), held],
        run: { openTrades },
      });
      expect(finding).toMatchObject({ severity: 'critical', evidence: { Z: '2024-10-25' } });
      expect(finding!.issue).toMatch(/^The data of Z end/);
    });

    it('ignore a weekend and five bars', () => {
      expect(codes({ instruments: beside(weekdays(0, 396)) })).toEqual([]);
      expect(codes({ instruments: beside(weekdays(0, 394)) })).toEqual(['data_end_early']);
    });

    it('report data that begin late', () => {
      expect(found({ instruments: beside(weekdays(91, 400)) })).toMatchObject([
        {
          code: 'data_start_late',
          severity: 'info',
          issue:
            'Y begins 2024-04-01, 3 months after the run: until then only the others were traded.',
          evidence: { Y: '2024-04-01' },
        },
      ]);
      expect(codes({ instruments: beside(weekdays(4, 400)) })).toEqual([]);
    });

    it('ignore hours during which an exchange is closed', () => {
      const hourly = (n: number): Bars =>
        barsFromRows(
          Array.from({ length: n }, (_, i) => [
            day(Math.floor(i / 7)) + (14 + (i % 7)) * 3_600_000,
            100,
            101,
            99,
            100 + (i % 2),
            1000,
          ]),
        );
      // The run's last step is midnight of day 400, eight hours before any bar of that day.
      expect(codes({ instruments: beside(hourly(400 * 7)) })).toEqual([]);
      expect(codes({ instruments: beside(hourly(399 * 7)) })).toEqual(['data_end_early']);
    });
  });

  it('report ambiguous bars, as a warning if many fills depend on them', () => {
    expect(found({ run: { ambiguousBars: 7 } })).toMatchObject([
      { code: 'ambiguous_bars', severity: 'info', evidence: { bars: 7, fills: 80 } },
    ]);
    expect(found({ run: { ambiguousBars: 8 } })[0]!.severity).toBe('warning');
  });

  it('report that holding would have made more', () => {
    expect(found({ heldEquity: 20_000 })).toMatchObject([
      { code: 'holding_is_better', severity: 'info', evidence: { buy_and_hold: 1 } },
    ]);
  });

  it('report a run that only buys and holds in one finding', () => {
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
