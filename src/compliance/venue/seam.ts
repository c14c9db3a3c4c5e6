import { ServiceError } from '../../errors.ts';
import { orderOfClientId } from '../../trading/venue.ts';
import type {
  Venue,
  VenueAccount,
  VenueOrder,
  VenueOrderId,
  VenueReport,
  VenueRules,
} from '../../trading/venue.ts';
import type { Execution, ReferenceTerms } from './messages.ts';
import type { SelfTrade } from './order.ts';
import { SessionClient, type Business } from './session-client.ts';
import type { SimulatedVenue } from './simulated-venue.ts';

export interface SimulatedVenueSeamSetup {
  readonly venue: SimulatedVenue;
  /** Of the scenario, whose instruments are called as the bot calls its symbols. */
  readonly session: string;
  readonly password: string;
  readonly deploymentId: string;
  readonly cancelOnDisconnect: boolean;
  readonly selfTrade: SelfTrade;
  /** Answers are waited for so long, by the venue's time. */
  readonly answerMs: number;
}

/** What is known of an order that was sent, or found at the venue. */
interface Known {
  /** Number of the last execution that counted. */
  executed: number;
  report: VenueReport | undefined;
}

/**
 * The simulated venue as a session trades at it. Its time passes while an answer is waited for, until
 * the answer is there and no further, and else only when the venue is run; what is asked for at one
 * moment is asked for at one time. No fees are taken.
 */
export class SimulatedVenueSeam implements Venue {
  readonly name = 'simulated_venue';
  readonly client: SessionClient;
  readonly #setup: SimulatedVenueSeamSetup;
  readonly #known = new Map<string, Known>();
  readonly #terms = new Map<string, ReferenceTerms>();
  /** Answers to questions and refusals of cancels, by what they were asked as. */
  readonly #answers = new Map<string, Business>();
  readonly #readers = new Set<Reader>();
  #asked = 0;

  constructor(setup: SimulatedVenueSeamSetup) {
    const { venue, session, password, cancelOnDisconnect } = setup;
    this.#setup = setup;
    const onMessage = this.#take.bind(this);
    this.client = new SessionClient({ venue, session, password, cancelOnDisconnect, onMessage });
  }

