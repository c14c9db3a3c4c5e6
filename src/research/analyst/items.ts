/** Trades, spans of time, drawdowns and streaks of a run, selected and sorted. */
import { DAY } from '../../base/durations.ts';
import { formatCountOf, formatMoney, formatPercent, formatQuantity } from '../../base/format.ts';
import type { Citation } from '../answering.ts';
import { day, missing, quoted } from './facts.ts';
import type { Condition } from './tags.ts';
import { daysOf, monthsBetween } from './dates.ts';
import { EXITS, exitsOf } from './exits.ts';
import type { Attribute, GroupUnit, Selection, SpanUnit } from './query.ts';
import type { RunRecord } from './run-records.ts';
import type { Curve, TradeRow } from './result-files.ts';

/** One trade, span, drawdown or streak. */
export interface Item extends Partial<Readonly<Record<Attribute, number | string>>> {
  readonly profit: number;
  readonly return: number;
  readonly duration: number;
  /** Line of a list. */
  readonly line: string;
  readonly cite: () => Citation[];
}

export interface Selected {
  readonly items: readonly Item[];
  /** Number of items before `take`. */
  readonly count: number;
}

/** @throws ServiceError `not_found` if the run lacks a file or the days. */
export async function select(run: RunRecord, selection: Selection): Promise<Selected> {
  const all = await allOf(run, selection);
  const { sort, take, conditions } = selection;
  const matching = all.filter((item) =>
    conditions.every(({ by, is }) => holds(is, valueOf(item, by))),
  );
  const sorted = sort === undefined ? matching : matching.toSorted(order(sort));
  if (take === undefined) return { items: sorted, count: sorted.length };
  const items = sorted.slice(take.from, take.from + take.count);
  // The last ones are listed in the order of time.
  const isLast = sort?.by === 'exit' && sort.descending;
  return { items: isLast ? items.toReversed() : items, count: sorted.length };
}

/**
 * The value of a figure of an item.
 * @throws ServiceError `not_found` if the record lacks it, as that of a session lacks the bars of a trade.
 */
export function valueOf(item: Item, by: Attribute): number {
  if (by === 'months') return monthsBetween(String(item.entry), String(item.exit));
  const value = Number(item[by]);
  if (Number.isNaN(value)) throw missing(`the record does not contain the ${by.replace('_', ' ')}`);
  return value;
}

function order({ by, descending }: NonNullable<Selection['sort']>): (a: Item, b: Item) => number {
  const key = (item: Item): number =>
    by === 'entry' || by === 'exit' ? Date.parse(String(item[by])) : valueOf(item, by);
  return (a, b) => (descending ? key(b) - key(a) : key(a) - key(b));
}

const HOLDS: Readonly<
  Record<Condition['op'], (figure: number, low: number, high: number) => boolean>
> = {
  '>': (figure, low) => figure > low,
  '>=': (figure, low) => figure >= low,
  '<': (figure, low) => figure < low,
  '<=': (figure, low) => figure <= low,
  '=': (figure, low) => figure === low,
  between: (figure, low, high) => figure >= low && figure <= high,
};

export const holds = ({ op, value, upTo = NaN }: Condition, figure: number): boolean =>
  HOLDS[op](figure, value, upTo);

async function allOf(run: RunRecord, selection: Selection): Promise<readonly Item[]> {
  const { of, outcome, in: unit } = selection;
  if (of === 'trade') return (await tradesIn(run, selection)).map(tradeItem);
  if (of === 'drawdown') return drawdownsOf(await run.curve());
  if (of === 'streak') {
    const items = await allOf(run, { ...selection, of: unit!, outcome: undefined });
    return streaksOf(items, selection);
  }
  const curve = await run.curve();
  const { from, to } = daysOf(selection.period ?? {}, run);
  const spans = spansOf(run, curve, of).filter(
    (span) =>
      span.to >= from &&
      span.from <= to &&
      (selection.month === undefined || Number(span.to.slice(5, 7)) === selection.month) &&
      (selection.weekday === undefined || new Date(span.to).getUTCDay() === selection.weekday),
  );
  if (spans.length === 0) throw missing(`there are no bars from ${from} to ${to} in ${run.said}`);
  return spans.filter((span) => hasOutcome(span, outcome));
}

