import type { Instrument } from '../../engine/instrument.ts';
import type { Order, OrderRequest } from '../../engine/orders/order.ts';
import { defineStrategy, type Broker, type Fill, type Strategy } from '../../engine/strategy.ts';

/** What a case has the bot do at a bar. */
export interface Hands {
  readonly broker: Broker;
  readonly instruments: readonly Instrument[];
  /** An order for the first instrument. */
  readonly order: (request: Omit<OrderRequest, 'instrument'>) => Readonly<Order>;
}

/** A strategy that does at each bar what it was told before the bar closed. */
export interface Exerciser {
  readonly strategy: Strategy;
  /** Has it done at the next bar. */
  tell(what: (hands: Hands) => void): void;
  /** Whether it has done all that it was told. */
  readonly isDone: boolean;
  /** What it has been told of fills. */
  readonly fills: readonly Fill[];
  /** Times of the bars that it was shown, ms. */
  readonly bars: readonly number[];
}

/**
 * Stands in for a bot's own strategy where that would not make the flow of orders that a case needs.
 * What it did at a bar it does again when it is shown the bar again, as a bot that was restarted is.
 */
export function newExerciser(): Exerciser {
  let told: ((hands: Hands) => void)[] = [];
  const done = new Map<number, readonly ((hands: Hands) => void)[]>();
  let fills: Fill[] = [];
  let bars: number[] = [];
  const strategy = defineStrategy({
    name: 'exerciser',
    description: 'Does at each bar what a conformance case tells it to.',
    params: {},
    create({ broker, instruments }) {
      fills = [];
      bars = [];
      const hands: Hands = {
        broker,
        instruments,
        order: (request) => broker.order({ ...request, instrument: instruments[0]! }),
      };
      return {
        onFill: (fill) => void fills.push(fill),
        onBar() {
          const time = Math.max(...instruments.map((one) => one.time).filter(Number.isFinite));
          bars.push(time);
          if (!done.has(time)) {
            done.set(time, told);
            told = [];
          }
          for (const what of done.get(time)!) what(hands);
        },
      };
    },
  });
  return {
    strategy,
    tell: (what) => void told.push(what),
    get isDone() {
      return told.length === 0;
    },
    get fills() {
      return fills;
    },
    get bars() {
      return bars;
    },
  };
}
