/** The simulated venue as the session code of a deployment knows venues. */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import {
  orderOfClientId,
  type MarketPhase,
  type Venue,
  type VenueOrder,
  type VenueOrderId,
  type VenueReport,
  type VenueRules,
} from '../../trading/venue.ts';
import { watchReports } from '../../trading/venues/venue-reports.ts';
import type {
  ClientMessage,
  Execution,
  RawMessage,
  Unnumbered,
  VenueMessage,
} from '../venue/session/messages.ts';
import type { SelfTrade } from '../venue/session/order.ts';
import type { Phase } from '../venue/session/phases.ts';
import type { Link, SimulatedVenue } from '../venue/session/simulated-venue.ts';

export interface DoorOptions {
  readonly venue: SimulatedVenue;
  readonly session: string;
  readonly password: string;
  readonly deploymentId: string;
  readonly quantityUnit: number;
  readonly priceUnit: number;
  readonly isCanceledOnDisconnect: boolean;
  /** What the account has asked the venue to do with orders that meet its own. */
  readonly selfTrade: SelfTrade;
  /** Numbers that it goes on from after a process that died; kept by whoever outlives it. */
  readonly numbers: Numbers;
  /** Told of all that comes and goes, and of what goes wrong. */
  readonly onTrouble: (message: string) => void;
}

/** Of the messages of a session, over all of its connections. */
export interface Numbers {
  nextOut: number;
  nextIn: number;
  /** Of requests: each has an id of its own. */
  requests: number;
  /** Of each order by its client's id: busts and corrections so far. */
  readonly corrections: Map<string, number>;
}

const RECONNECT_MS = 1000;
const LOGON_MS = 3000;
const ANSWER_MS = 1500;
const RESYNC_MS = 15_000;
const CANCEL_MARK = 'c';

/** What the venue says to a request, or that it says nothing. */
type Wait = PromiseWithResolvers<VenueMessage>;

/**
 * Opens an order session, and keeps it open: a connection that is lost is made anew. What the venue
 * has sent and did not arrive is asked for again; what it has not heard is not said again, since an
 * order may be out of date by then.
 *
 * @throws ServiceError `exchange_unavailable` when the venue does not let the session in.
 */
