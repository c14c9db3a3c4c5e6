import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import { UNDEFINED_REASONS } from './summary.ts';
import type { Gate, Summary } from './summary.ts';

/** The blocks of a summary that gates look at. */
export type GateFigures = Pick<
  Summary,
  | 'equity'
  | 'returns'
  | 'risk'
  | 'trades'
  | 'costs'
  | 'exposure'
  | 'orders'
  | 'ambiguity'
  | 'margin_calls'
  | 'undefined'
>;

type Block = Exclude<keyof GateFigures, 'margin_calls' | 'undefined'>;
type Path = { [B in Block]: `${B}.${keyof GateFigures[B] & string}` }[Block] | 'margin_calls';

interface Metric {
  /** Where it stands in the summary. */
  readonly path: Path;
  /** The least and the greatest value it can take, both included. */
  readonly range: readonly [number, number];
}

const metric = (path: Path, range: Metric['range']): Metric => ({ path, range });
const ANY = [-Infinity, Infinity] as const;
const AT_LEAST_ZERO = [0, Infinity] as const;
/** A positive equity cannot lose more than itself from one sample to the next. */
const AT_LEAST_ALL_LOST = [-1, Infinity] as const;
const SHARE = [0, 1] as const;

/** Every statistic that can be a gate, in the unit and with the sign it has in the summary. */
const METRICS = {
  sharpe: metric('risk.sharpe', ANY),
  sortino: metric('risk.sortino', ANY),
  calmar: metric('risk.calmar', ANY),
  total_return: metric('returns.total', ANY),
  cagr: metric('returns.cagr', AT_LEAST_ALL_LOST),
  annual_return: metric('returns.annual', AT_LEAST_ALL_LOST),
  best_day: metric('returns.best_day', AT_LEAST_ALL_LOST),
  worst_day: metric('returns.worst_day', AT_LEAST_ALL_LOST),
  volatility: metric('risk.volatility', AT_LEAST_ZERO),
  max_drawdown: metric('risk.max_drawdown', [-1, 0]),
  max_drawdown_days: metric('risk.max_drawdown_days', AT_LEAST_ZERO),
  var_95: metric('risk.var_95', AT_LEAST_ALL_LOST),
  cvar_95: metric('risk.cvar_95', AT_LEAST_ALL_LOST),
  trades: metric('trades.count', AT_LEAST_ZERO),
  open_trades: metric('trades.open', AT_LEAST_ZERO),
  win_rate: metric('trades.win_rate', SHARE),
  profit_factor: metric('trades.profit_factor', AT_LEAST_ZERO),
  expectancy: metric('trades.expectancy', ANY),
  average_trade: metric('trades.average', ANY),
  best_trade: metric('trades.best', ANY),
  worst_trade: metric('trades.worst', ANY),
  sqn: metric('trades.sqn', ANY),
  kelly: metric('trades.kelly', [-Infinity, 1]),
  fees: metric('costs.fees', AT_LEAST_ZERO),
  slippage: metric('costs.slippage', AT_LEAST_ZERO),
  turnover: metric('costs.turnover', AT_LEAST_ZERO),
  exposure: metric('exposure.time', SHARE),
  end_equity: metric('equity.end', ANY),
  peak_equity: metric('equity.peak', AT_LEAST_ZERO),
  rejected_orders: metric('orders.rejected', AT_LEAST_ZERO),
  denied_orders: metric('orders.denied', AT_LEAST_ZERO),
  ambiguous_bars: metric('ambiguity.bars', AT_LEAST_ZERO),
  margin_calls: metric('margin_calls', AT_LEAST_ZERO),
} satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

export const METRIC_NAMES = Object.keys(METRICS) as MetricName[];

export function isMetric(name: string): name is MetricName {
  return Object.hasOwn(METRICS, name);
}

/** A condition on a result that has not been looked at yet. */
export interface Assertion {
  readonly name: MetricName;
  readonly op: Gate['op'];
  readonly threshold: number;
}

