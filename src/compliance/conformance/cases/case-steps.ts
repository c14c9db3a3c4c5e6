/** Steps that several cases share. */
import type { OrderEvent } from '../../../engine/journal.ts';
import type { Ask, ExchangeDeed, Matcher, Measure, Num, Step } from '../case.ts';

export const expect = (what: string, that: Measure, is: Matcher): Step => ({
  expect: what,
  that,
  is,
});

export const wait = (ms: number): Step => ({ wait: ms });

export const bars = (count: number, price?: Num): Step => ({
  bars: count,
  ...(price !== undefined && { price }),
});

export const act = (...asks: readonly Ask[]): Step => ({ act: asks });

/** An order to buy below the market, of a share of the usual quantity. */
export const bid = (share = 1): Ask => ({
  side: 'buy',
  type: 'limit',
  limit: 'below',
  quantity: { of: 'quantity', times: share },
});

/** The bot places an order that rests. */
export const rest = (share = 1): Step => act(bid(share));

export const CANCEL: Step = { act: [], cancel: true };

/** The bot buys what another participant offers at the market price. */
export const BUY: readonly Step[] = [
  { others: 'quote', side: 'sell', price: 'price', quantity: 'quantity', more: 1 },
  act({ side: 'buy', quantity: 'quantity' }),
  { others: 'none' },
];

/** Another participant fills a share of what the bot bids. */
export const fill = (share = 1): Step => ({
  others: 'take',
  side: 'sell',
  price: 'below',
  quantity: { of: 'quantity', times: share },
});

export const exchange = (...deeds: readonly ExchangeDeed[]): Step => ({ exchange: deeds });

export const sent = (what: string, is: Matcher, since?: string): Step =>
  expect(what, { of: 'requests', call: 'POST /order', ...(since && { since }) }, is);

export const open = (what: string, is: Matcher): Step => expect(what, { of: 'open orders' }, is);

export const working = (what: string, is: Matcher): Step =>
  expect(what, { of: 'working orders' }, is);

export const reasons = (
  what: string,
  kind: OrderEvent['kind'],
  is: readonly string[],
  since?: string,
): Step => expect(what, { of: 'reasons', kind, ...(since && { since }) }, is);

/** Position as a share of the usual quantity. */
export const position = (what: string, share: number): Step =>
  expect(what, { of: 'position' }, { near: { of: 'quantity', times: share } });

export const alerted = (what: string, like: string, since: string): Step =>
  expect(what, { of: 'alert', like, since }, { least: 0 });

export const mark = (name: string): Step => ({ mark: name });
