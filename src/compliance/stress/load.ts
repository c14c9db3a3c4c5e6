/** Load on the session code of a bot: so much with each bar, whether or not it keeps up. */
import type { Instrument } from '../../engine/instrument.ts';
import type { Order } from '../../engine/orders.ts';
import { MINUTE } from '../../market/time.ts';
import { SESSION, type BotLine, type World } from '../conformance/world.ts';
import type { VenueLine } from '../venue/simulated-venue.ts';
import type { MessageClass } from './peaks.ts';

/** Counters of the real world, which go on in virtual time. */
export interface Meters {
  /** ms from some moment. */
  readonly now: () => number;
  /** Bytes. */
  readonly rss: () => number;
  /** ms that were spent on collecting garbage so far. */
  readonly gc: () => number;
}

export interface Load {
  /** Messages out: orders, and cancels of those that rest. */
  readonly out: number;
  /** The part of them that cancels. */
  readonly cancels: number;
  /** Orders of them that are to be filled; those that are left rest. */
  readonly fills: number;
  /** Trades of others. */
  readonly trades: number;
  /** Units of an order that is to be filled; the least by default. */
  readonly quantity?: number;
}

/** What came of one bar. */
export interface Beat {
  readonly asked: { readonly orders: number; readonly cancels: number };
  /** Messages of each class that the venue and the bot have exchanged. */
  readonly counts: Readonly<Record<MessageClass, number>>;
  readonly sent: { readonly orders: number; readonly cancels: number };
  readonly denied: Readonly<Record<string, number>>;
  readonly fills: { readonly count: number; readonly value: number; readonly quantity: number };
  /** How long it took to have all of it done, ms of the real world. */
  readonly realMs: number;
  /** Longest from the end of the bar to an alert about it, ms: virtual time, and the real time it took. */
  readonly alertMs: number | null;
}

export interface Durations {
  /** Of a strategy's turn at a bar, all its orders included. */
  readonly decision: number[];
  /** Of one order to the engine, with all checks before the trade. */
  readonly check: number[];
  /** From when the venue is asked for an order until its answer is there, the queue included. */
  readonly ack: number[];
}

export interface Loader {
  readonly durations: Durations;
  beat(load: Load): Promise<Beat>;
  /** Orders that the session has made and the venue has not heard of, nor has the session ended them. */
  lost(): number;
}

