import { createOrder } from './orders/create-order.ts';
import { readRequest, REQUEST_FIELDS, type RequestFields } from './orders/order-request.ts';
import { viewOf } from './orders/order-view.ts';
import type { Order, OrderRequest } from './orders/order.ts';
import type { Instrument } from './instrument.ts';
import type { Params, ParamValues } from './params.ts';
import { seededRandom } from './random.ts';
import { any } from './series/condition.ts';
import type { Broker, Fill, Strategy, StrategyContext, StrategyRun } from './strategy.ts';

/** The part of a run before a change of parameters. */
export interface ForkPast {
  /** Opening time of its last bars, ms since the epoch. */
  readonly until: number;
  /** Complete and valid. */
  readonly params: ParamValues<Params>;
  /** Seed of the run. */
  readonly seed: number;
}

interface BothIndicators {
  readonly past: unknown;
  readonly future: unknown;
}

/**
 * Returns a strategy that trades with the parameters of `past` up to its end, and from the next bar on
 * with those of the run.
 *
 * Two instances of the strategy take part from the first bar on. The first one trades until the end
 * of the past. The second one observes the past: it is called with the same bars, account and fills,
 * but none of its orders reaches the engine. An order that the first instance places in the same turn
 * with the same fields is returned to it; any other is returned with the status `denied`. So a second
 * instance with equal parameters has the memory of the first one.
 *
 * With `wakeOn`, both instances are called where either condition holds.
 */
export function forkStrategy(strategy: Strategy, past: ForkPast): Strategy {
  const params = Object.freeze({ ...past.params });
  const fork: Strategy<Params, BothIndicators> = {
    ...strategy,
    indicators: (context) => ({
      past: strategy.indicators?.({ ...context, params }),
      future: strategy.indicators?.(context),
    }),
    ...(strategy.wakeOn !== undefined && {
      wakeOn: (both: BothIndicators, own: ParamValues<Params>) =>
        any(strategy.wakeOn!(both.past, params), strategy.wakeOn!(both.future, own)),
    }),
    create: (context) => startFork(strategy, { ...past, params }, context),
  };
  return fork;
}

function startFork(
  strategy: Strategy,
  { until, params, seed }: ForkPast,
  context: StrategyContext<Params, BothIndicators>,
): StrategyRun {
  const { instruments, indicators, broker } = context;
  const isPast = (): boolean => !instruments.some(({ time }) => time > until);
  const turn = new SharedTurn(broker, isPast);
  turn.begin();
  const past = strategy.create({
    ...context,
    params,
    indicators: indicators.past,
    broker: turn.acting,
  });
  const future = strategy.create({
    ...context,
    indicators: indicators.future,
    broker: turn.observing,
    random: seededRandom(seed),
    log: (message) => (isPast() ? undefined : context.log(message)),
  });
  const both = (call: (run: StrategyRun) => void): void => {
    turn.begin();
    if (isPast()) call(past);
    call(future);
  };
  const hasFills = past.onFill !== undefined || future.onFill !== undefined;
  return {
    onBar: () => both((run) => run.onBar()),
    ...(hasFills && { onFill: (fill: Fill) => both((run) => run.onFill?.(fill)) }),
  };
}

/** One call of both instances, the acting one first. */
class SharedTurn {
  /** Broker of the instance that trades in the past. */
  readonly acting: Broker;
  /** Broker of the instance that observes the past, and trades after it. */
  readonly observing: Broker;
  readonly #broker: Broker;
  /** Orders of the acting instance that the other one has not placed. */
  readonly #placed: { readonly key: string; readonly order: Order }[] = [];
  /** Working orders at the start of the turn, until the observing instance changes any. */
  #working: readonly Order[] | undefined;

  constructor(broker: Broker, isPast: () => boolean) {
    this.#broker = broker;
    this.acting = withOrders(broker, {
      order: (request) => {
        const fields = readRequest(request);
        return this.#place(keyOf(fields), broker.order(fields as OrderRequest));
      },
      target: (instrument, weight) =>
        this.#place(keyOfTarget(instrument, weight), broker.target(instrument, weight)),
      cancel: (order) => broker.cancel(order),
      working: (instrument) => broker.working(instrument),
    });
    this.observing = withOrders(broker, {
      order: (request) => {
        if (!isPast()) return broker.order(request);
        const fields = readRequest(request);
        return this.#claim(keyOf(fields)) ?? denied(fields);
      },
      target: (instrument, weight) => {
        if (!isPast()) return broker.target(instrument, weight);
        const side = weight < 0 ? 'sell' : 'buy';
        const fields = { instrument, side, quantity: Number.NaN } as RequestFields;
        return this.#claim(keyOfTarget(instrument, weight)) ?? denied(fields, weight);
      },
      cancel: (order) => {
        this.#working = undefined;
        if (!isPast()) broker.cancel(order);
      },
      working: (instrument) =>
        this.#working?.filter((one) => instrument === undefined || one.instrument === instrument) ??
        broker.working(instrument),
    });
  }

  begin(): void {
    this.#placed.length = 0;
    this.#working = this.#broker.working();
  }

  #place(key: string, order: Order): Order {
    this.#placed.push({ key, order });
    return order;
  }

  #claim(key: string): Order | undefined {
    this.#working = undefined;
    const at = this.#placed.findIndex((one) => one.key === key);
    return at < 0 ? undefined : this.#placed.splice(at, 1)[0]!.order;
  }
}

/** A broker with the account of another one. */
function withOrders(
  account: Broker,
  orders: Pick<Broker, 'order' | 'target' | 'cancel' | 'working'>,
): Broker {
  return Object.freeze({
    get cash() {
      return account.cash;
    },
    get equity() {
      return account.equity;
    },
    position: (instrument: Instrument) => account.position(instrument),
    entryPrice: (instrument: Instrument) => account.entryPrice(instrument),
    ...orders,
  });
}

function keyOf(fields: RequestFields): string {
  return JSON.stringify([fields.instrument.index, ...REQUEST_FIELDS.map((name) => fields[name])]);
}

function keyOfTarget({ index }: Instrument, weight: number): string {
  return JSON.stringify([index, weight]);
}

function denied(fields: RequestFields, weight?: number): Order {
  const order = createOrder(0, 'fractional', {
    ...fields,
    ...(weight !== undefined && { weight }),
  });
  return viewOf(Object.assign(order, { status: 'denied' }));
}
