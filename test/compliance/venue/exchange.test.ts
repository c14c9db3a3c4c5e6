import { describe, expect, it, test } from 'vitest';
import type { OrderTerms } from '../../../src/compliance/venue/session/order.ts';
import type { Phase } from '../../../src/compliance/venue/session/phases.ts';
import { gist, instrument, limit, logOn, newVenue, now, START } from './world.ts';

const refused: readonly (readonly [reason: string, terms: Partial<OrderTerms>, phase?: Phase])[] = [
  ['tick', { price: 10_001 }],
  ['tick', { price: Number.NaN }],
  ['tick', { price: -5 }],
  ['tick', { order_type: 'stop_limit', stop_price: 9_999 }],
  ['lot', { quantity: 15 }],
  ['lot', { quantity: 0 }],
  ['max_quantity', { quantity: 10_010 }],
  ['price_band', { price: 12_005 }],
  ['order_type', { order_type: 'peg' as 'limit' }],
  ['order_type', { order_type: 'market', post_only: true }],
  ['expired', { time_in_force: 'gtd', expire_at: START }],
  ['post_only_would_cross', { post_only: true, price: 10_100 }],
  ['phase', {}, 'halt'],
  ['phase', {}, 'closed'],
  ['phase', { time_in_force: 'ioc' }, 'opening_auction'],
  ['phase', { post_only: true, price: 9_900 }, 'volatility_auction'],
];

test.each(refused.map(([reason, terms, phase]) => ({ reason, terms, phase })))(
  'an order is refused for $reason: $terms in phase $phase',
  ({ reason, terms, phase }) => {
    const venue = newVenue();
    const { heard, send } = logOn(venue);
    now(venue, limit('maker', 'm1', 'sell', 100, 10_050));
    if (phase !== undefined) now(venue, { do: 'phase', phase });
    send(limit('bot', 'b1', 'buy', 10, 10_000, terms));
    venue.run(venue.now + 5);
    expect(gist(heard)).toEqual([`rejected b1 ${reason}`]);
    expect(venue.openOrders('bot-1')).toEqual([]);
  },
);

it('chains the names of an amended order, and refuses what is unknown, too late or named before', () => {
  const venue = newVenue();
  const { client, heard, send } = logOn(venue);
  const amend = (id: string, original: string, more: object): void =>
    client.send({ type: 'amend', client_order_id: id, orig_client_order_id: original, ...more });
  const cancel = (id: string, original: string): void =>
    client.send({ type: 'cancel', client_order_id: id, orig_client_order_id: original });
  send(limit('bot', 'b1', 'buy', 100, 10_000));
  send(limit('bot', 'b1', 'buy', 100, 10_000));
  now(venue);
  venue.run(venue.now + 5);
  now(venue, limit('taker', 't1', 'sell', 30, 10_000));
  amend('b2', 'b1', { quantity: 30 });
  amend('b3', 'b1', { quantity: 60 });
  amend('b4', 'b3', { price: 9_900 });
  cancel('b5', 'b1');
  cancel('b6', 'b4');
  cancel('b7', 'b4');
  amend('b8', 'b9', {});
  venue.run(venue.now + 5);
  expect(gist(heard)).toEqual([
    'new b1',
    'rejected b1 duplicate_client_order_id',
    'trade b1 30',
    'refused b2 quantity_below_filled',
    'replaced b3',
    'replaced b4',
    'refused b5 unknown_order',
    'canceled b6 requested',
    'refused b7 too_late',
    'refused b8 unknown_order',
  ]);
  expect(heard.at(-3)).toMatchObject({ orig_client_order_id: 'b4', filled: 30, leaves: 0 });
});

