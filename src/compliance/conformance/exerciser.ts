import type { Instrument } from '../../engine/instrument.ts';
import type { Order, OrderRequest } from '../../engine/orders/order.ts';
import { defineStrategy, type Broker, type Fill, type Strategy } from '../../engine/strategy.ts';

/** The broker and the instruments for an action at a bar. */
export interface ActContext {
  readonly broker: Broker;
  readonly instruments: readonly Instrument[];
  /** Places an order for the first instrument. */
  readonly order: (request: Omit<OrderRequest, 'instrument'>) => Readonly<Order>;
}

/** A strategy whose actions at each bar are decided by a test. */
export interface Exerciser {
  readonly strategy: Strategy;
  /** Schedules an action for the next bar. */
  schedule(what: (context: ActContext) => void): void;
  /** Whether all actions are done. */
  readonly isDone: boolean;
  /** Fills that it received. */
  readonly fills: readonly Fill[];
  /** Times of the bars that it received, ms since the epoch. */
  readonly bars: readonly number[];
}

/**
 * Replaces the strategy of a bot, which might not create the orders that a case needs. It repeats its
 * actions at a bar when it receives the bar again after a restart.
 */
export function newExerciser(): Exerciser {
  let scheduled: ((context: ActContext) => void)[] = [];
  const done = new Map<number, readonly ((context: ActContext) => void)[]>();
  let fills: Fill[] = [];
  let bars: number[] = [];
  const strategy = defineStrategy({
    name: 'exerciser',
    description: 'Performs the actions of a conformance case.',
    params: {},
    create({ broker, instruments }) {
      fills = [];
      bars = [];
      const context: ActContext = {
        broker,
        instruments,
        order: (request) => broker.order({ ...request, instrument: instruments[0] }),
      };
      return {
        onFill: (fill) => void fills.push(fill),
        onBar() {
          const time = Math.max(...instruments.map((one) => one.time).filter(Number.isFinite));
          bars.push(time);
          if (!done.has(time)) {
            done.set(time, scheduled);
            scheduled = [];
          }
          for (const what of done.get(time)!) what(context);
        },
      };
    },
  });
  return {
    strategy,
    schedule: (what) => void scheduled.push(what),
    get isDone() {
      return scheduled.length === 0;
    },
    get fills() {
      return fills;
    },
    get bars() {
      return bars;
    },
  };
}
