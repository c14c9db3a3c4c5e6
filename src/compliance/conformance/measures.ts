/** Measurements of cases, and their comparison with expectations. */
import { stepOf } from '../../trading/session-events.ts';
import { clientOrderId, type VenueRules } from '../../trading/venue.ts';
import { MINUTE } from '../../base/durations.ts';
import { idOf } from '../venue/listing.ts';
import type { Condition, Matcher, Measure } from './case.ts';
import { numberOf } from './numbers.ts';
import { ACCOUNT, type World } from './world.ts';

/** A moment that a step has named. */
export interface Mark {
  readonly time: number;
  readonly lines: number;
  readonly events: number;
  readonly bars: number;
}

/** Marks and observations of a part so far. */
export interface Notes {
  readonly marks: Map<string, Mark>;
  /** Reason for which the last order was denied. */
  denial: string | null;
  /** Whether the session has rejected the last request of the strategy as invalid. */
  isRefused: boolean;
}

export function markOf({ now, exchangeLog, journal, exerciser }: World): Mark {
  return {
    time: now,
    lines: exchangeLog.length,
    events: journal.events.length,
    bars: exerciser.bars.length,
  };
}

type Args<Of> = Extract<Measure, { readonly of: Of }>;
type Measures = {
  readonly [Of in Measure['of']]: (world: World, args: Args<Of>, notes: Notes) => unknown;
};

const MEASURES: Measures = {
  requests: (world, { call, since, side }, notes) =>
    requestsSince(world, call, since, notes).filter(
      ({ params }) => !side || params['side'] === side,
    ).length,
  lead(world, { call, before, since }, notes) {
    const [first] = requestsSince(world, call, since, notes);
    const [second] = requestsSince(world, before, since, notes);
    return (second?.at ?? Infinity) - (first?.at ?? Infinity);
  },
  attempts: ({ exchangeLog }, { call, since }, { marks }) =>
    exchangeLog.slice(marks.get(since ?? '')?.lines ?? 0).filter((line) => {
      const { on } = line.message as { readonly on?: string };
      return line.kind === 'fault' ? on === call : line.kind === 'request' && line.call === call;
    }).length,
  'ordered value': (world) =>
    world
      .requests('POST /order')
      .reduce((sum, { params }) => sum + Number(params['quantity']) * world.sizes.below, 0),
  'client ids': (world) =>
    new Set(world.requests('POST /order').map(({ params }) => params['newClientOrderId'])).size,
  'open orders': ({ exchange }) => exchange.openOrders(ACCOUNT).length,
  'working orders': (world) => world.state()?.working.length,
  'fills received': ({ exerciser }) =>
    exerciser.fills.reduce((sum, { quantity }) => sum + quantity, 0),
  cash: (world) => world.state()?.cash,
  equity: (world) => world.state()?.equity,
  position: (world) => world.state()?.positions[world.symbol] ?? 0,
  holding: (world) => world.held().positions[world.symbol] ?? 0,
  'working fill': (world) => world.state()?.working[0]?.filled,
  'working quantity': (world) => world.state()?.working[0]?.quantity,
  order({ exchange, deploymentId, sizes }, { number, field }) {
    const order = exchange.order(ACCOUNT, clientOrderId(deploymentId, number));
    if (field === 'quantity') return (order?.quantity ?? Number.NaN) * sizes.unit;
    return field === 'price' ? (order?.price ?? Number.NaN) / 100 : order?.[field];
  },
  reasons: (world, { kind, since }, notes) =>
    eventsSince(world, kind, since, notes).map((event) => ('reason' in event ? event.reason : '')),
  events: (world, { kind, since }, notes) => eventsSince(world, kind, since, notes).length,
  refusal: (_world, _args, { isRefused }) => isRefused,
  'worst fill': (world) =>
    Math.max(
      0,
      ...world.events().map((event) => (event.kind === 'order.filled' ? event.price : 0)),
    ),
  alert({ alerts }, { like, since, fromMinute }, { marks }) {
    const from = marks.get(since ?? '')?.time ?? 0;
    const alert = alerts.find(({ time, message }) => time >= from && matches(like, message));
    if (alert === undefined) return null;
    return alert.time - (fromMinute === true ? Math.floor(alert.time / MINUTE) * MINUTE : from);
  },
  alerts: ({ alerts }, { like }) => alerts.filter(({ message }) => matches(like, message)).length,
  time: ({ now }, { since }, { marks }) => now - marks.get(since)!.time,
  end: ({ end }) => (end === undefined ? null : end.verified ? 'verified' : 'unverified'),
  phase(world) {
    const terms = world.journal.events.findLast(({ kind }) => kind === 'venue.terms')?.payload;
    const rules = (terms as VenueRules | undefined) ?? world.journal.rules;
    return rules?.instruments[world.symbol]?.phase ?? 'unknown';
  },
  streaming: ({ exchange }) => exchange.isStreaming(ACCOUNT),
  'pending cancel': (world) => world.state()?.working[0]?.pending_cancel === true,
  bars: (world, { are }) => BARS[are](world),
  'bar count': ({ exerciser }, { since }, { marks }) =>
    exerciser.bars.length - (marks.get(since ?? '')?.bars ?? 0),
  'bars received': (world) => barsOfSession(world).length,
  'follows market'(world, { since }, notes) {
    const count = requestsSince(world, 'POST /order', since, notes).length;
    return count === (notes.denial === 'price_collar_period' ? 0 : 1);
  },
  'last request': (world, { call, since }, notes) =>
    Math.max(...requestsSince(world, call, since, notes).map(({ at }) => at)) -
    notes.marks.get(since)!.time,
  'orders are for second symbol': (world) =>
    world
      .requests('POST /order')
      .every(({ params }) => params['symbol'] === idOf(world.listed(world.symbols[1]))),
  spent: (world) => world.config.cash - (world.state()?.cash ?? Number.NaN),
  unplaced: (world) =>
    world.events().filter(({ kind }) => kind === 'order.submitted').length -
    world.exchange.openOrders(ACCOUNT).length,
  'unverified orders': ({ end }) => end?.orders.filter(({ verified }) => !verified).length,
  'symbol in last bar': (world) =>
    Object.hasOwn(barsOfSession(world).at(-1)?.bars ?? {}, world.symbol),
};

