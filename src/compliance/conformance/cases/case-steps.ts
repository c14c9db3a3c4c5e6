/** Steps that several cases share. */
import type { OrderEvent } from '../../../engine/journal.ts';
import type { Fault } from '../../venue/faults.ts';
import type {
  Ask,
  ExchangeAction,
  Matcher,
  Measure,
  Num,
  Part,
  PlainMeasure,
  Step,
} from '../case.ts';

/** Citations for tests of the matching logic, of downloaded data, and of every algorithm. */
export const MATCHING = '6(2)(a)';
export const DATA = '6(2)(b)';
export const GENERAL = ['5(4)(a)', '5(4)(c)'];

export const expect = (what: string, that: Measure, is: Matcher): Step => ({
  expect: what,
  that,
  is,
});

/** Expects a measure without parameters. */
export const holds = (what: string, of: PlainMeasure, is: Matcher): Step =>
  expect(what, { of }, is);

/** Fails with `what` unless the measure matches in time. */
export const within = (what: string, ms: number, of: PlainMeasure, is: Matcher): Step => ({
  await: { that: { of }, is },
  withinMs: ms,
  expect: what,
});

/** @param options name of the part, or options with its name. */
export const part = (options: string | Omit<Part, 'steps'>, steps: readonly Step[]): Part => ({
  ...(typeof options === 'string' ? { name: options } : options),
  steps,
});

export const wait = (ms: number): Step => ({ wait: ms });

export const bars = (count: number, price?: Num): Step => ({
  bars: count,
  ...(price !== undefined && { price }),
});

export const act = (...asks: readonly Ask[]): Step => ({ act: asks });

/** An order to buy `share` of the usual quantity below the market price. */
export const bid = (share = 1): Ask => ({
  side: 'buy',
  type: 'limit',
  limit: 'below',
  quantity: { of: 'quantity', times: share },
});

/** The bot places a resting order for `share` of the usual quantity. */
export const rest = (share = 1): Step => act(bid(share));

export const CANCEL: Step = { act: [], cancel: true };

/** The bot buys what another participant offers at the market price. */
export const BUY: readonly Step[] = [
  { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity', more: 1 },
  act({ side: 'buy', quantity: 'quantity' }),
  { others: 'none' },
];

/** Another participant sells `share` of the usual quantity to the bids of the bot. */
export const fill = (share = 1): Step => ({
  others: 'take',
  side: 'sell',
  price: 'below',
  quantity: { of: 'quantity', times: share },
});

export const exchange = (...actions: readonly ExchangeAction[]): Step => ({ exchange: actions });

export const fault = (
  on: string,
  action: Fault['action'],
  more: Omit<Fault, 'on' | 'action'> = {},
): Step => exchange({ do: 'fault', on, action, ...more });

/** A request that is lost without an error. */
export const LOST = { kind: 'lost_before', isSilent: true } as const;

/** Expects a number of requests of a call. */
export const requests = (what: string, call: string, is: Matcher, since?: string): Step =>
  expect(what, { of: 'requests', call, ...(since && { since }) }, is);

export const sent = (what: string, is: Matcher, since?: string): Step =>
  requests(what, 'POST /order', is, since);

/** Expects `call` to precede `before` by a time in ms. */
export const lead = (
  what: string,
  call: string,
  before: string,
  is: Matcher,
  since?: string,
): Step => expect(what, { of: 'lead', call, before, ...(since && { since }) }, is);

/** Expects a field of the order at the exchange; orders are numbered from 1. */
export const order = (
  what: string,
  number: number,
  field: 'status' | 'quantity' | 'price' | 'side',
  is: Matcher,
): Step => expect(what, { of: 'order', number, field }, is);

export const open = (what: string, is: Matcher): Step => holds(what, 'open orders', is);

export const working = (what: string, is: Matcher): Step => holds(what, 'working orders', is);

/** Expects a number of order events. */
export const events = (what: string, kind: OrderEvent['kind'], is: Matcher): Step =>
  expect(what, { of: 'events', kind }, is);

export const reasons = (
  what: string,
  kind: OrderEvent['kind'],
  is: readonly string[],
  since?: string,
): Step => expect(what, { of: 'reasons', kind, ...(since && { since }) }, is);

/** Expects a number of alerts whose message matches the regular expression `like`. */
export const alerts = (what: string, like: string, is: Matcher): Step =>
  expect(what, { of: 'alerts', like }, is);

/** Expects a position of `share` of the usual quantity. */
export const position = (what: string, share: number): Step =>
  holds(what, 'position', { near: { of: 'quantity', times: share } });

export const alerted = (what: string, like: string, since: string): Step =>
  expect(what, { of: 'alert', like, since }, { least: 0 });

export const mark = (name: string): Step => ({ mark: name });
