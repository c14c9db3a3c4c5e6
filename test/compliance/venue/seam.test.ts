import { describe, expect, it } from 'vitest';
import { SimulatedVenueSeam } from '../../../src/compliance/venue/seam.ts';
import type { SimulatedVenue } from '../../../src/compliance/venue/simulated-venue.ts';
import { beginTranscript } from '../../../src/compliance/venue/transcript.ts';
import { defineStrategy } from '../../../src/engine/strategy.ts';
import { reconcileHoldings, reconcileOrders } from '../../../src/trading/reconcile.ts';
import { VenueSession } from '../../../src/trading/venue-session.ts';
import { clientOrderId, type VenueOrder, type VenueReport } from '../../../src/trading/venue.ts';
import { ENGINE_DEFAULTS } from '../../engine/market.ts';
import { fault, limit, newVenue, now, START } from './world.ts';

const DEPLOYMENT = '01980000-0000-7000-8000-000000000001';

function seamOf(venue: SimulatedVenue, password = 'secret'): SimulatedVenueSeam {
  return new SimulatedVenueSeam({
    venue,
    session: 'bot-1',
    password,
    deploymentId: DEPLOYMENT,
    cancelOnDisconnect: false,
    selfTrade: 'cancel_newest',
    answerMs: 5000,
  });
}

function order(number: number, more: Partial<VenueOrder> = {}): VenueOrder {
  return {
    order: number,
    client_order_id: clientOrderId(DEPLOYMENT, number),
    symbol: 'X',
    side: 'buy',
    type: 'limit',
    time_in_force: 'gtc',
    quantity: 3,
    limit: 100.05,
    ...more,
  };
}

describe('the simulated venue as a session trades at it', () => {
  it('says what it takes, in units and currency', async () => {
    const seam = seamOf(newVenue());
    const rules = { step: 1, min_quantity: 1, min_value: 0, tick: 0.05 };
    expect(await seam.rules()).toEqual({
      types: ['market', 'limit', 'stop', 'stop_limit'],
      instruments: { X: rules, Y: rules },
    });
    expect(await seam.account()).toEqual({ cash: 100_000, balances: { X: 50, Y: 0 } });
    await seam.close();
  });

  it('works orders, tells what becomes of them, and cancels them', async () => {
    const venue = newVenue();
    const seam = seamOf(venue);
    now(venue, limit('maker', 'm1', 'sell', 20, 10_000));
    const ended = new AbortController();
    const heard: VenueReport[] = [];
    const reading = (async () => {
      for await (const report of seam.reports(ended.signal)) heard.push(report);
    })();
    const both = await Promise.all([seam.place(order(1)), seam.place(order(2, { limit: 90.01 }))]);
    expect(both).toMatchObject([
      { order: 1, status: 'open', filled: 0 },
      { order: 2, status: 'rejected', reason: 'tick' },
    ]);
    const partly = { order: 1, status: 'open', filled: 2, cost: 200 };
    expect(await seam.find(order(1))).toMatchObject(partly);
    expect(await seam.openOrders()).toEqual([
      { client_order_id: clientOrderId(DEPLOYMENT, 1), symbol: 'X' },
    ]);
    expect(await seam.cancel(order(1))).toMatchObject({ ...partly, status: 'canceled' });
    expect(await seam.cancel(order(1))).toMatchObject({ ...partly, status: 'canceled' });
    expect(await seam.cancel(order(9))).toMatchObject({ order: 9, reason: 'not_at_venue' });
    expect(await seam.find(order(9))).toBeUndefined();
    expect(await seam.account()).toMatchObject({ cash: 99_800, balances: { X: 52 } });
    ended.abort();
    await reading;
    expect(heard.map(({ order: number, status, filled }) => [number, status, filled])).toEqual(
      expect.arrayContaining([
        [1, 'open', 0],
        [1, 'open', 2],
        [1, 'canceled', 2],
      ]),
    );
  });

  it('does not know the outcome when no answer comes, and makes no second order of it', async () => {
    const venue = newVenue({
      faults: [
        fault('orders', { kind: 'suppress' }, { type: 'new', count: 1 }),
        fault('inbound', { kind: 'drop' }, { type: 'new_order', skip: 1, count: 1 }),
      ],
    });
    const seam = seamOf(venue);
    for (const number of [1, 2]) {
      await expect(seam.place(order(number))).rejects.toMatchObject({
        code: 'exchange_unavailable',
      });
      expect(await seam.place(order(number))).toMatchObject({ order: number, status: 'open' });
    }
    expect(venue.now - START).toBeLessThan(10_100);
    expect(venue.openOrders('bot-1').map((one) => one.clientOrderId)).toEqual(
      [1, 2].map((number) => clientOrderId(DEPLOYMENT, number)),
    );
  });

  it('is not to be had with a wrong password', async () => {
    const seam = seamOf(newVenue(), 'wrong');
    await expect(seam.rules()).rejects.toMatchObject({ code: 'exchange_unavailable' });
  });

  it('finds its orders again in another process, whose numbers begin anew', async () => {
    const venue = newVenue();
    const before = seamOf(venue);
    await before.place(order(1));
    await before.place(order(2));
    now(venue, { do: 'cut', session: 'bot-1' });
    now(venue, limit('taker', 't1', 'sell', 30, 10_005));
    void before.close();
    const after = seamOf(venue);
    const { reports, orphans } = await reconcileOrders(after, DEPLOYMENT, [order(1), order(3)]);
    expect(reports).toMatchObject([
      { order: 1, status: 'filled', filled: 3 },
      { order: 3, status: 'canceled', reason: 'not_at_venue' },
    ]);
    expect(orphans).toMatchObject([{ order: 2 }]);
  });
});

it('a session trades at it, holds what it says, and leaves the same transcript each time', async () => {
  const run = async (): Promise<string> => {
    const venue = newVenue();
    const transcript = beginTranscript(venue);
    const seam = seamOf(venue);
    const strategy = defineStrategy({
      name: 'scripted',
      description: 'Buys at each bar, and sells half of it at the third.',
      params: {},
      create: ({ broker, instruments: [x] }) => {
        let bars = 0;
        return {
          onBar() {
            bars += 1;
            const side = bars === 3 ? 'sell' : 'buy';
            broker.order({ instrument: x!, side, quantity: 2, type: 'market', timeInForce: 'ioc' });
          },
        };
      },
    });
    const session = new VenueSession({
      deployment_id: DEPLOYMENT,
      rules: await seam.rules(),
      symbols: ['X'],
      strategy,
      params: {},
      config: { ...ENGINE_DEFAULTS, cash: 10_000 },
      timeoutMs: 10_000,
    });
    const bar = { open: 100, high: 100, low: 100, close: 100, volume: 1 };
    now(
      venue,
      limit('maker', 'm1', 'sell', 1000, 10_000),
      limit('maker', 'm2', 'buy', 1000, 9_990),
    );
    for (let step = 0; step < 3; step += 1) {
      session.push({ time: START + step * 60_000, bars: { X: bar } });
      for (const request of session.outbox()) {
        if ('place' in request) session.report(await seam.place(request.place));
      }
      venue.run(START + (step + 1) * 60_000);
      for (const working of session.state().working) {
        session.report((await seam.find(order(working.order)))!);
      }
    }
    const { positions, cash, working } = session.state();
    expect([positions, cash, working]).toEqual([{ X: 2 }, 10_000 - 400 + 199.8, []]);
    expect(await reconcileHoldings(seam, { positions, cash })).toEqual([]);
    return transcript.hash();
  };
  expect(await run()).toBe(await run());
});