export function measure(world: World, what: Measure, notes: Notes): unknown {
  const take = MEASURES[what.of] as (world: World, args: Measure, notes: Notes) => unknown;
  return take(world, what, notes);
}

export function holds(world: World, { that, is }: Condition, notes: Notes): boolean {
  return isMatch(world, measure(world, that, notes), is);
}

function isMatch(world: World, value: unknown, is: Matcher): boolean {
  if (is === null || typeof is !== 'object') return value === is;
  if ('like' in is) return typeof value === 'string' && matches(is.like, value);
  if ('least' in is) return Number(value) >= numberOf(world, is.least);
  if ('most' in is) return value !== null && Number(value) <= numberOf(world, is.most);
  if (!('near' in is)) return JSON.stringify(value) === JSON.stringify(is);
  const wanted = numberOf(world, is.near);
  const tolerance = Math.max(numberOf(world, is.within ?? 1e-6), 1e-9 * Math.abs(wanted));
  return typeof value === 'number' && Math.abs(value - wanted) <= tolerance;
}

function matches(like: string, text: string): boolean {
  return new RegExp(like).test(text);
}

function requestsSince(world: World, call: string, since: string | undefined, notes: Notes) {
  const from = notes.marks.get(since ?? '')?.time ?? 0;
  return world.requests(call).filter(({ at }) => at >= from);
}

function eventsSince(world: World, kind: string, since: string | undefined, notes: Notes) {
  const from = notes.marks.get(since ?? '')?.events ?? 0;
  return world.journal.events
    .slice(from)
    .filter((event) => event.kind === kind)
    .map(({ payload }) => payload);
}

/** Bars that the session received. */
function barsOfSession({ journal }: World) {
  return journal.events
    .filter(({ kind }) => kind === 'data.bars')
    .map(({ payload }) => stepOf(JSON.stringify(payload)));
}

/** Bars that the exchange made. */
function barsOfExchange(world: World, symbol: string) {
  return world.exchange.klines.of(idOf(world.listed(symbol))).map(([time, kline]) => {
    const [open, high, low, close, volume] = kline.map(Number);
    return { time, open, high, low, close, volume };
  });
}

const BARS: Readonly<Record<Args<'bars'>['are'], (world: World) => boolean>> = {
  genuine: (world) =>
    barsOfSession(world).every(({ time, bars }) =>
      Object.entries(bars).every(([symbol, bar]) => {
        const made = barsOfExchange(world, symbol).find((one) => one.time === time);
        return JSON.stringify({ time, ...bar }) === JSON.stringify(made);
      }),
    ),
  /** Compares all bars from the first one that the session received to the last closed one. */
  complete(world) {
    const received = barsOfSession(world);
    const first = received[0]?.time ?? Infinity;
    return world.symbols.every((symbol) => {
      const made = barsOfExchange(world, symbol).filter(({ time }) => time >= first);
      const own = received.flatMap(({ time, bars }) =>
        bars[symbol] === undefined ? [] : [{ time, ...bars[symbol] }],
      );
      return (
        own.length >= made.length - 1 &&
        own.every((bar, at) => JSON.stringify(bar) === JSON.stringify(made[at]))
      );
    });
  },
  ascending: (world) =>
    barsOfSession(world).every(({ time }, at, all) => at === 0 || time > all[at - 1]!.time),
  'at price': (world) =>
    barsOfSession(world).every(({ bars }) =>
      Object.values(bars).every(({ close }) => close === world.sizes.price),
    ),
  positive: (world) =>
    barsOfSession(world).every(({ bars }) => Object.values(bars).every(({ low }) => low > 0)),
};
