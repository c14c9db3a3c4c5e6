/**
 * Computes the figures that questions ask for from the files of a run, independently of the analyst.
 * `is` in `questions.yaml` is an expression over these helpers.
 */
import { formatMoney, formatPercent, formatRatio } from '../../src/base/format.ts';

export interface TradeOfFile {
  readonly symbol: string;
  readonly side: string;
  /** ISO times. */
  readonly entry: string;
  readonly exit: string;
  readonly bars: number;
  readonly pnl: number;
  readonly return: number;
  readonly fees: number;
}

interface Span {
  readonly name: string;
  readonly ret: number;
}

interface Fall {
  readonly depth: number;
  readonly low: string;
  readonly end: string | undefined;
}

export interface RunFiles {
  readonly summary: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly trades: string;
  readonly equity: string;
  /** `events.ndjson` */
  readonly events: string;
}

const DAY = 86_400_000;

/** A figure that must stand where the answer states it, after a colon. */
export interface Stated {
  readonly stated: string;
}

const rows = (csv: string): string[][] =>
  csv
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => line.split(','));

const mean = (values: readonly number[]): number => sum(values) / values.length;
const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

type Key<T> = (item: T) => number | string;
const up =
  <T>(key: Key<T>) =>
  (a: T, b: T): number =>
    key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
const down =
  <T>(key: Key<T>) =>
  (a: T, b: T): number =>
    up(key)(b, a);

function readTrades(csv: string, status: string): TradeOfFile[] {
  return rows(csv)
    .filter((cells) => cells[12] === status)
    .map((cells) => ({
      symbol: cells[1]!,
      side: cells[2]!,
      entry: cells[3]!,
      exit: cells[4]!,
      bars: Number(cells[5]),
      pnl: Number(cells[9]),
      return: Number(cells[10]),
      fees: Number(cells[11]),
    }));
}

function streaks<T>(items: readonly T[], isIn: (item: T) => boolean): T[][] {
  const found: T[][] = [[]];
  for (const item of items) {
    if (isIn(item)) found.at(-1)!.push(item);
    else found.push([]);
  }
  return found.filter(({ length }) => length > 0);
}

function longest<T>(items: readonly T[], isIn: (item: T) => boolean): T[] {
  return streaks(items, isIn).toSorted((a, b) => b.length - a.length)[0]!;
}