const HAS_OUTCOME: Readonly<Record<string, (profit: number) => boolean>> = {
  win: (profit) => profit > 0,
  lose: (profit) => profit < 0,
  'not win': (profit) => profit <= 0,
  'not lose': (profit) => profit >= 0,
  flat: (profit) => profit === 0,
};

export const hasOutcome = (
  { profit }: Pick<Item, 'profit'>,
  outcome: string | undefined,
): boolean => outcome === undefined || HAS_OUTCOME[outcome]!(profit);

/** Trades by all filters but `conditions`. */
async function tradesIn(run: RunRecord, selection: Selection): Promise<TradeRow[]> {
  const {
    edge = 'exit',
    period,
    weekday,
    month,
    hour,
    side,
    symbol,
    status,
    outcome,
    reason,
  } = selection;
  if (hour !== undefined) await needHours(run);
  const { window } = run;
  const days = period === undefined ? undefined : daysOf(period, run);
  if (
    days !== undefined &&
    (days.from > days.to || days.from > window.to || days.to < window.from)
  ) {
    throw missing(`there are no such days in ${run.said}`);
  }
  const reasons = reason === undefined ? undefined : EXITS[reason]!.of;
  const reasonOf = reasons && (await exitsOf(run));
  return (await run.trades()).filter((trade) => {
    const time = trade[edge];
    const on = time.slice(0, 10);
    const date = new Date(time);
    return (
      trade.status === status &&
      hasOutcome(trade, outcome) &&
      (side === undefined || trade.side === side) &&
      (symbol === undefined || trade.symbol === symbol) &&
      (reasonOf === undefined || reasons!.includes(reasonOf(trade)!)) &&
      (days === undefined || (on >= days.from && on <= days.to)) &&
      (weekday === undefined || date.getUTCDay() === weekday) &&
      (month === undefined || date.getUTCMonth() + 1 === month) &&
      (hour === undefined || date.getUTCHours() === hour)
    );
  });
}

/** @throws ServiceError `not_found` if the bars have dates only. */
export async function needHours(run: RunRecord): Promise<void> {
  if ((await run.curve()).time.every((time) => /T00:00:00/.test(time))) {
    throw missing(`the bars of ${run.said} have dates without hours`);
  }
}

function tradeItem(trade: TradeRow): Item {
  const { symbol, side, entry, exit, quantity, profit, status } = trade;
  const end = status === 'open' ? 'still open at the end' : `to ${day(exit)}`;
  const result = `${formatMoney(profit)} (${formatPercent(trade.return)})`;
  return {
    ...trade,
    line: `${side} ${formatQuantity(quantity)} ${quoted(symbol)} from ${day(entry)}, ${end}: ${result}`,
    cite: trade.cite,
  };
}

interface Span extends Item {
  /** First and last day of the span in the run. */
  readonly from: string;
  readonly to: string;
}

/** Gains of the equity in each day, week, month, quarter or year. */
function spansOf(run: RunRecord, curve: Curve, unit: SpanUnit): Span[] {
  const { time, equity } = curve;
  const spans: Span[] = [];
  let before = run.start;
  let first = 0;
  for (let last = 0; last < time.length; last += 1) {
    const name = nameOf(time[last]!, unit);
    if (last + 1 < time.length && nameOf(time[last + 1]!, unit) === name) continue;
    const place = last;
    const previous = first - 1;
    const [profit, gain] = [equity[last]! - before, equity[last]! / before - 1];
    spans.push({
      profit,
      return: gain,
      duration: 0,
      from: time[first]!.slice(0, 10),
      to: time[last]!.slice(0, 10),
      entry: time[first]!,
      exit: time[last]!,
      line: `${name}: ${formatPercent(gain)} (${formatMoney(profit)})`,
      cite: () => [
        previous < 0
          ? run.citeStart(`equity before ${name}`)
          : curve.cite(previous, 'equity', `equity before ${name}`),
        curve.cite(place, 'equity', `equity at the end of ${name}`),
      ],
    });
    before = equity[last]!;
    first = last + 1;
  }
  return spans;
}