/** So many bars' notes are kept: a long run would need memory for them, and be measured with it. */
export function openLoad(world: World, meters: Meters, durations: Durations): Loader {
  const { others, sizes, exerciser } = world;
  const counted = { orders: 0, cancels: 0, in_order: 0, in_md: 0 };
  const totals = { submitted: 0, heard: 0, unsent: 0 };
  let resting: Readonly<Order>[] = [];
  world.venue.listen(({ kind, stream, whose, message }) => {
    const { type, exec_type } = message as { readonly type?: string; readonly exec_type?: string };
    if (stream === 'feed') {
      if (type === 'trade') counted.in_md += 1;
    } else if (stream !== 'orders' || whose !== SESSION) return;
    else if (kind === 'heard' && type === 'new_order') counted.orders += 1;
    else if (kind === 'heard' && type === 'cancel') counted.cancels += 1;
    else if (kind === 'said' && isAboutOrders(type, exec_type)) counted.in_order += 1;
  });

  const act = (
    load: Load,
    side: 'buy' | 'sell',
    asked: { orders: number; cancels: number },
  ): void =>
    exerciser.tell(({ broker, instruments }) => {
      const begun = meters.now();
      resting = resting.filter(({ status }) => status === 'working');
      for (const order of resting.splice(0, load.cancels)) {
        broker.cancel(order);
        asked.cancels += 1;
      }
      const place = (instrument: Instrument, how: object): Readonly<Order> => {
        const at = meters.now();
        const order = broker.order({ instrument, side: 'buy', quantity: sizes.unit, ...how });
        durations.check.push(meters.now() - at);
        asked.orders += 1;
        return order;
      };
      const orders = load.out - asked.cancels;
      const quantity = load.quantity ?? sizes.unit;
      const filled = Math.min(orders, load.fills);
      for (let i = 0; i < filled; i += 1) {
        place(instruments[0]!, { side, quantity });
      }
      for (let i = filled; i < orders; i += 1) {
        const instrument = instruments[i % instruments.length]!;
        const order = place(instrument, { type: 'limit', limit: sizes.below });
        if (order.status === 'working') resting.push(order);
      }
      durations.decision.push(meters.now() - begun);
    });

  return {
    durations,
    async beat(load) {
      const asked = { orders: 0, cancels: 0 };
      const before = { ...counted };
      const notes = { events: world.journal.events.length, alerts: world.alerts.length };
      // What some bars bought, a later one sells.
      const wanted = (load.quantity ?? sizes.unit) * load.fills;
      const position = world.state()?.positions[world.symbol] ?? 0;
      const side = position >= wanted * (1 - 1e-9) ? 'sell' : 'buy';
      // The others take of it, too, as they trade with each other.
      const units = world.units(wanted) + load.trades + 2;
      const there = { price: sizes.price, units };
      if (load.fills > 0) {
        if (side === 'sell') others.quote(world.symbol, there, undefined);
        else others.quote(world.symbol, undefined, there);
      }
      // Within one second, as far as the market goes.
      for (let i = 0; i < load.trades; i += 1) {
        others.print(world.symbols[i % world.symbols.length]!, sizes.price);
      }
      act(load, side, asked);
      const begun = meters.now();
      const end = (Math.floor(world.venue.now / MINUTE) + 1) * MINUTE;
      await world.bar();
      await world.time.pass(2000);
      const realMs = meters.now() - begun;
      if (load.fills > 0) others.quote(world.symbol, undefined, undefined);
      const made = tally(world, notes);
      const alerts = world.alerts.slice(notes.alerts).filter(({ time }) => time >= end);
      const latest = Math.max(...alerts.map(({ time }) => time - end));
      totals.submitted += made.submitted;
      totals.unsent += made.unsent;
      totals.heard += counted.orders - before.orders;
      const sent = {
        orders: counted.orders - before.orders,
        cancels: counted.cancels - before.cancels,
      };
      forget(world);
      return {
        asked,
        sent,
        counts: {
          out: sent.orders + sent.cancels,
          in_order: counted.in_order - before.in_order,
          in_md: counted.in_md - before.in_md,
        },
        denied: made.denied,
        fills: made.fills,
        realMs,
        alertMs: alerts.length === 0 ? null : latest + realMs,
      };
    },
    lost: () => totals.submitted - totals.unsent - totals.heard,
  };
}

/** What a venue says about orders without being asked about them. */
function isAboutOrders(type: string | undefined, exec: string | undefined): boolean {
  return type === 'cancel_reject' || (type === 'execution' && exec !== 'status');
}

/** What the bot's own log has since then. */
function tally(world: World, since: { readonly events: number }) {
  const denied: Record<string, number> = {};
  const fills = { count: 0, value: 0, quantity: 0 };
  let submitted = 0;
  let unsent = 0;
  for (const { kind, payload } of world.journal.events.slice(since.events)) {
    if (kind === 'order.submitted') submitted += 1;
    else if (kind === 'order.denied') {
      const reason = String(payload['reason']);
      denied[reason] = (denied[reason] ?? 0) + 1;
    } else if (kind === 'order.filled') {
      const quantity = Math.abs(Number(payload['quantity']));
      fills.count += 1;
      fills.quantity += quantity;
      fills.value += quantity * Number(payload['price']);
    } else if (kind === 'order.canceled' && payload['reason'] === 'not_at_venue') unsent += 1;
  }
  return { submitted, unsent, denied, fills };
}

/** Notes that nobody reads any more, so that what is measured of memory is the bot's. */
function forget(world: World): void {
  (world.venueLog as VenueLine[]).length = 0;
  (world.botLog as BotLine[]).length = 0;
  (world.journal.events as unknown[]).length = 0;
}