export async function openDoor(options: DoorOptions): Promise<Venue> {
  const { venue, deploymentId, numbers, onTrouble } = options;
  const held = new Map<number, VenueMessage>();
  /** Of each question those who wait for an answer, in the order in which they asked. */
  const waits = new Map<string, Wait[]>();
  /** When it came to be what it is, as far as is known. */
  const times = new Map<string, number>();
  const opened = Promise.withResolvers<void>();
  const marks = new Map<string, { readonly id: VenueOrderId; mark: string }>();
  const working = new Map<string, VenueOrderId>();
  /** What each instrument is doing, and the number of the message that said so. */
  const phases = new Map<string, { readonly seq: number; readonly phase: Phase }>();
  /** Of market data: the newest message's. */
  let heardOf = 0;
  let changed = Promise.withResolvers<void>();
  /** Orders that are not to be sent any more. */
  const gone = new Set<string>();
  let news = Promise.withResolvers<void>();
  let link: Link | undefined;
  let isOn = false;
  let isClosed = false;
  let heartbeat: NodeJS.Timeout | undefined;
  let asked = 0;

  const send = (message: Unnumbered<ClientMessage>): void => {
    const seq = numbers.nextOut;
    numbers.nextOut += 1;
    link!.send({ ...message, seq });
  };
  const unavailable = (why: string): ServiceError =>
    new ServiceError('exchange_unavailable', `the venue ${why}`, { remedy: 'Try again later.' });
  const dropped = (): void => {
    link = undefined;
    clearInterval(heartbeat);
    if (isOn && !isClosed) onTrouble('the connection is lost');
    isOn = false;
    for (const wait of [...waits.values()].flat()) wait.reject(unavailable('has hung up'));
    waits.clear();
    if (!isClosed) setTimeout(connect, RECONNECT_MS);
  };
  const connect = (): void => {
    if (isClosed) return;
    held.clear();
    asked = 0;
    link = venue.connect('primary', { receive, dropped });
    if (link === undefined) {
      setTimeout(connect, RECONNECT_MS);
      return;
    }
    send({
      type: 'logon',
      session: options.session,
      password: options.password,
      cancel_on_disconnect: options.isCanceledOnDisconnect,
      reset_sequences: false,
    });
  };
  const receive = (message: VenueMessage | RawMessage): void => {
    if (message.type === 'raw') {
      onTrouble('a message that cannot be read is passed over');
      return;
    }
    const { seq } = message;
    // A farewell to who has not logged on has no number.
    if (seq === 0) {
      onTrouble(`the venue refuses the session: ${(message as { reason: string }).reason}`);
      return;
    }
    if (seq < numbers.nextIn) return;
    if (seq > numbers.nextIn) {
      held.set(seq, message);
      if (asked >= seq - 1) return;
      asked = seq - 1;
      onTrouble(`messages ${numbers.nextIn} to ${seq - 1} are missing: they are asked for`);
      send({ type: 'resend_request', from: numbers.nextIn, to: seq - 1 });
      return;
    }
    numbers.nextIn = message.type === 'sequence_reset' ? message.next : seq + 1;
    take(message);
    for (const key of held.keys()) if (key < numbers.nextIn) held.delete(key);
    const next = held.get(numbers.nextIn);
    if (next !== undefined) {
      held.delete(numbers.nextIn);
      receive(next);
    }
  };
  const take = (message: VenueMessage): void => {
    switch (message.type) {
      case 'logon':
        isOn = true;
        opened.resolve();
        heartbeat = setInterval(() => link && send({ type: 'heartbeat' }), message.heartbeat_ms);
        return;
      case 'logout':
        onTrouble(`the venue has logged the session out: ${message.reason}`);
        return;
      case 'test_request':
        send({ type: 'heartbeat', test_id: message.test_id });
        return;
      case 'resend_request':
        // In place of all that it has missed.
        link!.send({
          type: 'sequence_reset',
          seq: message.from,
          next: message.to + 1,
          possibly_duplicate: true,
        });
        return;
      case 'execution':
        executed(message);
        return;
      case 'cancel_reject':
        answer(message.client_order_id, message);
        return;
      case 'reference_data':
        if (message.request_id === '') changed.resolve();
        answer(message.request_id, message);
        return;
      case 'open_orders':
      case 'positions':
        answer(message.request_id, message);
        return;
      case 'heartbeat':
      case 'sequence_reset':
      case 'mass_cancel_report':
        return;
      default:
        onTrouble('a message of no known kind is passed over');
    }
  };
  const executed = (message: Execution): void => {
    const { exec_type: type, client_order_id: name, orig_client_order_id: original } = message;
    if (type === 'status') {
      answer(`status ${name}`, message);
      return;
    }
    const id = original ?? name;
    const order = orderOfClientId(deploymentId, id);
    if (order === undefined) {
      onTrouble('an execution of an order that is none of ours is passed over');
      return;
    }
    const known = { order, client_order_id: id, symbol: message.instrument };
    times.set(id, message.time);
    if (type === 'trade_bust' || type === 'trade_correct') {
      numbers.corrections.set(id, (numbers.corrections.get(id) ?? 0) + 1);
    }
    marks.set(id, { id: known, mark: `${message.exec_id}` });
    news.resolve();
    answer(name, message);
  };
  const answer = (key: string, message: VenueMessage): void => {
    waits.get(key)?.shift()?.resolve(message);
  };
  const ask = async (key: string, message: Unnumbered<ClientMessage>): Promise<VenueMessage> => {
    if (link === undefined || !isOn) throw unavailable('is not connected');
    const wait: Wait = Promise.withResolvers();
    const asking = waits.get(key) ?? [];
    waits.set(key, asking);
    asking.push(wait);
    send(message);
    const late = setTimeout(() => {
      if (asking.includes(wait)) asking.splice(asking.indexOf(wait), 1);
      wait.reject(unavailable('does not answer'));
    }, ANSWER_MS);
    try {
      return await wait.promise;
    } finally {
      clearTimeout(late);
    }
  };
  const requestId = (): string => `r${(numbers.requests += 1)}`;

  const reportOf = (order: VenueOrderId, execution: Execution): VenueReport => {
    const { status, filled, value, reason } = execution;
    const time = times.get(order.client_order_id) ?? execution.time;
    times.set(order.client_order_id, time);
    const corrections = numbers.corrections.get(order.client_order_id);
    const report: VenueReport = {
      order: order.order,
      client_order_id: order.client_order_id,
      status: status === 'unknown' ? 'rejected' : STATUS[status],
      filled: decimal(filled * options.quantityUnit),
      cost: decimal(value * options.priceUnit * options.quantityUnit),
      fee: 0,
      fee_units: 0,
      ...(corrections !== undefined && { corrections }),
      time,
      ...(reason !== undefined && { reason: REASONS[reason] ?? 'refused_by_venue' }),
    };
    if (report.status === 'open') working.set(order.client_order_id, order);
    else working.delete(order.client_order_id);
    return report;
  };
  const look = async (order: VenueOrderId): Promise<VenueReport | undefined> => {
    const { client_order_id } = order;
    const said = await ask(`status ${client_order_id}`, {
      type: 'order_status_request',
      client_order_id,
    });
    const execution = said as Execution;
    if (execution.status === 'unknown') {
      working.delete(client_order_id);
      return undefined;
    }
    return reportOf(order, execution);
  };
  const learn = (symbol: string, seq: number, phase: Phase): void => {
    const known = phases.get(symbol);
    if (known !== undefined && known.seq >= seq) return;
    phases.set(symbol, { seq, phase });
    if (known?.phase !== phase) changed.resolve();
  };
  const lookAt = (symbol: string): void =>
    venue.snapshot(symbol, (message) => {
      if (message.type === 'snapshot') learn(symbol, message.seq, message.phase);
    });
  venue.subscribe('a', (message) => {
    if (isClosed || message.type === 'raw') return;
    const { seq } = message;
    // What was missed may have been of a phase.
    if (heardOf > 0 && seq > heardOf + 1) for (const symbol of phases.keys()) lookAt(symbol);
    heardOf = Math.max(heardOf, seq);
    if (message.type === 'status') learn(message.instrument, seq, message.phase);
  });
  const rules = async (): Promise<VenueRules> => {
    const request_id = requestId();
    const said = await ask(request_id, { type: 'reference_request', request_id });
    const { instruments } = said as Extract<VenueMessage, { type: 'reference_data' }>;
    const unknown = instruments.filter(({ instrument }) => !phases.has(instrument));
    for (const { instrument } of unknown) lookAt(instrument);
    if (unknown.length > 0) await delay(ANSWER_MS / 10);
    if (unknown.some(({ instrument }) => !phases.has(instrument))) {
      throw unavailable('does not say what its instruments are doing');
    }
    const known = instruments.map(({ instrument, lot, tick, price_unit, quantity_unit }) => [
      instrument,
      {
        step: decimal(lot * quantity_unit),
        min_quantity: decimal(lot * quantity_unit),
        min_value: 0,
        tick: decimal(tick * price_unit),
        phase: PHASE[phases.get(instrument)!.phase],
      },
    ]);
    return {
      types: ['market', 'limit', 'stop', 'stop_limit'],
      instruments: Object.fromEntries(known) as VenueRules['instruments'],
    };
  };
  const openOrders = async (): Promise<VenueOrderId[]> => {
    const request_id = requestId();
    const said = await ask(request_id, { type: 'open_orders_request', request_id });
    return (said as Extract<VenueMessage, { type: 'open_orders' }>).orders.flatMap(
      ({ client_order_id, instrument }) => {
        const order = orderOfClientId(deploymentId, client_order_id);
        return order === undefined ? [] : [{ order, client_order_id, symbol: instrument }];
      },
    );
  };
  const close = async (): Promise<void> => {
    isClosed = true;
    if (link !== undefined && isOn) send({ type: 'logout' });
    link?.drop();
  };
  connect();
  const late = setTimeout(
    () => opened.reject(unavailable('does not let the session in')),
    LOGON_MS,
  );
  try {
    await opened.promise;
  } catch (error) {
    await close();
    throw error;
  } finally {
    clearTimeout(late);
  }

  return {
    name: 'simulated',
    rules,
    async place(order) {
      const found = await look(order);
      if (found !== undefined) return found;
      if (gone.has(order.client_order_id)) return notThere(order, venue.now);
      if (held.size > 0) throw unavailable('has said what is not known yet');
      working.set(order.client_order_id, order);
      const said = (await ask(order.client_order_id, newOrder(order, options))) as Execution;
      if (said.reason === 'throttled') {
        working.delete(order.client_order_id);
        throw unavailable('takes no more messages now');
      }
      if (said.reason === 'duplicate_client_order_id') {
        return (await look(order)) ?? reportOf(order, said);
      }
      return reportOf(order, said);
    },
    async cancel(order) {
      const { client_order_id: original } = order;
      gone.add(original);
      const name = `${original}${CANCEL_MARK}${(numbers.requests += 1)}`;
      const said = await ask(name, {
        type: 'cancel',
        client_order_id: name,
        orig_client_order_id: original,
      });
      if (said.type === 'cancel_reject' && said.reason === 'throttled') {
        throw unavailable('takes no more messages now');
      }
      const report = await look(order);
      if (report?.status === 'open') throw unavailable('has not canceled the order');
      return report ?? notThere(order, venue.now);
    },
    async find(order) {
      const report = await look(order);
      if (report === undefined) gone.add(order.client_order_id);
      return report;
    },
    openOrders,
    async account() {
      const request_id = requestId();
      const said = await ask(request_id, { type: 'positions_request', request_id });
      const { cash, positions } = said as Extract<VenueMessage, { type: 'positions' }>;
      const balances = Object.entries(positions).map(([symbol, units]) => [
        symbol,
        decimal(units * options.quantityUnit),
      ]);
      return { cash: decimal(cash), balances: Object.fromEntries(balances) };
    },
    async *terms(signal) {
      signal.addEventListener('abort', () => changed.resolve(), { once: true });
      for (;;) {
        changed = Promise.withResolvers();
        try {
          yield await rules();
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          changed.resolve();
          await delay(RECONNECT_MS, undefined, { signal }).catch(() => {});
        }
        if (signal.aborted) return;
        await changed.promise;
        if (signal.aborted) return;
      }
    },
    reports: (signal) =>
      watchReports(
        {
          nextOrders: async () => {
            await news.promise;
            news = Promise.withResolvers();
            const told = [...marks.values()].map(({ id, mark }) => ({ ...id, mark }));
            marks.clear();
            return told;
          },
          drop: () => link?.drop(),
          working: () => [...working.values()],
          refresh: async () => {
            for (const order of await openOrders()) working.set(order.client_order_id, order);
          },
          fetch: look,
          trouble: (what, error) =>
            onTrouble(error instanceof Error ? `${what}: ${error.message}` : what),
        },
        RESYNC_MS,
        signal,
      ),
    close,
  };
}

