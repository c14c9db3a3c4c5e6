/** Figures of part of a run. */
import { percentile, returnsOf, sampleTimes } from '../../backtest/returns.ts';
import { DAY } from '../../base/durations.ts';
import { formatMoney, formatPercent, formatRatio } from '../../base/format.ts';
import { daysOf, type Period } from './dates.ts';
import { day, missing, type Run } from './facts.ts';
import { nameOf } from './items.ts';
import type { SpanUnit } from './query.ts';
import type { RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';
import type { Curve } from './result-files.ts';
import { exposureOf } from './run-events.ts';
import type { Condition } from './tags.ts';

export function unclear(measure: string): Error {
  return missing(`it is unclear how to compare ${measure.replaceAll('_', ' ')} with that value`);
}

/** Bars of a period, and the equity before them. */
export interface Part {
  readonly curve: Curve;
  readonly first: number;
  readonly last: number;
  readonly start: number;
  readonly said: string;
}

/** @throws ServiceError `not_found` if the run has no such bars. */
export async function partOf(run: RunRecord, period: Period): Promise<Part> {
  const { from, to } = daysOf(period, run);
  const curve = await run.curve();
  const after = curve.time.findIndex((time) => time.slice(0, 10) > to);
  const last = (after === -1 ? curve.time.length : after) - 1;
  const first = curve.time.findIndex((time) => time.slice(0, 10) >= from);
  if (first === -1 || last < first || from > to) {
    throw missing(`there are no bars from ${from} to ${to} in ${run.said}`);
  }
  const start = first === 0 ? run.start : curve.equity[first - 1]!;
  const said = `from ${day(curve.time[first]!)} to ${day(curve.time[last]!)}`;
  return { curve, first, last, start, said };
}

const OF_EVENTS: ReadonlySet<string> = new Set(['fees', 'slippage', 'costs', 'exposure']);

/** Costs by the time of the fills, and the time in the market. */
async function eventFigure(
  record: RunRecord,
  run: Run,
  measure: string,
  part: Part,
): Promise<readonly [label: string, value: string]> {
  if (measure === 'exposure') {
    const { curve, first, last } = part;
    const events = await record.events();
    return ['Exposure', formatPercent(exposureOf(events, curve, run, first, last))];
  }
  const [fees, slippage] = (await costsOf(record, part)).map(formatMoney) as [string, string];
  if (measure === 'costs') return ['Fees and slippage', `${fees} and ${slippage}`];
  return measure === 'fees' ? ['Fees', fees] : ['Slippage', slippage];
}

/** Fees and slippage of the fills in part of a run. */
async function costsOf(
  record: RunRecord,
  { curve, first, last }: Part,
): Promise<readonly [fees: number, slippage: number]> {
  const { costs } = await record.events();
  // A bar lasts until the next one opens, and a fill within it has its time or a later one.
  const [from, until] = [curve.time[first]!, curve.time[last + 1] ?? '9999'];
  const own = costs.filter(({ time }) => time >= from && time < until);
  const sum = (name: 'fees' | 'slippage'): number =>
    own.reduce((total, cost) => total + cost[name], 0);
  return [sum('fees'), sum('slippage')];
}

/** A figure of each year, quarter, month, week or day. */
export async function answerBySpan(
  record: RunRecord,
  run: Run,
  measure: string,
  period: Period | undefined,
  unit: SpanUnit,
): Promise<Reply> {
  const whole = await partOf(record, period ?? {});
  const places = Array.from({ length: whole.last - whole.first + 1 }, (_, i) => whole.first + i);
  const spans = [...Map.groupBy(places, (place) => nameOf(whole.curve.time[place]!, unit))];
  if (spans.length > MOST_SPANS) {
    throw missing(
      `there are ${spans.length} ${unit}s in ${record.said}`,
      'Name a year, or ask for it by year.',
    );
  }
  const lines: string[] = [];
  let label = '';
  for (const [name, own] of spans) {
    const part = { ...whole, first: own[0]!, last: own.at(-1)! };
    const [of, value] = await eventFigure(record, run, measure, part);
    label = of;
    lines.push(`- ${name}: ${value}`);
  }
  if (measure !== 'exposure') {
    const [, sum] = await eventFigure(record, run, measure, whole);
    const mean = (await costsOf(record, whole)).map((cost) => formatMoney(cost / spans.length));
    const [fees, slippage] = mean;
    const per = { fees, slippage, costs: `${fees} and ${slippage}` }[measure];
    lines.push(
      `Together ${sum}, or ${per} per ${unit}; the first and the last ${unit} may be partial.`,
    );
  }
  const { citation } = await record.events();
  return reply([`${label} by ${unit} ${whole.said}, in ${record.said}:`, ...lines], citation);
}

const MOST_SPANS = 40;

export async function answerPeriod(
  run: RunRecord,
  measure: string,
  period: Period,
  than: Condition | undefined,
): Promise<Reply> {
  if (than !== undefined) throw unclear(measure);
  const part = await partOf(run, period);
  const { curve, first, last, said } = part;
  const before =
    first === 0 ? run.citeStart('equity before') : curve.cite(first - 1, 'equity', 'equity before');
  if (run.run !== undefined && OF_EVENTS.has(measure)) {
    const [label, value] = await eventFigure(run, run.run, measure, part);
    const { citation } = await run.events();
    return reply(`${label} ${said}: ${value}, in ${run.said}.`, citation);
  }
  const [label, value] = figureOf(run, part, measure, period);
  return reply(
    `${label} ${measure === 'equity' ? `on ${day(curve.time[last]!)}` : said}: ${value}, by the equity at the closes, in ${run.said}.`,
    before,
    curve.cite(last, 'equity', 'equity at the end'),
  );
}

export function figureOf(
  record: RunRecord,
  part: Part,
  measure: string,
  period: Period,
): readonly [label: string, value: string] {
  const { curve, last, start } = part;
  const end = curve.equity[last]!;
  const [gain, profit] = [formatPercent(end / start - 1), formatMoney(end - start)];
  if (measure === 'total_return') return ['Return', `${gain} (${profit})`];
  if (measure === 'profit') return ['Profit', `${profit} (${gain})`];
  if (measure === 'equity') return ['Equity', formatMoney(end)];
  if (measure === 'max_drawdown') return ['Maximum drawdown', formatPercent(deepest(part))];
  const { run } = record;
  if (run === undefined) throw unclear(measure);
  const { conventions, window } = run.result.data;
  const values = returnsIn(run, part);
  const average =
    values.reduce((sum, one) => sum + one, 0) / values.length -
    conventions.risk_free / conventions.periods_per_year;
  const root = Math.sqrt(conventions.periods_per_year);
  const spread = Math.sqrt(
    values.reduce((sum, one) => sum + (one - mean(values)) ** 2, 0) /
      (values.length - conventions.ddof),
  );
  const downside = Math.sqrt(
    values.reduce((sum, one) => sum + Math.min(one, 0) ** 2, 0) / values.length,
  );
  const defined = (value: number, format: (value: number) => string): string => {
    if (Number.isFinite(value)) return format(value);
    throw missing(`the returns ${part.said} are too few or do not vary, in ${run.said}`);
  };
  if (measure === 'volatility') return ['Volatility', defined(spread * root, formatPercent)];
  if (measure === 'sharpe')
    return ['Sharpe ratio', defined((average / spread) * root, formatRatio)];
  if (measure === 'sortino' && conventions.risk_free === 0)
    return ['Sortino ratio', defined((average / downside) * root, formatRatio)];
  if (measure === 'var_95')
    return ['VaR 95%', defined(percentile(Float64Array.from(values), 0.05), formatPercent)];
  const days = (Date.parse(curve.time[last]!) - Date.parse(curve.time[part.first]!)) / DAY;
  if (measure === 'cagr' && days >= 360)
    return ['CAGR', formatPercent((end / start) ** (conventions.year_days / days) - 1)];
  const { from, to } = daysOf(period, record);
  const isWhole = from === window.from.slice(0, 10) && to === window.to.slice(0, 10);
  throw missing(
    `of part of a run I compute the return, profit, equity, maximum drawdown, volatility and the Sharpe and Sortino ratios, and figures of the trades that were closed in it${isWhole ? '; these days are the whole run' : ''}`,
    `A backtest of those days has the other figures: \`service-local bots backtest ${run.result.data.bot.slug} --from ${from} --to ${to}\`.`,
  );
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

/** Returns of the days, weeks or months of the part, as the figures of a run sample them. */
function returnsIn(run: Run, { curve, first, last, start }: Part): number[] {
  const time = Float64Array.from(curve.time.slice(first, last + 1), (one) => Date.parse(one));
  const ends = new Set(sampleTimes(time, run.result.data.conventions.sampling));
  const samples = curve.equity.slice(first, last + 1).filter((_, i) => ends.has(time[i]!));
  return [...returnsOf(Float64Array.from([start, ...samples]))];
}

function deepest({ curve, first, last, start }: Part): number {
  let peak = start;
  let worst = 0;
  for (let i = first; i <= last; i += 1) {
    peak = Math.max(peak, curve.equity[i]!);
    worst = Math.min(worst, curve.equity[i]! / peak - 1);
  }
  return worst;
}