describe('phases', () => {
  it('gather orders for an auction whose end is random by the seed, and trade at its price', () => {
    const endOf = (seed: number): number => {
      const instruments = [instrument('X', { random_end_ms: 30_000 })];
      const deeds = [
        { at: START, deed: { do: 'phase', phase: 'opening_auction' } as const },
        { at: START + 60_000, deed: { do: 'phase', phase: 'continuous' } as const },
      ];
      const venue = newVenue({ seed, instruments, deeds });
      let end = 0;
      const fed: object[] = [];
      venue.subscribe('a', (message) => {
        fed.push(message);
        if (message.type === 'trade') end = message.time;
      });
      const { heard, send } = logOn(venue);
      send(limit('bot', 'b1', 'buy', 50, 10_100));
      venue.run(venue.now + 5);
      now(venue, limit('maker', 'm1', 'sell', 30, 9_900));
      venue.run(START + 60_000 - 1);
      expect(gist(heard)).toEqual(['new b1']);
      const indicative = { type: 'indicative', price: 10_100, quantity: 30, surplus: 20 };
      expect(fed.at(-1)).toMatchObject(indicative);
      venue.run(START + 90_001);
      expect(heard.at(-1)).toMatchObject({ exec_type: 'trade', last_price: 10_100, filled: 30 });
      expect(venue.instrument('X').phase).toBe('continuous');
      return end;
    };
    const ends = [1, 1, 2, 3].map(endOf);
    expect(ends[0]).toBe(ends[1]);
    expect(new Set(ends).size).toBe(3);
    for (const end of ends) expect(end - START - 60_000).toBeLessThan(30_000);
  });

  it('are broken off for an auction where the next trade would be too far from the last', () => {
    const instruments = [instrument('X', { corridor: 0.02 })];
    const venue = newVenue({ instruments });
    const { heard, send } = logOn(venue);
    now(venue, limit('maker', 'm1', 'sell', 10, 10_100), limit('maker', 'm2', 'sell', 10, 10_500));
    send(limit('bot', 'b1', 'buy', 30, 10_600));
    venue.run(venue.now + 5);
    expect(gist(heard)).toEqual(['new b1', 'trade b1 10']);
    expect(venue.instrument('X').phase).toBe('volatility_auction');
    venue.run(venue.now + 60_000);
    expect(gist(heard)).toEqual(['new b1', 'trade b1 10', 'trade b1 10']);
    expect(heard.at(-1)).toMatchObject({
      last_price: 10_600,
      leaves: 10,
      status: 'partially_filled',
    });
    expect(venue.instrument('X').phase).toBe('continuous');
  });

  it('keep orders through a halt, in which they can be canceled, and end the day at the close', () => {
    const venue = newVenue();
    const { client, heard, send } = logOn(venue);
    send(limit('bot', 'b1', 'buy', 10, 9_000));
    send(limit('bot', 'b2', 'buy', 10, 9_000));
    send(limit('bot', 'b3', 'buy', 10, 9_000, { time_in_force: 'gtc' }));
    const tomorrow = START + 86_400_000;
    send(limit('bot', 'b4', 'buy', 10, 9_000, { time_in_force: 'gtd', expire_at: tomorrow }));
    venue.run(venue.now + 5);
    now(venue, { do: 'phase', phase: 'halt' });
    client.send({ type: 'cancel', client_order_id: 'b5', orig_client_order_id: 'b1' });
    venue.run(venue.now + 5);
    now(venue, { do: 'phase', phase: 'continuous' }, { do: 'phase', phase: 'closing_auction' });
    now(venue, { do: 'phase', phase: 'closed' });
    venue.run(tomorrow);
    venue.run(tomorrow + 5);
    expect(gist(heard).slice(4)).toEqual([
      'canceled b5 requested',
      'expired b2 day_ended',
      'expired b4 good_till_date',
    ]);
    expect(venue.openOrders('bot-1').map((order) => order.clientOrderId)).toEqual(['b3']);
  });
});

