import { describe, expect, it } from 'vitest';
import { compareRuns } from '../../../src/backtest/compare/compare-runs.ts';
import { overlayCurves } from '../../../src/backtest/compare/overlaid-curves.ts';
import { sharedWindow } from '../../../src/backtest/compare/shared-window.ts';
import type { StoredRun } from '../../../src/backtest/compare/stored-run.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import { day, trade } from '../golden.ts';
import { syntheticRun } from '../report-fixture.ts';

const { summary } = syntheticRun({ steps: 300 });

/** A run of daily steps from the day `from` on. */
function stored(
  equity: readonly number[],
  {
    from = 0,
    entered = [],
    ...more
  }: Partial<Summary> & { from?: number; entered?: StoredRun['trades'] } = {},
): StoredRun {
  const time = Float64Array.from(equity, (_, step) => day(from + step));
  const window = {
    from: new Date(time[0]!).toISOString(),
    to: new Date(time.at(-1)!).toISOString(),
    bars: time.length,
  };
  return {
    directory: '/runs/x',
    summary: {
      ...summary,
      window,
      currency: 'USD',
      equity: { start: equity[0]!, end: equity.at(-1)!, peak: 200 },
      ...more,
    },
    time,
    equity: Float64Array.from(equity),
    initialCash: equity[0]!,
    trades: entered,
  };
}
const closed = (id: number, entry: number, pnl: number) => ({
  ...trade(pnl, { id, entry_time: day(entry), exit_time: day(entry + 1) }),
  status: 'closed' as const,
});
const figure = (of: ReturnType<typeof compareRuns>, name: string) =>
  of.figures.find((each) => each.figure === name)!;

describe('figures side by side', () => {
  it('mark the better value in the direction of the figure, all values of a tie, and none if all are equal', () => {
    const risk = (sharpe: number | null, volatility: number) => ({
      risk: { ...summary.risk, sharpe, volatility },
    });
    const compared = compareRuns([
      stored([100, 110], risk(1, 0.3)),
      stored([100, 110], risk(2, 0.1)),
      stored([100, 110], risk(null, 0.1)),
    ]);
    expect(figure(compared, 'sharpe')).toEqual({
      figure: 'sharpe',
      values: [1, 2, null],
      best: [1],
    });
    expect(figure(compared, 'volatility').best).toEqual([1, 2]);
    expect(figure(compared, 'max_drawdown').best).toEqual([]);
    expect(figure(compared, 'trades').best).toEqual([]);
  });

  it('mark no value that is printed like a worse one', () => {
    const risk = (sharpe: number) => ({ risk: { ...summary.risk, sharpe } });
    const of = (...sharpes: number[]) =>
      compareRuns(sharpes.map((sharpe) => stored([100, 110], risk(sharpe))));
    expect(figure(of(1.20001, 1.20002), 'sharpe').best).toEqual([]);
    expect(figure(of(1.20001, 1.20002, 1), 'sharpe').best).toEqual([0, 1]);
  });

  it('do not rank amounts of money in different currencies, and say so', () => {
    const compared = compareRuns([stored([100, 110]), stored([100, 130], { currency: 'EUR' })]);
    expect(figure(compared, 'end_equity')).toMatchObject({ values: [110, 130], best: [] });
    expect(compared.notes.join()).toContain('USD and EUR');
  });
});

describe('figures that are not comparable', () => {
  const benchmark = { ...summary.benchmark!, alpha: 0.1, information_ratio: 1 };
  const better = { ...benchmark, alpha: 0.2, information_ratio: 2 };
  const risk = { ...summary.risk, sharpe: 1, volatility: 0.2 };
  const less = { ...risk, sharpe: 2, volatility: 0.1 };

  it('are alpha and information ratio against different benchmarks, which the notes name', () => {
    const marked = compareRuns([
      stored([100, 110], { benchmark }),
      stored([100, 110], { benchmark: better }),
    ]);
    expect(figure(marked, 'alpha').best).toEqual([1]);
    const chosen = compareRuns([
      stored([100, 110], { benchmark }),
      stored([100, 110], { benchmark: { ...better, name: 'QQQ', data: 'd1' } }),
    ]);
    expect(figure(chosen, 'alpha')).toMatchObject({ values: [0.1, 0.2], best: [] });
    expect(figure(chosen, 'information_ratio').best).toEqual([]);
    expect(chosen.notes.join()).toContain('The benchmarks differ, buying and holding');
    expect(chosen.notes.join()).toContain('and QQQ');
  });

  it('are those against buying and holding different instruments, and against changed data of one', () => {
    const lock = { ...summary.lock, data: { BTC: 'b' } };
    const held = compareRuns([
      stored([100, 110], { benchmark }),
      stored([100, 110], { benchmark: better, lock }),
    ]);
    expect(figure(held, 'alpha').best).toEqual([]);
    expect(held.notes.join()).toContain('buying and holding BTC');
    const of = (data: string, alpha: number) => ({ ...benchmark, name: 'QQQ', data, alpha });
    const changed = compareRuns([
      stored([100, 110], { benchmark: of('d1', 0.1) }),
      stored([100, 110], { benchmark: of('d2', 0.2) }),
    ]);
    expect(figure(changed, 'alpha').best).toEqual([]);
    expect(changed.notes.join()).toContain('The data of the benchmark differ, QQQ');
  });

  it('are ratios with another annualization, in the shared window, too', () => {
    const weekly = { ...summary.conventions, sampling: 'week' as const, periods_per_year: 52 };
    const compared = compareRuns([
      stored([100, 110, 105], { risk }),
      stored([100, 120, 90], { risk: less, conventions: weekly }),
    ]);
    expect(figure(compared, 'sharpe').best).toEqual([]);
    expect(figure(compared, 'volatility').best).toEqual([]);
    const shared = compared.shared!.figures;
    expect(shared.find((one) => one.figure === 'volatility')!.best).toEqual([]);
    expect(shared.find((one) => one.figure === 'total_return')!.best).toEqual([0]);
    expect(compared.notes.join()).toContain('by week (52 a year)');
  });

  it('are drawdowns at the closes of bars of another length', () => {
    const daily = stored([100, 110, 105, 120, 110]);
    const halfDaily = { ...daily, time: Float64Array.from([0, 0.5, 1, 1.5, 4], day) };
    const shared = compareRuns([
      daily,
      { ...halfDaily, equity: Float64Array.from([100, 110, 50, 120, 130]) },
    ]).shared!.figures;
    expect(shared.find((one) => one.figure === 'max_drawdown')!.best).toEqual([]);
    expect(shared.find((one) => one.figure === 'total_return')!.best).toEqual([1]);
  });

  it('are all figures over different windows but those over the shared one', () => {
    const { figures, shared, notes } = compareRuns([
      stored([100, 110, 121, 121], { risk }),
      stored([100, 110, 90], { from: 1, risk: less }),
    ]);
    expect(figures.flatMap(({ best }) => best)).toEqual([]);
    expect(shared!.figures.find((one) => one.figure === 'total_return')!.best).toEqual([0]);
    expect(notes[0]).toContain('are not ranked');
  });

  it('are amounts of money of accounts with different start equity', () => {
    const compared = compareRuns([stored([100, 110]), stored([1000, 1010])]);
    expect(figure(compared, 'end_equity').best).toEqual([]);
    expect(compared.notes.join()).toContain('different equity');
  });
});

