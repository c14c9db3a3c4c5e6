/** Runs a backtest with other values, and shows it beside the run of the bot. */
import { ServiceError } from '../../base/errors.ts';
import { formatMoney } from '../../base/format.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import { at, send } from '../call-api.ts';
import { waitForTask } from '../runs.ts';
import { HEADLINES, isRunFigure, sideBySide } from './answer-figure.ts';
import { figureOf, partOf } from './answer-period.ts';
import type { Period } from './dates.ts';
import { botOf, missing, runNamed, runOf, type Facts, type Run, type Spec } from './facts.ts';
import type { Change } from './tags.ts';
import type { Query } from './query.ts';
import { resultRecord, type RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';

type WhatIfQuery = Extract<Query, { kind: 'what if' }>;

/** Longest time to wait for the backtest. */
const MOST_SECONDS = 60;

interface BacktestChanges {
  readonly params?: Readonly<Record<string, number>>;
  readonly patch?: object;
}

/** @throws ServiceError `not_found` if the changes do not apply; `forbidden` without the scope `write`. */
export async function answerWhatIf(facts: Facts, query: WhatIfQuery): Promise<Reply> {
  const { changes, measure } = query;
  if (measure !== undefined && measure !== 'profit' && !(measure in RUN_FIGURES)) {
    throw missing(
      `I do not compare ${measure.replaceAll('_', ' ')} with that of another backtest`,
      isRunFigure(measure) ? 'Ask for one figure.' : undefined,
    );
  }
  const { spec } = (await botOf(facts)).data.document;
  const before = await runOf(facts, query.run);
  if (before.task.input.bundle_hash !== undefined) {
    throw missing(
      'that run used code that is not saved in a version, so I cannot run it with other values',
      'Save the code as a version, and ask about a run of it.',
    );
  }
  const body = {
    ...mergeChanges(changes.map((change) => changeOf(change, spec))),
    version: before.task.version,
  };
  const { task_id } = await send<{ readonly task_id: string }>(
    facts.ask,
    at`/bots/${facts.bot}/backtest`,
    body,
    facts.signal,
  );
  const { task } = await waitForTask(facts.ask, task_id, MOST_SECONDS, facts.signal);
  if (task.status === 'running' || task.status === 'queued') {
    throw missing(
      `the backtest ${task_id} has not ended after ${MOST_SECONDS} seconds`,
      `Ask later: What are the results of ${task_id}?`,
    );
  }
  const after = await runNamed(facts, task_id);
  const changed = changes.map(stateChange).join(', ');
  return query.period === undefined
    ? wholesSideBySide(before, after, measure, changed)
    : partsSideBySide(
        [resultRecord(facts, before), resultRecord(facts, after)],
        query.period,
        measure,
        changed,
      );
}

function wholesSideBySide(
  before: Run,
  after: Run,
  measure: string | undefined,
  changed: string,
): Reply {
  const names = HEADLINES.filter((name) => name !== measure);
  const first = measure === undefined || measure === 'profit' ? [] : [measure as FigureName];
  const profit = ({ result: { data } }: Run): string =>
    formatMoney(data.equity.end - data.equity.start);
  const { lines, citations } = sideBySide(before, after, [...first, ...names]);
  return reply(
    [
      `With ${changed}, a backtest that I ran for this question and that counts as a trial. First ${before.said}; second ${after.said}:`,
      ...(measure === 'profit' ? [`- Profit: ${profit(before)} → ${profit(after)}`] : []),
      ...lines,
    ],
    citations,
  );
}

/** Figures of part of a run that a what-if compares, unless it names one. */
const OF_PART = ['total_return', 'profit', 'max_drawdown', 'volatility', 'sharpe'];

async function partsSideBySide(
  records: readonly [RunRecord, RunRecord],
  period: Period,
  measure: string | undefined,
  changed: string,
): Promise<Reply> {
  const [before, after] = [await partOf(records[0], period), await partOf(records[1], period)];
  const lines = (measure === undefined ? OF_PART : [measure]).map((name) => {
    const [label, first] = figureOf(records[0], before, name, period);
    const [, second] = figureOf(records[1], after, name, period);
    return `- ${label} ${before.said}: ${first} → ${second}`;
  });
  return reply(
    [
      `With ${changed} in the whole backtest, which I ran for this question and which counts as a trial. First ${records[0].said}; second ${records[1].said}:`,
      ...lines,
    ],
    [before, after].map(({ curve, last }, i) =>
      curve.cite(last, 'equity', `${i === 0 ? 'first' : 'second'} equity at the end`),
    ),
  );
}

function stateChange(change: Change): string {
  if (change.of === 'param') return `${change.name} ${change.value}`;
  if (change.of === 'params') return `parameters ${change.values.join('/')}`;
  if (change.of === 'cash') return `cash ${formatMoney(change.value)}`;
  if (!('factor' in change)) return `${change.of} of ${decimal(change.value * 100)}%`;
  return change.factor === 0 ? `no ${change.of}` : `${change.of} × ${change.factor}`;
}

function changeOf(change: Change, spec: Spec): BacktestChanges {
  if (change.of === 'param') return { params: { [change.name]: change.value } };
  if (change.of === 'params') return { params: paramsOf(change.values, spec) };
  if (change.of === 'cash') return enginePatch({ cash: String(change.value) });
  return enginePatch(
    change.of === 'fees'
      ? { fees: feesWith(change, spec) }
      : { slippage: slippageWith(change, spec) },
  );
}

const enginePatch = (engine: object): BacktestChanges => ({ patch: { spec: { engine } } });

/** `50/200` replaces the numeric parameters in their order, if the strategy has as many. */
function paramsOf(
  values: readonly number[],
  { strategy: { params = {} } }: Spec,
): Readonly<Record<string, number>> {
  const names = Object.keys(params).filter((name) => typeof params[name] === 'number');
  if (names.length !== values.length) {
    throw missing(
      `the spec states ${names.length} numeric parameters, and the question ${values.length}`,
      `Name each, such as: What if ${names[0] ?? 'fast'} was ${values[0]}?`,
    );
  }
  return Object.fromEntries(names.map((name, i) => [name, values[i]!]));
}

type CostChange =
  | Extract<Change, { of: 'fees' | 'slippage' | 'cash' }>
  | Extract<Change, { factor: number }>;

function feesWith(change: CostChange, { engine }: Spec): object {
  const fees = (engine?.['fees'] ?? { model: 'none' }) as {
    readonly model: string;
    readonly rate?: string;
    readonly min?: string;
  };
  if (!('factor' in change)) return { model: 'percent', rate: decimal(change.value), min: null };
  if (change.factor === 0) return { model: 'none', rate: null, min: null };
  if (fees.model === 'none')
    throw missing('this bot pays no fees', 'Name them, such as: What if the fees were 0.1%?');
  return {
    rate: decimal(Number(fees.rate) * change.factor),
    ...(fees.min !== undefined && { min: decimal(Number(fees.min) * change.factor) }),
  };
}

function slippageWith(change: CostChange, { engine }: Spec): object {
  const slippage = (engine?.['slippage'] ?? { model: 'none' }) as {
    readonly model: string;
    readonly bps?: number;
  };
  if (!('factor' in change)) return { model: 'basis_points', bps: change.value * 10_000 };
  if (change.factor === 0) return { model: 'none', bps: null };
  if (slippage.bps === undefined)
    throw missing(
      'this bot has no slippage in basis points',
      'Name it, such as: What if the slippage was 5 bps?',
    );
  return { bps: slippage.bps * change.factor };
}

/** Formats a number without the error of binary fractions, as in 0.001 × 3. */
const decimal = (value: number): string => String(Number(value.toPrecision(12)));

/** @throws ServiceError `not_found` if two changes are about the same value. */
function mergeChanges(all: readonly BacktestChanges[]): BacktestChanges {
  const params = all.flatMap((one) => Object.entries(one.params ?? {}));
  const engine = all.flatMap((one) =>
    Object.entries((one.patch as { spec: { engine: object } } | undefined)?.spec.engine ?? {}),
  );
  const names = [...params, ...engine].map(([name]) => name);
  if (new Set(names).size < names.length)
    throw new ServiceError('not_found', 'the question gives two values for the same setting', {
      reason: 'no_fact',
    });
  return {
    ...(params.length > 0 && { params: Object.fromEntries(params) }),
    ...(engine.length > 0 && enginePatch(Object.fromEntries(engine))),
  };
}
