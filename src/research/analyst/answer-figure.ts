/** Answers queries about figures of a run, of part of it, and of buying and holding. */
import { DAY } from '../../base/durations.ts';
import { formatMoney, formatPercent, formatRatio } from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import type { RunFigure } from '../../base/run-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import { percentile, returnsOf, sampleTimes } from '../../backtest/returns.ts';
import { UNDEFINED_REASONS } from '../../backtest/summary.ts';
import type { Citation } from '../answering.ts';
import { answerItemsOf } from './answer-items.ts';
import { cite, day, missing, type Facts, type Run } from './facts.ts';
import { holds, nameOf } from './items.ts';
import type { Condition } from './tags.ts';
import { daysOf, type Period } from './dates.ts';
import type { Query } from './query.ts';
import { TRADE_FIGURES } from './read-items.ts';
import { recordOf, type RunRecord } from './records.ts';
import { reply, type Reply } from './reply.ts';
import type { Curve } from './result-files.ts';

type FigureQuery = Extract<Query, { kind: 'figure' }>;

/** The most important figures first; shorter lists take the first five. */
export const HEADLINES = [
  'total_return',
  'cagr',
  'volatility',
  'sharpe',
  'max_drawdown',
  'trades',
  'win_rate',
  'fees',
  'exposure',
] as const satisfies readonly FigureName[];

/** Measures of several figures. */
const SETS: Readonly<Record<string, readonly FigureName[]>> = {
  summary: HEADLINES,
  doing: HEADLINES,
  costs: ['fees', 'slippage', 'turnover'],
  orders: [
    'submitted_orders',
    'filled_orders',
    'canceled_orders',
    'expired_orders',
    'rejected_orders',
    'denied_orders',
    'working_orders',
  ],
  filled_orders: ['filled_orders', 'fills'],
  risk: ['volatility', 'max_drawdown', 'var_95', 'cvar_95'],
  equity: ['end_equity'],
};

export const isRunFigure = (measure: string): boolean =>
  measure in RUN_FIGURES || measure in SETS || measure === 'profit' || measure === 'annual_mean';

/** `Sharpe ratio: 0.20`, or the reason why the figure is undefined. */
export function stateFigure({ result }: Run, name: FigureName): string {
  const { label, path } = RUN_FIGURES[name];
  const value = readFigure(result.data, name);
  if (value !== null) return `${label}: ${formatFigure(name, value)}`;
  const reason = result.data.undefined[path];
  const reasons: Readonly<Record<string, string>> = UNDEFINED_REASONS;
  return `${label}: undefined${reason === undefined ? '' : ` (${reasons[reason] ?? reason})`}`;
}

/** The JSON pointer of a figure in a result. */
export const pointerOf = (name: FigureName): string =>
  `/${RUN_FIGURES[name].path.replace('.', '/')}`;

function citeFigure({ result }: Run, name: FigureName): Citation[] {
  const { path } = RUN_FIGURES[name];
  const isUndefined = path in result.data.undefined;
  const why = isUndefined ? [cite(result, `/undefined/${path}`, `${path} undefined`)] : [];
  return [cite(result, pointerOf(name)), ...why];
}

/** @throws ServiceError `not_found` if the run does not contain the answer. */
export async function answerFigure(facts: Facts, query: FigureQuery): Promise<Reply> {
  const record = await recordOf(facts, query.run);
  const { measure, period, of, than } = query;
  const { run } = record;
  if (run === undefined) return answerSession(record, query);
  if (of !== 'run') return answerBenchmark(run, query);
  if (period !== undefined) return answerPeriod(record, measure, period, than);
  if (measure === 'annual_mean') return answerAnnual(record, run);
  if (measure === 'profit') return answerProfit(run, than);
  const names = SETS[measure] ?? [measure as FigureName];
  const citations = names.flatMap((name) => citeFigure(run, name));
  const lines = names.map((name) => stateFigure(run, name));
  if (lines.length > 1) {
    if (than !== undefined) throw unclear(measure);
    return reply([`In ${run.said}:`, ...lines.map((line) => `- ${line}`)], citations);
  }
  const verdict =
    than === undefined ? '' : verdictOf(names[0]!, readFigure(run.result.data, names[0]!), than);
  return reply(`${verdict}${lines[0]}, in ${run.said}.`, citations);
}

function unclear(measure: string): Error {
  return missing(`it is unclear how to compare ${measure.replaceAll('_', ' ')} with that value`);
}

/** `Yes. ` or `No. `: whether a figure is beyond a threshold. Drawdowns count by their size. */
function verdictOf(name: FigureName, figure: number | null, than: Condition): string {
  const { unit }: RunFigure = RUN_FIGURES[name];
  const isPercent = than.unit === 'percent';
  if (figure === null) return '';
  if ((unit === 'percent') !== isPercent || than.unit === 'days' || than.unit === 'bars')
    throw unclear(name);
  const isSize = name === 'max_drawdown' && than.value >= 0;
  if (isSize && /better/.test(than.said)) throw unclear(name);
  return holds(than, isSize ? -figure : figure) ? 'Yes. ' : 'No. ';
}

function answerProfit(run: Run, than: Condition | undefined): Reply {
  const { start, end } = run.result.data.equity;
  if (than !== undefined && than.unit !== 'money') throw unclear('profit');
  const verdict = than === undefined ? '' : holds(than, end - start) ? 'Yes. ' : 'No. ';
  return reply(
    `${verdict}Profit: ${formatMoney(end - start)} (${formatPercent(end / start - 1)}), in ${run.said}.`,
    cite(run.result, '/equity/start'),
    cite(run.result, '/equity/end'),
    cite(run.result, '/returns/total'),
  );
}

