/** Data that a run records only in `events.ndjson`: costs by time, time in the market, and exit reasons. */
import type { ExitReason } from '../../backtest/report/exit-reasons.ts';
import { exitReasonsFrom, parseEvents } from '../../backtest/report/recorded-events.ts';
import { cite, fileOf, missing, type Facts, type Run } from './facts.ts';
import type { Curve, TradeRow } from './result-files.ts';
import type { Citation } from '../answering.ts';

export interface RunEvents {
  /** Costs in the order of their time, account currency. */
  readonly costs: readonly Cost[];
  /** Exit reasons by the id of the trade; empty if the events do not state them. */
  readonly reasonsOf: (
    trades: readonly TradeRow[],
    last: string,
  ) => ReadonlyMap<number, ExitReason>;
  /** Whether a position was open at each step of the curve. */
  readonly isInMarket: (curve: Curve) => readonly boolean[];
  readonly citation: Citation;
}

type Events = ReturnType<typeof parseEvents>;

interface Cost {
  /** RFC 3339. */
  readonly time: string;
  readonly fees: number;
  readonly slippage: number;
}

/** @throws ServiceError `not_found` if the file is missing or too long. */
export async function readRunEvents(facts: Facts, run: Run): Promise<RunEvents> {
  const { path, data } = await fileOf(facts, run, 'events.ndjson');
  const events = parseEvents(data);
  return {
    costs: events.flatMap((event) =>
      'fee' in event
        ? {
            time: event.time,
            fees: event.fee,
            slippage: event.kind === 'order.filled' ? event.slippage : 0,
          }
        : [],
    ),
    reasonsOf: (trades, last) => reasonsOf(events, trades, last),
    isInMarket: (curve) => inMarket(events, curve),
    citation: { figure: 'events', value: events.length, source: path },
  };
}

function reasonsOf(
  events: Events,
  trades: readonly TradeRow[],
  last: string,
): ReadonlyMap<number, ExitReason> {
  // A market order that is submitted in the last step is filled only if the run closes its positions.
  const closing = { reason: 'run_end', times: [Date.parse(last)] } as const;
  const reasons = exitReasonsFrom(events, closing);
  const closed = trades
    .filter(({ status }) => status === 'closed')
    .toSorted((a, b) => a.number - b.number);
  return reasons.of(closed.map(({ number: id }) => ({ id })));
}

function inMarket(events: Events, { time }: Curve): readonly boolean[] {
  const held = new Map<string, number>();
  let next = 0;
  return time.map((at) => {
    const until = Date.parse(at);
    for (let event = events[next]; event !== undefined && Date.parse(event.time) <= until;) {
      if ('position' in event) held.set(event.symbol, event.position);
      next += 1;
      event = events[next];
    }
    return [...held.values()].some((position) => position !== 0);
  });
}

/**
 * The share of the steps from `first` to `last` at whose close a position was open.
 * @throws ServiceError `not_found` if the events do not yield the exposure of the whole run.
 */
export function exposureOf(
  events: RunEvents,
  curve: Curve,
  { result, said }: Run,
  first: number,
  last: number,
): number {
  const steps = events.isInMarket(curve);
  const share = (part: readonly boolean[]): number => part.filter(Boolean).length / part.length;
  const whole = Number(cite(result, '/exposure/time').value);
  if (Math.abs(share(steps) - whole) > 1e-9) {
    throw missing(`the events do not yield the exposure of part of ${said}`);
  }
  return share(steps.slice(first, last + 1));
}
