/** Answers queries about figures of a run, of part of it, and of buying and holding. */
import { formatMoney, formatPercent } from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import type { RunFigure } from '../../base/run-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import { UNDEFINED_REASONS } from '../../backtest/summary.ts';
import type { Citation } from '../answering.ts';
import { answerItemsOf } from './answer-items.ts';
import { answerBySpan, answerPeriod, unclear } from './answer-period.ts';
import { cite, missing, type Facts, type Run } from './facts.ts';
import { holds, nameOf } from './items.ts';
import type { Condition } from './tags.ts';
import type { Query } from './query.ts';
import { TRADE_FIGURES } from './read-items.ts';
import { recordOf, type RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';

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
    'refused_orders',
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
const pointerOf = (name: FigureName): string => `/${RUN_FIGURES[name].path.replace('.', '/')}`;

function citeFigure({ result }: Run, name: FigureName): Citation[] {
  const { path } = RUN_FIGURES[name];
  const isUndefined = path in result.data.undefined;
  const why = isUndefined ? [cite(result, `/undefined/${path}`, `${path} undefined`)] : [];
  return [cite(result, pointerOf(name)), ...why];
}

/** Lines and citations with the figures of two runs. */
export function sideBySide(
  before: Run,
  after: Run,
  names: readonly FigureName[],
): { readonly lines: readonly string[]; readonly citations: readonly Citation[] } {
  return {
    lines: names.map((name) => {
      const value = readFigure(after.result.data, name);
      return `- ${stateFigure(before, name)} → ${value === null ? 'undefined' : formatFigure(name, value)}`;
    }),
    citations: names.flatMap((name) => [
      cite(before.result, pointerOf(name), `first ${RUN_FIGURES[name].path}`),
      cite(after.result, pointerOf(name), `second ${RUN_FIGURES[name].path}`),
    ]),
  };
}

/** @throws ServiceError `not_found` if the run does not contain the answer. */
export async function answerFigure(facts: Facts, query: FigureQuery): Promise<Reply> {
  const record = await recordOf(facts, query.run);
  const { measure, period, of, than } = query;
  const { run } = record;
  if (run === undefined) return answerSession(record, query);
  if (of !== 'run') return answerBenchmark(run, query);
  if (query.by !== undefined) return answerBySpan(record, run, measure, period, query.by);
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

/** `Yes. ` or `No. `: whether a figure is beyond a threshold. Drawdowns count by their size. */
function verdictOf(name: FigureName, figure: number | null, than: Condition): string {
  const { unit }: RunFigure = RUN_FIGURES[name];
  const isPercent = than.unit === 'percent';
  if (figure === null) return '';
  const isLength = than.unit === 'days' || than.unit === 'months' || than.unit === 'bars';
  if ((unit === 'percent') !== isPercent || isLength) throw unclear(name);
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