/** Figures of a session without a result, from its equity and trades so far. */
async function answerSession(record: RunRecord, query: FigureQuery): Promise<Reply> {
  const { measure, period = {}, of, than, run } = query;
  const name = SESSION_NAMES[measure] ?? measure;
  if (of === 'run' && name === 'start_equity') {
    return reply(
      `Equity at the start: ${formatMoney(record.start)}, in ${record.said}.`,
      record.citeStart('equity at the start'),
    );
  }
  if (of === 'run' && TRADE_FIGURES.includes(name) && than === undefined) {
    const selection = {
      of: 'trade',
      status: 'closed',
      conditions: [],
      period: query.period,
    } as const;
    return answerItemsOf(record, { kind: 'items', selection, show: { as: 'figure', name }, run });
  }
  if (of === 'run' && SESSION_FIGURES.has(name)) return answerPeriod(record, name, period, than);
  throw missing(
    `there is no ${measure.replaceAll('_', ' ')} of ${record.said}, because it has no result yet`,
    'Ask for its return, profit, equity, maximum drawdown or trades, or for the figure of the backtest.',
  );
}

const SESSION_FIGURES: ReadonlySet<string> = new Set([
  'total_return',
  'profit',
  'equity',
  'max_drawdown',
]);
/** Measures of a session under their name in a period. */
const SESSION_NAMES: Readonly<Record<string, string>> = {
  doing: 'total_return',
  summary: 'total_return',
  end_equity: 'equity',
};

/** Compounded and arithmetic mean: a question may mean either. */
async function answerAnnual(record: RunRecord, run: Run): Promise<Reply> {
  const curve = await record.curve();
  let before = run.result.data.equity.start;
  const years: number[] = [];
  const { start, end } = run.result.data.equity;
  for (const [i, time] of curve.time.entries()) {
    if (
      curve.time[i + 1] !== undefined &&
      nameOf(curve.time[i + 1]!, 'year') === nameOf(time, 'year')
    )
      continue;
    years.push(curve.equity[i]! / before - 1);
    before = curve.equity[i]!;
  }
  const mean = years.reduce((sum, one) => sum + one, 0) / years.length;
  return reply(
    [
      `${stateFigure(run, 'cagr')} per year, compounded, in ${run.said}.`,
      `Mean return of its ${years.length} calendar years, of which the first and the last may be partial: ${formatPercent(mean)} (${formatMoney((end - start) / years.length)}).`,
    ],
    citeFigure(run, 'cagr'),
  );
}

const HELD = {
  total_return: 'total',
  cagr: 'cagr',
  volatility: 'volatility',
  sharpe: 'sharpe',
  max_drawdown: 'max_drawdown',
} as const;

function answerBenchmark(
  run: Run,
  { measure, of, period, than, benchmark: named }: FigureQuery,
): Reply {
  const { benchmark } = run.result.data;
  const isHeld = benchmark?.name === 'buy_and_hold';
  const name = (
    measure === 'doing' || measure === 'profit' ? 'total_return' : measure
  ) as keyof typeof HELD;
  const key = HELD[name];
  const isOther = named === 'hold' && !isHeld;
  if (
    period !== undefined ||
    than !== undefined ||
    key === undefined ||
    benchmark === undefined ||
    isOther
  ) {
    throw missing(
      `the records have no such figure of ${named === 'hold' ? 'buying and holding' : 'the benchmark'}`,
      `They have ${Object.keys(HELD).join(', ').replaceAll('_', ' ')}, for whole runs.`,
    );
  }
  const held = benchmark[key];
  const other = isHeld ? 'buying and holding' : `the benchmark ${benchmark.name}`;
  const { label, better } = RUN_FIGURES[name];
  const pointer = `/benchmark/${key}`;
  const text = formatFigure(name, held);
  if (of === 'benchmark')
    return reply(`${label} of ${other}: ${text}, in ${run.said}.`, cite(run.result, pointer));
  const own = readFigure(run.result.data, name);
  const isBetter = own !== null && held !== null && (better === 'higher' ? own > held : own < held);
  return reply(
    `The strategy ${isBetter ? 'was better' : 'was not better'}. ${stateFigure(run, name)} against ${text} of ${other}, in ${run.said}.`,
    citeFigure(run, name),
    cite(run.result, pointer),
  );
}

/** Bars of a period, and the equity before them. */
interface Part {
  readonly curve: Curve;
  readonly first: number;
  readonly last: number;
  readonly start: number;
  readonly said: string;
}

async function answerPeriod(
  run: RunRecord,
  measure: string,
  period: Period,
  than: Condition | undefined,
): Promise<Reply> {
  const { from, to } = daysOf(period, run);
  const curve = await run.curve();
  const after = curve.time.findIndex((time) => time.slice(0, 10) > to);
  const last = (after === -1 ? curve.time.length : after) - 1;
  const first = curve.time.findIndex((time) => time.slice(0, 10) >= from);
  if (first === -1 || last < first || from > to) {
    throw missing(`there are no bars from ${from} to ${to} in ${run.said}`);
  }
  if (than !== undefined) throw unclear(measure);
  const start = first === 0 ? run.start : curve.equity[first - 1]!;
  const said = `from ${day(curve.time[first]!)} to ${day(curve.time[last]!)}`;
  const part = { curve, first, last, start, said };
  const before =
    first === 0 ? run.citeStart('equity before') : curve.cite(first - 1, 'equity', 'equity before');
  const [label, value] = figureOf(run, part, measure, period);
  return reply(
    `${label} ${measure === 'equity' ? `on ${day(curve.time[last]!)}` : said}: ${value}, by the equity at the closes, in ${run.said}.`,
    before,
    curve.cite(last, 'equity', 'equity at the end'),
  );
}

function figureOf(
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