  async rules(): Promise<VenueRules> {
    await this.#download();
    const instruments = [...this.#terms.values()].map((terms) => {
      const step = product(terms.lot, terms.quantity_unit);
      const tick = product(terms.tick, terms.price_unit);
      return [terms.instrument, { step, min_quantity: step, min_value: 0, tick }] as const;
    });
    const types = ['market', 'limit', 'stop', 'stop_limit'] as const;
    return { types, instruments: Object.fromEntries(instruments) };
  }

  async place(order: VenueOrder): Promise<VenueReport> {
    const id = order.client_order_id;
    if (this.#terms.size === 0) await this.#download();
    if (this.#known.has(id)) {
      // It was sent before: whether it arrived, the venue knows.
      const found = await this.find(order);
      if (found !== undefined) return found;
    }
    const { symbol, side, type, time_in_force, limit, stop, post_only } = order;
    const terms = this.#terms.get(symbol);
    if (terms === undefined) return this.#ended(order, 'rejected', 'unknown_symbol');
    await this.#ready();
    const known: Known = { executed: 0, report: undefined };
    this.#known.set(id, known);
    this.client.send({
      type: 'new_order',
      client_order_id: id,
      instrument: symbol,
      side,
      order_type: type,
      time_in_force,
      quantity: inUnits(order.quantity, terms.quantity_unit),
      price: limit === undefined ? undefined : inUnits(limit, terms.price_unit),
      stop_price: stop === undefined ? undefined : inUnits(stop, terms.price_unit),
      post_only,
      self_trade: this.#setup.selfTrade,
    });
    return this.#wait(() => known.report);
  }

  async cancel(order: VenueOrderId): Promise<VenueReport> {
    await this.#ready();
    this.#asked += 1;
    const id = order.client_order_id;
    const request = `${id}/${this.#asked}`;
    this.client.send({ type: 'cancel', client_order_id: request, orig_client_order_id: id });
    const answer = await this.#wait(() => {
      const report = this.#known.get(id)?.report;
      return report !== undefined && report.status !== 'open' ? report : this.#answers.get(request);
    });
    this.#answers.delete(request);
    if (!('type' in answer)) return answer;
    if (answer.type === 'cancel_reject' && answer.reason === 'throttled') {
      throw unavailable('takes no more messages for now');
    }
    return (await this.find(order)) ?? this.#ended(order, 'canceled', 'not_at_venue');
  }

  async find(order: VenueOrderId): Promise<VenueReport | undefined> {
    await this.#ready();
    const id = order.client_order_id;
    this.#answers.delete(id);
    this.client.send({ type: 'order_status_request', client_order_id: id });
    const answer = (await this.#wait(() => this.#answers.get(id))) as Execution;
    this.#answers.delete(id);
    if (answer.status === 'unknown') return undefined;
    if (this.#terms.size === 0) await this.#download();
    return this.#reportOf(order.order, answer);
  }

  async openOrders(): Promise<readonly Pick<VenueOrder, 'client_order_id' | 'symbol'>[]> {
    const answer = await this.#question('open_orders_request', 'open_orders');
    return answer.orders
      .filter(({ client_order_id: id }) => this.#numberOf(id) !== undefined)
      .map(({ client_order_id, instrument: symbol }) => ({ client_order_id, symbol }));
  }

  async account(): Promise<VenueAccount> {
    if (this.#terms.size === 0) await this.#download();
    const { cash, positions } = await this.#question('positions_request', 'positions');
    const balances = [...this.#terms.values()].map(
      ({ instrument, quantity_unit: unit }) =>
        [instrument, product(positions[instrument] ?? 0, unit)] as const,
    );
    return { cash, balances: Object.fromEntries(balances) };
  }

  async *reports(signal: AbortSignal): AsyncGenerator<VenueReport, void> {
    const reader: Reader = { reports: [], news: Promise.withResolvers<void>() };
    const end = (): void => reader.news.resolve();
    this.#readers.add(reader);
    signal.addEventListener('abort', end);
    try {
      while (!signal.aborted) {
        const report = reader.reports.shift();
        if (report !== undefined) yield report;
        else {
          reader.news = Promise.withResolvers<void>();
          await reader.news.promise;
        }
      }
    } finally {
      signal.removeEventListener('abort', end);
      this.#readers.delete(reader);
    }
  }

  close(): Promise<void> {
    this.client.close();
    return Promise.resolve();
  }

  #take(message: Business): void {
    if (message.type === 'execution') this.#takeExecution(message);
    else if (message.type === 'reference_data') {
      // Units never change: of what is gone, orders can still be told.
      for (const terms of message.instruments) this.#terms.set(terms.instrument, terms);
      this.#answers.set(message.request_id, message);
    } else if (message.type === 'open_orders' || message.type === 'positions') {
      this.#answers.set(message.request_id, message);
    } else {
      this.#answers.set(message.client_order_id, message);
    }
  }

  #takeExecution(execution: Execution): void {
    const { exec_type: type, reason } = execution;
    const id = execution.orig_client_order_id ?? execution.client_order_id;
    if (type === 'status') {
      this.#answers.set(execution.client_order_id, execution);
      if (execution.status === 'unknown') return;
    }
    const order = this.#numberOf(id);
    // That an order was there already says nothing of how it is.
    if (order === undefined || reason === 'duplicate_client_order_id') return;
    const known = this.#known.get(id) ?? { executed: 0, report: undefined };
    this.#known.set(id, known);
    if (type !== 'status' && execution.exec_id <= known.executed) return;
    known.executed = Math.max(known.executed, execution.exec_id);
    known.report = this.#reportOf(order, { ...execution, client_order_id: id });
    for (const reader of this.#readers) {
      reader.reports.push(known.report);
      reader.news.resolve();
    }
  }

  #reportOf(order: number, execution: Execution): VenueReport {
    const { client_order_id, status, reason, time } = execution;
    const terms = this.#terms.get(execution.instrument);
    const { quantity_unit = 1, price_unit = 1 } = terms ?? {};
    return {
      order,
      client_order_id,
      status:
        status === 'new' || status === 'partially_filled' || status === 'unknown' ? 'open' : status,
      filled: product(execution.filled, quantity_unit),
      cost: product(execution.value, price_unit * quantity_unit),
      fee: 0,
      fee_units: 0,
      time,
      ...(reason !== undefined && { reason }),
    };
  }

  #ended(
    { order, client_order_id }: VenueOrderId,
    status: 'canceled' | 'rejected',
    reason: string,
  ): VenueReport {
    const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
    return { order, client_order_id, status, ...nothing, time: this.#setup.venue.now, reason };
  }

  #numberOf(clientOrderId: string): number | undefined {
    return orderOfClientId(this.#setup.deploymentId, clientOrderId);
  }

  async #download(): Promise<void> {
    await this.#question('reference_request', 'reference_data');
  }

  async #question<T extends Extract<Business, { request_id: string }>['type']>(
    type: 'reference_request' | 'open_orders_request' | 'positions_request',
    _answer: T,
  ): Promise<Extract<Business, { type: T }>> {
    await this.#ready();
    this.#asked += 1;
    const request = `?${this.#asked}`;
    this.client.send({ type, request_id: request });
    const answer = await this.#wait(() => this.#answers.get(request));
    this.#answers.delete(request);
    return answer as Extract<Business, { type: T }>;
  }

  async #ready(): Promise<void> {
    if (!this.client.isReady) await this.#wait(() => this.client.isReady || undefined);
  }

  /** Lets the venue's time pass until there is something. */
  async #wait<T>(look: () => T | undefined): Promise<T> {
    const { venue, answerMs } = this.#setup;
    const until = venue.now + answerMs;
    // Whoever asks at this moment, too, asks before time passes.
    await Promise.resolve();
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.client.isRefused) throw unavailable('refuses to let the session log on');
      if (!venue.step(until)) break;
    }
    venue.run(until);
    throw unavailable('does not answer');
  }
}

interface Reader {
  readonly reports: VenueReport[];
  news: PromiseWithResolvers<void>;
}

function unavailable(what: string): ServiceError {
  return new ServiceError('exchange_unavailable', `the simulated venue ${what}`, {
    remedy: 'Ask again: the outcome is not known.',
  });
}

/** A decimal number, without the hair by which a product misses it. */
function product(count: number, unit: number): number {
  return Number((count * unit).toPrecision(15));
}

/** How many units it is: whole but for what really lies between two. */
function inUnits(value: number, unit: number): number {
  const count = value / unit;
  const whole = Math.round(count);
  return Math.abs(count - whole) <= 1e-9 * Math.abs(count) ? whole : count;
}