const LENGTHS = { day: 10, month: 7, year: 4 } as const;

/** `2008-03-14`, `2008-03`, `2008-Q1`, `2008`; a week is named by its Monday. */
export function nameOf(time: string, unit: GroupUnit): string {
  if (unit === 'quarter') return `${time.slice(0, 4)}-Q${Math.ceil(Number(time.slice(5, 7)) / 3)}`;
  if (unit === 'hour') return `${time.slice(11, 13)}:00`;
  if (unit === 'weekday') return WEEKDAYS[new Date(time).getUTCDay()]!;
  if (unit !== 'week') return time.slice(0, LENGTHS[unit as keyof typeof LENGTHS]);
  const ms = Date.parse(time.slice(0, 10));
  const sinceMonday = (new Date(ms).getUTCDay() + 6) % 7;
  return `week of ${new Date(ms - sinceMonday * DAY).toISOString().slice(0, 10)}`;
}

export const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** Times below a former peak, the deepest first. */
function drawdownsOf(curve: Curve): Item[] {
  const { time, equity, drawdown } = curve;
  const found: Item[] = [];
  for (let i = 0; i < time.length; i += 1) {
    if (drawdown[i]! >= 0) continue;
    const from = i - 1;
    let low = i;
    while (i < time.length && drawdown[i]! < 0) {
      if (drawdown[i]! < drawdown[low]!) low = i;
      i += 1;
    }
    const until = i < time.length ? i : undefined;
    const peak = time[Math.max(from, 0)]!;
    const end = time[until ?? time.length - 1]!;
    const duration = (Date.parse(end) - Date.parse(peak)) / DAY;
    const begin = from < 0 ? 'the start' : `the peak of ${day(peak)}`;
    const recovery = until === undefined ? 'not recovered by the end' : `recovered on ${day(end)}`;
    const name = `drawdown to ${day(time[low]!)}`;
    found.push({
      profit: equity[low]! * (1 - 1 / (1 + drawdown[low]!)),
      return: drawdown[low]!,
      duration,
      entry: peak,
      exit: end,
      line: `${formatPercent(drawdown[low]!)}: from ${begin} to ${day(time[low]!)}, ${recovery}, ${formatCountOf(Math.round(duration), 'day')}`,
      cite: () => [
        curve.cite(low, 'drawdown', name),
        curve.cite(low, 'time', `${name} deepest`),
        ...(from < 0 ? [] : [curve.cite(from, 'time', `${name} peak`)]),
        ...(until === undefined ? [] : [curve.cite(until, 'time', `${name} recovered`)]),
      ],
    });
  }
  return found;
}

/** Longest sequences of items with the same outcome. */
function streaksOf(items: readonly Item[], { outcome, in: unit }: Selection): Item[] {
  const streaks: Item[][] = [];
  let isIn = false;
  for (const item of items) {
    const belongs = hasOutcome(item, outcome);
    if (belongs && isIn) streaks.at(-1)!.push(item);
    else if (belongs) streaks.push([item]);
    isIn = belongs;
  }
  const word = outcome === 'win' ? 'winning' : 'losing';
  return streaks.map((streak) => {
    const [first, last] = [streak[0]!, streak.at(-1)!];
    const profit = streak.reduce((sum, item) => sum + item.profit, 0);
    const dates = unit === 'trade' ? [first.exit, last.exit] : [first.entry, last.exit];
    const [from, to] = dates.map((time) => day(String(time)));
    return {
      profit,
      return: 0,
      duration: 0,
      count: streak.length,
      entry: dates[0]!,
      exit: dates[1]!,
      line: `${formatCountOf(streak.length, `${word} ${unit}`)}, from ${from} to ${to}: ${formatMoney(profit)}`,
      cite: () => [...first.cite(), ...last.cite()],
    };
  });
}