const STATUS = {
  new: 'open',
  partially_filled: 'open',
  filled: 'filled',
  canceled: 'canceled',
  expired: 'expired',
  rejected: 'rejected',
} as const;

const PHASE: Readonly<Record<Phase, MarketPhase>> = {
  // Orders may rest by then.
  pre_open: 'auction',
  opening_auction: 'auction',
  continuous: 'open',
  volatility_auction: 'auction',
  halt: 'halted',
  closing_auction: 'auction',
  closed: 'closed',
};

/** What orders are refused for, in the words that the adapter of real exchanges has for it. */
const REASONS: Readonly<Record<string, string>> = {
  unknown_instrument: 'unknown_symbol',
  phase: 'market_closed',
  tick: 'invalid_order',
  lot: 'invalid_order',
  max_quantity: 'invalid_order',
  price_band: 'invalid_order',
  order_type: 'invalid_order',
  post_only_would_cross: 'post_only_would_cross',
};

function newOrder(
  { client_order_id, symbol, side, type, time_in_force, quantity, ...more }: VenueOrder,
  { priceUnit, quantityUnit, selfTrade }: DoorOptions,
): Unnumbered<ClientMessage> {
  const units = (price: number): number => onGrid(price / priceUnit);
  return {
    type: 'new_order',
    client_order_id,
    instrument: symbol,
    side,
    order_type: type,
    time_in_force,
    quantity: onGrid(quantity / quantityUnit),
    ...(more.limit !== undefined && { price: units(more.limit) }),
    ...(more.stop !== undefined && { stop_price: units(more.stop) }),
    ...(more.post_only === true && { post_only: true }),
    ...(selfTrade !== 'none' && { self_trade: selfTrade }),
  };
}

function notThere({ order, client_order_id }: VenueOrderId, time: number): VenueReport {
  const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
  return { order, client_order_id, status: 'canceled', ...nothing, time, reason: 'not_at_venue' };
}

/** What is meant to be a whole number of units; what is not is left as it is, for the venue to refuse. */
function onGrid(count: number): number {
  const whole = Math.round(count);
  return Math.abs(count - whole) < 1e-6 ? whole : count;
}

/** A product of decimal numbers, without the error that it has in binary. */
function decimal(value: number): number {
  return Number(value.toFixed(9));
}