describe('runs over different windows', () => {
  const early = stored([100, 110, 121, 121]);
  const late = stored([50, 55, 55, 66], { from: 2 });

  it('are compared over the window that they share', () => {
    const { shared, notes } = compareRuns([early, late]);
    expect(shared).toMatchObject({
      from: '2024-01-03T00:00:00.000Z',
      to: '2024-01-04T00:00:00.000Z',
    });
    // The early run enters the window with its equity of 110 on the day before.
    const [total] = shared!.figures;
    expect(total!.values[0]).toBeCloseTo(0.1, 12);
    expect(total!.values[1]).toBeCloseTo(0.1, 12);
    expect(notes[0]).toContain('from 2024-01-03 to 2024-01-04');
  });

  it('are drawn from its start, at the same instants', () => {
    const runs = [early, late];
    expect(overlayCurves(runs, sharedWindow(runs), 100)).toEqual({
      time: [day(2) / 1000, day(3) / 1000],
      growth: [
        [0.1, 0.1],
        [0, 0.1],
      ],
      drawdown: [
        [0, 0],
        [0, 0],
      ],
    });
  });

  it('without a common window are compared by figures only, with a curve over their own time', () => {
    const runs = [stored([100, 90]), stored([100, 120], { from: 5 })];
    const { shared, notes, differences } = compareRuns(runs);
    expect(shared).toBeNull();
    expect(notes[0]).toContain('do not overlap');
    expect(differences[0]!.trade).toBeNull();
    expect(overlayCurves(runs, undefined, 100)).toMatchObject({
      growth: [
        [0, -0.1, null, null],
        [null, null, 0, 0.2],
      ],
      drawdown: [
        [0, -0.1, null, null],
        [null, null, 0, 0],
      ],
    });
  });
});

it('a chart of fewer points than steps keeps the deepest drawdown and the last instant', () => {
  const equity = Array.from({ length: 1000 }, (_, step) => (step === 501 ? 40 : 100));
  const run = stored(equity);
  const { time, drawdown } = overlayCurves([run, run], sharedWindow([run, run]), 10);
  expect(time.length).toBeLessThanOrEqual(10);
  expect(time.at(-1)).toBe(day(999) / 1000);
  expect(Math.min(...drawdown[0]!.map(Number))).toBe(-0.6);
});

describe('the first trade that differs', () => {
  const base = [closed(1, 0, 5), closed(2, 2, 7)];
  const differ = (others: StoredRun['trades']) =>
    compareRuns([
      stored([1, 2, 3, 4], { entered: base }),
      stored([1, 2, 3, 4], { entered: others }),
    ]).differences[0]!.trade;

  it('is named with its fields', () => {
    expect(differ([base[0]!, closed(2, 2, 8)])).toMatchObject({
      number: 2,
      fields: ['exit_price', 'pnl'],
      first: { pnl: 7, entry_time: '2024-01-03T00:00:00.000Z' },
      other: { pnl: 8 },
    });
  });

  it('may be missing in one run, and does not exist for equal trades', () => {
    expect(differ([base[0]!])).toMatchObject({ number: 2, other: null });
    expect(differ([...base])).toBeNull();
  });
});

it('differences of parameters and locks are named for each run', () => {
  const lock = { ...summary.lock, data: { SPX: 'other' } };
  const { differences } = compareRuns([
    stored([1, 2], { params: { fast: 10, slow: 30 } }),
    stored([1, 2], { params: { fast: 20, slow: 30 }, lock }),
  ]);
  expect(differences).toMatchObject([
    { run: 'B', params: [{ name: 'fast', first: 10, other: 20 }], lock: ['data of SPX: changed'] },
  ]);
});