/** Everything that expressions may use. */
export function helpersFor({ summary, trades, equity, events }: RunFiles) {
  const T = readTrades(trades, 'closed');
  const held = (t: TradeOfFile): number => (Date.parse(t.exit) - Date.parse(t.entry)) / DAY;
  const points = rows(equity).map(([time, value]) => ({
    day: time!.slice(0, 10),
    equity: Number(value),
  }));
  const start = summary['equity']!['start']!;
  const before = (day: string): number =>
    points.findLast((point) => point.day < day)?.equity ?? start;
  const at = (day: string): number => points.findLast((point) => point.day <= day)!.equity;
  const profit = (from: string, to: string): number => at(to) - before(from);
  const returns = (from: string, to: string): number[] => {
    const values = [before(from), ...within(from, to).map((point) => point.equity)];
    return values.slice(1).map((value, i) => value / values[i]! - 1);
  };
  const fills = events
    .split('\n')
    .filter((line) => line.includes('"order.filled"'))
    .map(
      (line) => JSON.parse(line) as Readonly<Record<'fee' | 'slippage', number>> & { time: string },
    );
  /** Costs of the fills of some days. */
  const paid = (name: 'fee' | 'slippage', from: string, to: string): number =>
    sum(
      fills
        .filter(({ time }) => time.slice(0, 10) >= from && time.slice(0, 10) <= to)
        .map((fill) => fill[name]),
    );
  const positions = [...T, ...readTrades(trades, 'open').map((one) => ({ ...one, exit: '9999' }))];
  /** Share of some days at whose close a trade was open. */
  const exposed = (from: string, to: string): number => {
    const days = within(from, to).map(({ day }) => day);
    const isIn = (day: string): boolean =>
      positions.some(({ entry, exit }) => entry.slice(0, 10) <= day && day < exit.slice(0, 10));
    return days.filter(isIn).length / days.length;
  };
  const on = (weekday: number, edge: 'entry' | 'exit') =>
    T.filter((t) => new Date(t[edge]).getUTCDay() === weekday);
  const dailyOn = (weekday: number): number =>
    mean(
      spans('day')
        .filter(({ name }) => new Date(name).getUTCDay() === weekday)
        .map(({ ret }) => ret),
    );
  /** Whether a time is later than some months after another. */
  const isMonthsAfter = (from: string, count: number, to: string): boolean => {
    const [year, month, day] = from.slice(0, 10).split('-').map(Number) as [number, number, number];
    const last = new Date(Date.UTC(year, month - 1 + count + 1, 0)).getUTCDate();
    return Date.parse(to) > Date.UTC(year, month - 1 + count, Math.min(day, last));
  };
  const within = (from: string, to: string) => points.filter(({ day }) => day >= from && day <= to);
  const deviation = (values: readonly number[]): number =>
    Math.sqrt(sum(values.map((one) => (one - mean(values)) ** 2)) / (values.length - 1));
  const spans = (unit: 'day' | 'month' | 'quarter' | 'year'): Span[] => {
    const ends = Map.groupBy(points, ({ day }) => nameOf(day, unit));
    let last = start;
    return [...ends].map(([name, all]) => {
      const ret = all.at(-1)!.equity / last - 1;
      last = all.at(-1)!.equity;
      return { name, ret };
    });
  };
  const falls = (): Fall[] => {
    const found: Fall[] = [];
    let peak = start;
    let fall: { depth: number; low: string; end: string | undefined } | undefined;
    for (const { day, equity: value } of points) {
      if (value >= peak) {
        if (fall) fall.end = day;
        fall = undefined;
        peak = value;
      } else {
        if (!fall) found.push((fall = { depth: 0, low: day, end: undefined }));
        if (value / peak - 1 < fall.depth)
          Object.assign(fall, { depth: value / peak - 1, low: day });
      }
    }
    return found.toSorted((a, b) => a.depth - b.depth);
  };
  const top = (unit: Parameters<typeof spans>[0], count: number): Span[] =>
    spans(unit)
      .toSorted((a, b) => b.ret - a.ret)
      .slice(0, count);
  return {
    s: summary,
    T,
    open: readTrades(trades, 'open'),
    won: T.filter(({ pnl }) => pnl > 0),
    lost: T.filter(({ pnl }) => pnl < 0),
    pnl: (t: TradeOfFile): number => t.pnl,
    ret: (t: TradeOfFile): number => t.return,
    entry: (t: TradeOfFile): string => t.entry,
    exit: (t: TradeOfFile): string => t.exit,
    held,
    by: (key: 'pnl' | 'return') => T.toSorted((a, b) => b[key] - a[key]),
    share: (all: readonly TradeOfFile[]) => all.filter(({ pnl }) => pnl > 0).length / all.length,
    weekday: (time: string): number => new Date(time).getUTCDay(),
    mean,
    sum,
    median,
    up,
    down,
    streaks,
    longest,
    paid,
    exposed,
    on,
    dailyOn,
    isMonthsAfter,
    spans,
    top,
    best: (unit: Parameters<typeof spans>[0]) => top(unit, 1)[0]!,
    worst: (unit: Parameters<typeof spans>[0]) => top(unit, Infinity).at(-1)!,
    falls,
    at,
    profit,
    gain: (from: string, to: string) => at(to) / before(from) - 1,
    vol: (from: string, to: string) => deviation(returns(from, to)) * Math.sqrt(252),
    sharpe: (from: string, to: string) =>
      (mean(returns(from, to)) / deviation(returns(from, to))) * Math.sqrt(252),
    worstFall: (from: string, to: string) => {
      let peak = before(from);
      let worst = 0;
      for (const point of within(from, to)) {
        peak = Math.max(peak, point.equity);
        worst = Math.min(worst, point.equity / peak - 1);
      }
      return worst;
    },
    n: (count: number): Stated => ({ stated: String(count) }),
    list: (all: readonly TradeOfFile[]) => ({ listed: all.map(({ pnl }) => formatMoney(pnl)) }),
    pct: formatPercent,
    money: formatMoney,
    ratio: formatRatio,
    days: (count: number): string => `${count.toLocaleString('en-US')} days`,
    date: (time: string): string => time.slice(0, 10),
  };
}

function nameOf(day: string, unit: 'day' | 'month' | 'quarter' | 'year'): string {
  if (unit === 'quarter') return `${day.slice(0, 4)}-Q${Math.ceil(Number(day.slice(5, 7)) / 3)}`;
  return day.slice(0, { day: 10, month: 7, year: 4 }[unit]);
}