const ASSERTION = /^\s*(\w+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*$/;

/**
 * Reads `sharpe>=0.5`.
 *
 * @throws ServiceError `usage` for anything else, an unknown metric, a threshold that is no
 *   number, and a condition that holds always or never.
 */
export function parseAssertion(text: string): Assertion {
  const refuse = (message: string, remedy: string): never => {
    throw new ServiceError('usage', `assertion ${JSON.stringify(text)}: ${message}`, { remedy });
  };
  const [, name, op, number] = ASSERTION.exec(text) ?? [];
  if (name === undefined || op === undefined || number === undefined) {
    return refuse('not of the form METRIC>=NUMBER', "Write it as 'sharpe>=0.5'; also >, <= and <.");
  }
  if (!isMetric(name)) {
    const suggestion = closest(name, METRIC_NAMES);
    return refuse(
      `unknown metric ${name}`,
      suggestion === undefined
        ? `Use one of ${METRIC_NAMES.join(', ')}.`
        : `Did you mean ${suggestion}?`,
    );
  }
  const threshold = Number(number);
  if (!Number.isFinite(threshold)) {
    return refuse(`${number} is not a number`, 'Write shares as numbers: 0.05 for 5 %.');
  }
  const assertion = { name, op: op as Gate['op'], threshold };
  const fault = impossibleToFail(assertion) ?? impossibleToPass(assertion);
  return fault === undefined
    ? assertion
    : refuse(fault, 'Choose a threshold that some results pass and others do not.');
}

/** The conditions of a spec's `metrics`: `min` and `max` are both included in what passes. */
export function gatesOfSpec(
  metrics: readonly {
    readonly name: MetricName;
    readonly min?: number | undefined;
    readonly max?: number | undefined;
  }[],
): Assertion[] {
  return metrics.flatMap(({ name, min, max }) => [
    ...(min === undefined ? [] : [{ name, op: '>=', threshold: min } as const]),
    ...(max === undefined ? [] : [{ name, op: '<=', threshold: max } as const]),
  ]);
}

/** Why every value the metric can take passes, which makes the gate a decoration; else nothing. */
export function impossibleToFail(assertion: Assertion): string | undefined {
  const [least, greatest] = METRICS[assertion.name].range;
  const always = holds(least, assertion) && holds(greatest, assertion);
  return always ? `can never fail: ${rangeOf(assertion.name)}` : undefined;
}

/** Why no value the metric can take passes; else nothing. */
export function impossibleToPass(assertion: Assertion): string | undefined {
  const [least, greatest] = METRICS[assertion.name].range;
  const never = !holds(least, assertion) && !holds(greatest, assertion);
  return never ? `can never pass: ${rangeOf(assertion.name)}` : undefined;
}

function rangeOf(name: MetricName): string {
  const [least, greatest] = METRICS[name].range;
  if (greatest === Infinity) return `${name} is never below ${least}`;
  if (least === -Infinity) return `${name} is never above ${greatest}`;
  return `${name} lies between ${least} and ${greatest}`;
}

function holds(value: number, { op, threshold }: Assertion): boolean {
  switch (op) {
    case '>=':
      return value >= threshold;
    case '<=':
      return value <= threshold;
    case '>':
      return value > threshold;
    case '<':
      return value < threshold;
    default:
      return op satisfies never;
  }
}

/** Each assertion with the value it met. An undefined statistic proves nothing and does not pass. */
export function evaluateGates(assertions: readonly Assertion[], figures: GateFigures): Gate[] {
  return assertions.map((assertion) => {
    const { path } = METRICS[assertion.name];
    const value = valueAt(figures, path);
    if (value !== null) return { ...assertion, value, pass: holds(value, assertion) };
    const reason = figures.undefined[path];
    return { ...assertion, value, pass: false, ...(reason !== undefined && { reason }) };
  });
}

function valueAt(figures: GateFigures, path: Path): number | null {
  if (path === 'margin_calls') return figures.margin_calls;
  const [block, name] = path.split('.') as [Block, string];
  return (figures[block] as Readonly<Record<string, unknown>>)[name] as number | null;
}

/** The value that a gate met, or that there is none and why. */
export function valueOf({ value, reason }: Gate): string {
  if (value !== null) return String(value);
  return reason === undefined ? 'undefined' : `undefined: ${UNDEFINED_REASONS[reason]}`;
}
