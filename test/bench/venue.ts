import { Book } from '../../src/compliance/venue/session/book.ts';
import type { ClientMessage } from '../../src/compliance/venue/session/messages.ts';
import { makeOrder, type Order } from '../../src/compliance/venue/session/order.ts';
import { SimulatedVenue } from '../../src/compliance/venue/session/simulated-venue.ts';
import { seededRandom } from '../../src/engine/random.ts';
import { figure, median, round, type Figure } from './figure.ts';

const MESSAGES = 400_000;
const ROUNDS = 5;
const GOAL_PER_SECOND = 500_000;

/**
 * Messages of one member, who quotes around a price that wanders: of ten, about five new orders, of
 * which two trade, four cancels and an amendment. The first logs on.
 */
function makeMessages(count: number): readonly ClientMessage[] {
  const random = seededRandom(7);
  const logon = { session: 'S', password: 'p', cancel_on_disconnect: false, reset_sequences: true };
  const messages: ClientMessage[] = [{ type: 'logon', seq: 1, ...logon }];
  const open: string[] = [];
  let middle = 10_000;
  const take = (): string => {
    const at = Math.floor(random() * open.length);
    const id = open[at]!;
    open[at] = open.at(-1)!;
    open.pop();
    return id;
  };
  for (let seq = 2; seq <= count; seq += 1) {
    const client_order_id = `o${seq}`;
    const dice = random();
    if (dice < 0.5 || open.length < 200) {
      if (dice < 0.05) middle += random() < 0.5 ? -1 : 1;
      const isBuy = random() < 0.5;
      const isTaker = random() < 0.4;
      const away = isTaker ? -2 : 1 + Math.floor(random() ** 2 * 40);
      messages.push({
        type: 'new_order',
        seq,
        client_order_id,
        instrument: 'X',
        side: isBuy ? 'buy' : 'sell',
        order_type: 'limit',
        time_in_force: isTaker ? 'ioc' : 'gtc',
        quantity: 1 + Math.floor(random() * 20),
        price: middle + (isBuy ? -away : away),
      });
      if (!isTaker) open.push(client_order_id);
    } else if (dice < 0.9) {
      messages.push({ type: 'cancel', seq, client_order_id, orig_client_order_id: take() });
    } else {
      const quantity = 1 + Math.floor(random() * 20);
      const asked = { orig_client_order_id: take(), quantity };
      messages.push({ type: 'amend', seq, client_order_id, ...asked });
      open.push(client_order_id);
    }
  }
  return messages;
}

/** All that has to be done at least: to read each message, and to find the order that it names. */
function bareLoop(messages: readonly ClientMessage[]): number {
  const known = new Map<string, ClientMessage>();
  let sum = 0;
  for (const message of messages) {
    if (message.type === 'new_order') {
      known.set(message.client_order_id, message);
      sum += message.quantity * message.price!;
    } else if (message.type === 'amend' || message.type === 'cancel') {
      const found = known.get(message.orig_client_order_id);
      if (found !== undefined) known.set(message.client_order_id, found);
      sum += message.type === 'amend' ? message.quantity! : 1;
    }
  }
  return sum;
}

/** The book on its own, told by the order itself what it is about. */
function bookAlone(messages: readonly ClientMessage[]): number {
  let trades = 0;
  const book = new Book({ traded: () => (trades += 1), ended() {}, triggered() {}, amended() {} });
  const known = new Map<string, Order>();
  for (const [id, message] of messages.entries()) {
    if (message.type === 'new_order') {
      const { client_order_id: clientOrderId } = message;
      const order = makeOrder(
        { id, account: id, session: 0, instrument: 0, clientOrderId },
        message,
      );
      known.set(clientOrderId, order);
      book.submit(order);
    } else if (message.type === 'amend' || message.type === 'cancel') {
      const order = known.get(message.orig_client_order_id);
      if (order === undefined) continue;
      known.set(message.client_order_id, order);
      if (order.level === undefined) continue;
      if (message.type === 'cancel') book.remove(order);
      else if (message.quantity! > order.filled) {
        const { price, stopPrice } = order;
        book.amend(order, { price, stopPrice, quantity: message.quantity! }, true);
      }
    }
    book.bids.settle();
    book.asks.settle();
  }
  return trades;
}

/**
 * All of the venue: the session with its numbers, acknowledgements and fills, and market data on one
 * side; of each stream, the last thousand messages are kept to be said again.
 */
function wholeVenue(messages: readonly ClientMessage[]): number {
  const simulated = new SimulatedVenue({
    seed: 1,
    start: 0,
    instruments: [
      {
        instrument: 'X',
        price_unit: 0.01,
        quantity_unit: 1,
        tick: 1,
        lot: 1,
        max_quantity: 1e6,
        band: Infinity,
        corridor: Infinity,
        reference_price: 10_000,
        call_ms: 0,
        random_end_ms: 0,
      },
    ],
    accounts: [{ name: 'A', cash: 0 }],
    sessions: [
      {
        name: 'S',
        password: 'p',
        account: 'A',
        heartbeat_ms: 30_000,
        latency_ms: 0,
        resend_pace_ms: 0,
        resend_depth: 1000,
      },
    ],
    feed: { latency_ms: { a: 0, b: 0 }, heartbeat_ms: 0, replay_depth: 1000 },
    faults: [],
    deeds: [{ at: 0, deed: { do: 'phase', phase: 'continuous' } }],
  });
  let said = 0;
  let updates = 0;
  simulated.subscribe('a', () => void (updates += 1));
  const link = simulated.connect('primary', { receive: () => void (said += 1), dropped() {} })!;
  for (const message of messages) {
    link.send(message);
    simulated.run(0);
  }
  if (said < messages.length || updates === 0) throw new Error('the venue has not answered');
  return said;
}

/** Processor time of this thread: what else the machine does is left out. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Messages through the simulated venue, in one thread. */
export function venue(): Figure[] {
  const messages = makeMessages(MESSAGES);
  const parts = { bareLoop, bookAlone, wholeVenue };
  const times: Record<keyof typeof parts, number[]> = {
    bareLoop: [],
    bookAlone: [],
    wholeVenue: [],
  };
  for (let i = 0; i < ROUNDS; i += 1) {
    for (const name of ['bareLoop', 'bookAlone', 'wholeVenue'] as const) {
      const begin = threadMs();
      parts[name](messages);
      times[name].push(threadMs() - begin);
    }
  }
  const perSecond = (name: keyof typeof parts): number => (MESSAGES / median(times[name])) * 1000;
  const text = (rate: number): string => `${round(rate / 1e6)} M messages/s`;
  const floor = perSecond('bareLoop');
  const compare = (what: string, name: 'bookAlone' | 'wholeVenue'): Figure[] => {
    const rate = perSecond(name);
    return [
      figure(`${what}, against a bare loop`, [text(floor), text(rate)], rate / floor),
      figure(
        `${what}, of 0.5 M messages/s`,
        [text(GOAL_PER_SECOND), text(rate)],
        rate / GOAL_PER_SECOND,
        {
          atLeast: 1,
        },
      ),
    ];
  };
  return [
    ...compare('simulated venue, its book alone', 'bookAlone'),
    ...compare('simulated venue with sessions and market data', 'wholeVenue'),
  ];
}
