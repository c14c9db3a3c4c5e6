import { COMMANDS } from '../backtest/step/commands.ts';
import type { StepState } from '../backtest/step/stepped-run.ts';
import type { Reply } from '../backtest/step/stepper.ts';
import {
  formatFacts,
  formatMoney,
  formatNumber,
  formatPercent,
  formatPrice,
  formatQuantity,
  NO_VALUE,
} from '../base/format.ts';
import type { Output } from './output.ts';

const MOST_EVENTS = 10;

export function showHelp(out: Output): void {
  const rows = Object.entries(COMMANDS);
  out.table([{ title: '' }, { title: '' }], rows);
  out.line(
    'The first letter is enough, except for breaks and delete; o and f go to the next order and fill.',
  );
}

/** @param end shown at the last step */
export function showReply(out: Output, reply: Reply, end: string): void {
  if ('state' in reply) showState(out, reply.state, { ...reply, end });
  else if ('value' in reply) out.line(`${reply.expression} = ${formatValue(reply.value)}`);
  else if (reply.breakpoints.length === 0) out.line('no breakpoints');
  else for (const { number, expression } of reply.breakpoints) out.line(`${number}  ${expression}`);
}

function showState(
  out: Output,
  state: StepState,
  {
    stopped_by,
    not_found,
    finished,
    end,
  }: Omit<Extract<Reply, { state: object }>, 'state'> & { end: string },
): void {
  const { bar, bars, time, instruments, indicators, working, events } = state;
  const why = stopped_by === null || stopped_by === 'next bar' ? '' : `, stopped by ${stopped_by}`;
  out.line(out.style.bold(`bar ${bar} of ${bars}, ${time}${why}`));
  for (const [symbol, values] of Object.entries(instruments)) {
    out.line(`${symbol}: ${values === null ? 'no bar yet' : formatValues(values)}`);
  }
  if (Object.keys(indicators).length > 0) out.line(`indicators: ${formatValues(indicators)}`);
  const { cash, equity, drawdown } = state;
  const account = `cash ${formatMoney(cash)}  equity ${formatMoney(equity)}`;
  out.line(`account: ${account}  drawdown ${formatPercent(drawdown)}`);
  for (const { seq: _seq, time: _time, kind: _kind, order, ...rest } of working) {
    out.line(`working: order ${order}  ${formatEvent(rest)}`);
  }
  if (events.length > MOST_EVENTS) out.line(`${events.length - MOST_EVENTS} earlier events`);
  for (const { seq, time: _time, kind, ...rest } of events.slice(-MOST_EVENTS)) {
    out.line(`event ${seq}: ${kind}  ${formatEvent(rest)}`);
  }
  if (not_found !== null) out.line(`not found up to the end of the run: ${not_found}`);
  if (finished) out.line(end);
}

const FORMATS: Readonly<Record<string, (value: number) => string>> = {
  ...Object.fromEntries(
    ['cash', 'fee', 'slippage', 'equity', 'required'].map((name) => [name, formatMoney]),
  ),
  ...Object.fromEntries(['price', 'reference', 'limit', 'stop'].map((name) => [name, formatPrice])),
  quantity: formatQuantity,
  position: formatQuantity,
};

function formatEvent(facts: object): string {
  const texts = Object.entries(facts).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'number' ? (FORMATS[name] ?? formatNumber)(value) : value];
  });
  return formatFacts(Object.fromEntries(texts) as object).join('  ');
}

function formatValues(values: Readonly<Record<string, number | null>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${formatValue(value)}`)
    .join('  ');
}

const formatValue = (value: number | null): string =>
  value === null ? NO_VALUE : formatNumber(value);