it('takes back and corrects trades: orders, holdings and the feed follow', () => {
  const venue = newVenue();
  const { heard, send } = logOn(venue);
  const fed: unknown[] = [];
  venue.subscribe('a', ({ type }) => fed.push(type));
  now(venue, limit('maker', 'm1', 'sell', 100, 10_000));
  send(limit('bot', 'b1', 'buy', 20, 10_000));
  send(limit('bot', 'b2', 'buy', 30, 10_000));
  venue.run(venue.now + 5);
  expect(venue.holdings('bot')).toEqual({ cash: 99_500, positions: { X: 550, Y: 0 } });
  fed.length = 0;
  now(venue, { do: 'bust', trade_id: 1 });
  now(venue, { do: 'correct', trade_id: 2, price: 9_000, quantity: 10 });
  venue.run(venue.now + 5);
  expect(venue.holdings('bot')).toEqual({ cash: 99_910, positions: { X: 510, Y: 0 } });
  expect(venue.holdings('maker')).toEqual({ cash: 90, positions: { X: -10, Y: 0 } });
  expect(fed).toEqual(['trade_bust', 'trade_bust', 'trade']);
  const [bust, correction] = heard.slice(-2);
  const first = heard[1];
  expect(bust).toMatchObject({ exec_type: 'trade_bust', filled: 0, value: 0, status: 'canceled' });
  expect(bust).toMatchObject({ ref_exec_id: (first as { exec_id: number }).exec_id });
  expect(correction).toMatchObject({ exec_type: 'trade_correct', filled: 10, value: 90_000 });
});

it('cancels as a whole what it is asked for, and says what it did not reach', () => {
  const venue = newVenue();
  const { client, heard, send } = logOn(venue);
  send(limit('bot', 'b1', 'buy', 10, 9_000));
  send(limit('bot', 'b2', 'sell', 10, 11_000));
  send(limit('bot', 'b3', 'buy', 10, 9_000, { order_type: 'stop_limit', stop_price: 11_000 }));
  send({ ...limit('bot', 'b4', 'buy', 10, 9_000), instrument: 'Y' });
  venue.run(venue.now + 5);
  now(venue, { do: 'pin', as: 'bot', client_order_id: 'b3', is_pinned: true });
  heard.length = 0;
  const ask = (id: string, scope: object): void =>
    client.send({ type: 'mass_cancel', client_order_id: id, ...scope });
  ask('m1', { instrument: 'X', side: 'buy' });
  ask('m2', { instrument: 'Z' });
  ask('m3', {});
  venue.run(venue.now + 5);
  const reports = heard.filter(({ type }) => type === 'mass_cancel_report');
  expect(reports).toMatchObject([
    { canceled: 1, survivors: ['b3'] },
    { canceled: 0, reason: 'unknown_instrument' },
    { canceled: 2, survivors: ['b3'] },
  ]);
  expect(gist(heard).filter((line) => line.startsWith('canceled'))).toEqual([
    'canceled b1 mass_cancel',
    'canceled b2 mass_cancel',
    'canceled b4 mass_cancel',
  ]);
});

it('changes terms amid trading, cancels what does not keep to them, and takes instruments away', () => {
  const venue = newVenue();
  const { heard, send } = logOn(venue);
  send(limit('bot', 'b1', 'buy', 10, 9_005));
  send(limit('bot', 'b2', 'buy', 10, 9_000));
  venue.run(venue.now + 5);
  heard.length = 0;
  now(venue, { do: 'set_terms', instrument: 'X', terms: { tick: 50 } });
  venue.run(venue.now + 5);
  send(limit('bot', 'b3', 'buy', 10, 9_005));
  venue.run(venue.now + 5);
  now(
    venue,
    { do: 'end_order', as: 'bot', client_order_id: 'b2' },
    { do: 'delete', instrument: 'X' },
  );
  venue.run(venue.now + 5);
  send(limit('bot', 'b4', 'buy', 10, 9_000));
  venue.run(venue.now + 5);
  expect(gist(heard)).toEqual([
    'canceled b1 reference_data',
    'reference_data',
    'rejected b3 tick',
    'canceled b2 venue_operator',
    'reference_data',
    'rejected b4 unknown_instrument',
  ]);
});
