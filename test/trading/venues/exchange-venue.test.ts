import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { inVirtualTime } from '../../../src/compliance/conformance/virtual-time.ts';
import { Agenda } from '../../../src/compliance/venue/agenda.ts';
import type { FaultAction } from '../../../src/compliance/venue/faults.ts';
import { connectInProcess, limitEndpoints } from '../../../src/compliance/venue/in-process.ts';
import { MINUTE } from '../../../src/base/durations.ts';
import { openExchangeVenue } from '../../../src/trading/venues/exchange-venue.ts';
import { phaseOf, stepOf } from '../../../src/trading/venues/venue-markets.ts';
import type { ExchangeVenueOptions } from '../../../src/trading/venues/venue-client.ts';
import { reconcileHoldings, reconcileOrders } from '../../../src/trading/venues/reconcile.ts';
import { clientOrderId } from '../../../src/trading/venue.ts';
import type { Venue, VenueOrder, VenueReport } from '../../../src/trading/venue.ts';
import { TestExchange } from '../test-exchange.ts';

// ccxt keeps the clock that it finds when it is loaded, which must not be virtual.
createRequire(import.meta.url)('ccxt');

const BTC = 'BTC/USDT';
const ETH = 'ETH/USDT';
const DEPLOYMENT = '01980000-0000-7000-8000-000000000001';
const CREDENTIALS = { apiKey: 'canary+key/of-an-account', secret: 'canary"secret+of/an=account' };
const START = Date.UTC(2026, 0, 5, 9);

/** The clock of the exchange, which differs from that of its clients. */
class SkewedClock {
  skewMs = 3_600_000;
  readonly #agenda: Agenda;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  get now(): number {
    return this.#agenda.now + this.skewMs;
  }

  wake(time: number, task: () => void): void {
    this.#agenda.wake(time - this.skewMs, task);
  }
}

interface World {
  readonly exchange: TestExchange;
  readonly clock: SkewedClock;
  readonly credentialsDir: string;
  readonly troubles: string[];
  /** Aborted when the test ends. */
  readonly signal: AbortSignal;
  /** Opens a venue as another process would. */
  readonly open: (options?: Partial<ExchangeVenueOptions>) => Promise<Venue>;
}

/** Plays a test in virtual time, which passes whenever the test waits. */
async function inWorld(play: (world: World) => Promise<void>): Promise<void> {
  onTestFinished(limitEndpoints());
  const agenda = new Agenda(START);
  await inVirtualTime(agenda, Math.random, async (time) => {
    let isOver = false;
    const played = play(newWorld(new SkewedClock(agenda))).finally(() => (isOver = true));
    played.catch(() => {});
    expect(await time.until(() => isOver, 60 * MINUTE)).toBe(true);
    await played;
  });
}

function newWorld(clock: SkewedClock): World {
  const symbols = [BTC, ETH, 'BNB/USDT', 'BTC/EUR', 'USDT/EUR'];
  const exchange = new TestExchange({ symbols, clock, credentials: CREDENTIALS });
  for (const [asset, amount] of [
    ['USDT', 10_000],
    ['BTC', 2],
    ['BNB', 5],
  ] as const) {
    exchange.setBalance(asset, amount);
  }
  exchange.setPrice(BTC, 100);
  exchange.setPrice(ETH, 50);
  const credentialsDir = mkdtempSync(join(tmpdir(), 'service-local-credentials-'));
  for (const [name, text] of Object.entries(CREDENTIALS)) {
    writeFileSync(join(credentialsDir, name), `${text}\n`);
  }
  const ended = new AbortController();
  const troubles: string[] = [];
  onTestFinished(() => {
    ended.abort(new Error('the test has ended'));
    rmSync(credentialsDir, { recursive: true });
  });
  return {
    exchange,
    clock,
    credentialsDir,
    troubles,
    signal: ended.signal,
    open: (options = {}) =>
      openExchangeVenue({
        name: 'local',
        definition: exchange.definition,
        credentialsDir,
        deploymentId: DEPLOYMENT,
        symbols: [BTC, ETH],
        currency: 'USDT',
        account: 'cash',
        signal: ended.signal,
        onTrouble: (message) => void troubles.push(message),
        settleMs: 250,
        timeoutMs: 1000,
        connect: (client) => connectInProcess(client, exchange, () => 1),
        ...options,
      }),
  };
}

function order(number: number, more: Partial<VenueOrder> = {}): VenueOrder {
  return {
    order: number,
    client_order_id: clientOrderId(DEPLOYMENT, number),
    symbol: BTC,
    side: 'buy',
    type: 'market',
    time_in_force: 'gtc',
    quantity: 1,
    ...more,
  };
}

const limit = (number: number, price: number, more: Partial<VenueOrder> = {}): VenueOrder =>
  order(number, { type: 'limit', limit: price, ...more });

/** Resolves with the first report that matches. */
async function until(
  reports: AsyncIterator<VenueReport>,
  isLast: (report: VenueReport) => boolean,
): Promise<VenueReport> {
  for (;;) {
    const { done, value } = await reports.next();
    assert(done !== true);
    if (isLast(value)) return value;
  }
}

const reportsOf = (venue: Venue, signal: AbortSignal): AsyncIterator<VenueReport> =>
  venue.reports(signal)[Symbol.asyncIterator]();

describe('ExchangeVenue', () => {
  it('reports changed market rules and halted instruments', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open({ termsMs: 20 });
      const over = new AbortController();
      const terms = venue.terms(over.signal)[Symbol.asyncIterator]();
      const first = await terms.next();
      expect(first.value).toEqual(await venue.rules());
      exchange.setPhase(BTC, 'halt');
      const { value } = await terms.next();
      expect(value).toMatchObject({
        instruments: { [BTC]: { phase: 'halted' }, [ETH]: { phase: 'open' } },
      });
      exchange.setPhase(BTC, 'continuous');
      expect((await terms.next()).value).toEqual(first.value);
      over.abort();
      expect(await terms.next()).toEqual({ done: true, value: undefined });
    }));

  it('still finds, counts and cancels orders of a delisted instrument', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open({ termsMs: 20 });
      await venue.place(limit(1, 50));
      await venue.place(limit(2, 40, { symbol: ETH, quantity: 2 }));
      exchange.fill(clientOrderId(DEPLOYMENT, 1), 0.5);
      const over = new AbortController();
      exchange.setListed(BTC, false);
      const terms = venue.terms(over.signal)[Symbol.asyncIterator]();
      const { value } = await terms.next();
      expect(value).toMatchObject({ instruments: { [ETH]: { phase: 'open' } } });
      expect(Object.keys(value!.instruments)).toEqual([ETH]);
      // Each request uses up rate limit of the exchange.
      const all = (): number =>
        exchange.requests.filter(({ query }) => /BTCUSDT.+ETHUSDT/.test(query)).length;
      const [before, count] = [all(), exchange.requests.length];
      const changed = terms.next();
      await exchange.until(() => exchange.requests.length >= count + 4);
      expect(all()).toBe(before);
      exchange.setListed(BTC, true);
      expect(Object.keys((await changed).value!.instruments)).toEqual([BTC, ETH]);
      exchange.setListed(BTC, false);
      expect(Object.keys((await terms.next()).value!.instruments)).toEqual([ETH]);
      over.abort();
      const client_order_id = clientOrderId(DEPLOYMENT, 2);
      expect(await venue.openOrders()).toMatchObject([{ symbol: BTC }, { client_order_id }]);
      expect((await venue.account()).balances).toMatchObject({ [BTC]: 2.5 });
      expect(await venue.find(order(1))).toMatchObject({ status: 'open', filled: 0.5 });
      expect(await venue.cancel(order(1))).toMatchObject({ status: 'canceled', filled: 0.5 });
      const body = { code: -1121, msg: 'Invalid symbol.' };
      const unknown: FaultAction = { kind: 'status', status: 400, body };
      exchange.fail('GET /openOrders', unknown);
      expect(await venue.openOrders()).toMatchObject([{ client_order_id }]);
      exchange.fail('GET /order', unknown);
      expect(await venue.find(order(3))).toBeUndefined();
    }));

  it('reports its rules and holdings', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      const rules = { step: 0.0001, min_quantity: 0.0001, min_value: 5, tick: 0.01, phase: 'open' };
      expect(await venue.rules()).toEqual({
        types: ['market', 'limit', 'stop', 'stop_limit'],
        instruments: { [BTC]: rules, [ETH]: rules },
      });
      await venue.place(limit(1, 50));
      expect(await venue.account()).toEqual({ balances: { [BTC]: 2, [ETH]: 0 }, cash: 10_000 });
      exchange.open({ clientOrderId: 'someone-else', side: 'sell' }, BTC, 200);
      const id = clientOrderId(DEPLOYMENT, 1);
      expect(await venue.openOrders()).toEqual([{ order: 1, client_order_id: id, symbol: BTC }]);
      expect(exchange.asked).not.toContain('GET /capital/config/getall');
    }));

  it('opens for an instrument that is not trading, and reports it', () =>
    inWorld(async ({ exchange, troubles, open }) => {
      exchange.open({ clientOrderId: clientOrderId(DEPLOYMENT, 1), side: 'sell' }, BTC, 200);
      exchange.setPhase(BTC, 'halt');
      const venue = await open();
      expect(troubles).toEqual(['BTC/USDT is currently not trading']);
      expect(await venue.cancel(order(1))).toMatchObject({ status: 'canceled' });
    }));

  it('rejects bots and exchanges that it cannot serve', () =>
    inWorld(async ({ exchange, credentialsDir, open }) => {
      await expect(open({ account: 'margin' })).rejects.toMatchObject({
        code: 'invalid_spec',
        problems: [{ code: 'venue_not_supported', pointer: '/spec/engine/account' }],
      });
      await expect(open({ symbols: [BTC, 'BTC/EUR', 'X/USDT'] })).rejects.toMatchObject({
        code: 'invalid_spec',
        problems: [
          { message: 'BTC/EUR is quoted in EUR, and the account is in USDT' },
          { message: 'local has no symbol "X/USDT"', pointer: '/spec/universe/symbols/2' },
        ],
      });
      const market = { symbol: 'BTCUSDT', baseAsset: 'BTC', quoteAsset: 'USDT', status: 'TRADING' };
      const body = { symbols: [{ ...market, isSpotTradingAllowed: true, filters: [] }] };
      exchange.fail('GET /exchangeInfo', { kind: 'status', status: 200, body });
      await expect(open({ symbols: [BTC] })).rejects.toMatchObject({
        problems: [{ message: `local does not report the quantity and price steps of ${BTC}` }],
      });
      for (const ccxt of ['okx', 'binanceus']) {
        const definition = { ...exchange.definition, ccxt };
        const reason = 'venue_not_supported';
        await expect(open({ definition })).rejects.toMatchObject({ code: 'conflict', reason });
      }
      writeFileSync(join(credentialsDir, 'secret'), 'another-secret');
      await expect(open()).rejects.toMatchObject({
        code: 'conflict',
        reason: 'credentials_refused',
      });
      rmSync(join(credentialsDir, 'secret'));
      await expect(open()).rejects.toMatchObject({ code: 'file_not_found' });
    }));

  it('places orders of every type', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      const seller = { side: 'sell', quantity: 0.1 } as const;
      const placed = [
        order(1, { quantity: 3 * 0.1 }),
        limit(2, 90.25),
        limit(3, 90, { time_in_force: 'ioc' }),
        limit(4, 101, { time_in_force: 'fok' }),
        limit(5, 90, { post_only: true }),
        order(6, { type: 'stop', stop: 80, ...seller }),
        limit(7, 79, { type: 'stop_limit', stop: 80, ...seller }),
      ];
      const reports = [];
      for (const one of placed) reports.push(await venue.place(one));
      const statuses = ['filled', 'open', 'expired', 'filled', 'open', 'open', 'open'];
      expect(reports.map(({ status }) => status)).toEqual(statuses);
      const sent = exchange.requests.filter(({ call }) => call === 'POST /order');
      const fields = ['type', 'timeInForce', 'quantity', 'price', 'stopPrice'];
      expect(
        sent.map(({ query }) => fields.map((name) => new URLSearchParams(query).get(name))),
      ).toEqual([
        ['MARKET', null, '0.3', null, null],
        ['LIMIT', 'GTC', '1', '90.25', null],
        ['LIMIT', 'IOC', '1', '90', null],
        ['LIMIT', 'FOK', '1', '101', null],
        ['LIMIT_MAKER', null, '1', '90', null],
        ['STOP_LOSS', null, '0.1', null, '80'],
        ['STOP_LOSS_LIMIT', 'GTC', '0.1', '79', '80'],
      ]);
    }));

  it('reports why the exchange rejected an order', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      const rejected = (number: number, reason: string) => ({
        order: number,
        status: 'rejected',
        filled: 0,
        cost: 0,
        fee: 0,
        fee_units: 0,
        reason,
      });
      for (const [one, reason] of [
        [order(1, { quantity: 1000 }), 'insufficient_funds'],
        [limit(2, 101, { post_only: true }), 'post_only_would_cross'],
        [order(3, { quantity: 0.01 }), 'invalid_order'],
      ] as const) {
        expect(await venue.place(one)).toMatchObject(rejected(one.order, reason));
      }
      for (const [code, msg, reason] of [
        [-1013, 'Market is closed.', 'market_closed'],
        [-1121, 'Invalid symbol.', 'unknown_symbol'],
        [-2010, 'Order would trigger immediately.', 'would_trigger'],
        [-2010, 'This symbol is not permitted for this account.', 'not_permitted'],
        [-9999, 'Something.', 'refused_by_venue'],
      ] as const) {
        exchange.fail('POST /order', { kind: 'status', status: 400, body: { code, msg } });
        expect(await venue.place(order(4))).toMatchObject(rejected(4, reason));
      }
      expect(exchange.orders).toEqual([]);
    }));

  it('sends no order that may no longer be placed', () =>
    inWorld(async ({ exchange, open }) => {
      let isAllowed = false;
      const asked: string[] = [];
      const mayPlace = (id: string): boolean => {
        asked.push(id);
        return isAllowed;
      };
      const venue = await open({ mayPlace });
      await expect(venue.place(order(1))).rejects.toMatchObject({
        code: 'exchange_unavailable',
        reason: 'not_sent',
      });
      expect(asked).toEqual([clientOrderId(DEPLOYMENT, 1)]);
      expect(exchange.asked).not.toContain('POST /order');
      isAllowed = true;
      expect(await venue.place(order(1))).toMatchObject({ status: 'filled' });
    }));

  it('continues to fetch the market rules after an outage', () =>
    inWorld(async ({ exchange, troubles, signal, open }) => {
      const venue = await open({ termsMs: 20 });
      const terms = venue.terms(signal)[Symbol.asyncIterator]();
      await terms.next();
      exchange.faults.add({
        on: 'GET /exchangeInfo',
        action: { kind: 'status', status: 503 },
        count: 2,
      });
      exchange.setPhase(BTC, 'halt');
      const { value } = await terms.next();
      expect(value).toMatchObject({ instruments: { [BTC]: { phase: 'halted' } } });
      expect(troubles[0]).toMatch(/^cannot fetch the market rules: local does not answer: /);
    }));
});

const HIDDEN: FaultAction = {
  kind: 'status',
  status: 400,
  body: { code: -2013, msg: 'Order does not exist.' },
};
const UNKNOWN = { code: -1007, msg: 'Timeout waiting for response from backend server.' };
const FAULTS: Readonly<Record<string, readonly FaultAction[]>> = {
  'a lost request': [{ kind: 'lost_before' }],
  'a lost response': [{ kind: 'lost_after' }],
  'a response that never comes': [{ kind: 'lost_after', isSilent: true }],
  'a request that arrives after its timeout': [{ kind: 'lost_after', lateMs: 150 }],
  'a response after its timeout': [{ kind: 'slow', ms: 1500 }],
  'an error after the order was accepted': [{ kind: 'status', status: 503, done: true }],
  'an error before the order was accepted': [{ kind: 'status', status: 503 }],
  'an unknown outcome': [{ kind: 'status', status: 408, body: UNKNOWN, done: true }],
  'a rate limit': [{ kind: 'status', status: 429, headers: { 'retry-after': '0.7' } }],
  'several faults': [{ kind: 'lost_before' }, { kind: 'lost_after' }],
};

describe('an order', () => {
  it.for(Object.entries(FAULTS))('is placed once despite %s', ([, faults]) =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      const filled = { status: 'filled', filled: 1, cost: 100, fee: 0.1, fee_units: 0 };
      // The order is filled at once, and the exchange then accepts its id again.
      exchange.fail('POST /order', ...faults);
      const begun = performance.now();
      expect(await venue.place(order(1))).toMatchObject(filled);
      const waited = performance.now() - begun;
      expect(waited).toBeGreaterThan(faults.some((one) => 'headers' in one) ? 690 : 0);
      expect(await venue.place(order(1))).toMatchObject(filled);
      const another = await open();
      expect(await another.place(order(1))).toMatchObject(filled);
      expect(exchange.orders.length).toBe(1);
    }),
  );

  it('is placed once despite a process that was killed while its request was on the way', () =>
    inWorld(async ({ exchange, open }) => {
      const killed = new AbortController();
      const first = await open({ signal: killed.signal });
      exchange.fail('POST /order', { kind: 'lost_after', lateMs: 700 });
      const lost = first.place(order(1)).catch((error: unknown) => error);
      await exchange.receives('POST /order');
      killed.abort(new Error('killed'));
      const second = await open({ settleMs: 1500 });
      expect(await second.place(order(1))).toMatchObject({ status: 'filled' });
      await delay(1000);
      expect(exchange.orders.length).toBe(1);
      expect(await lost).toMatchObject({ message: 'killed' });
    }));

  it('is placed once by two simultaneous calls, and a cancel waits until the order exists', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      // If one is filled before the other is sent, the exchange would accept both.
      await Promise.all([venue.place(order(2)), venue.place(order(2))]);
      expect(exchange.orders.length).toBe(1);
      exchange.requests.length = 0;
      exchange.fail('POST /order', { kind: 'lost_after', lateMs: 150 });
      const placing = [venue.place(limit(1, 90)), venue.place(limit(1, 90))];
      await exchange.receives('POST /order');
      const canceled = await venue.cancel(order(1));
      expect(canceled).toMatchObject({ status: 'canceled', filled: 0 });
      expect(canceled.reason).toBeUndefined();
      await Promise.all(placing);
      expect(exchange.orders.length).toBe(2);
      expect(await venue.openOrders()).toEqual([]);
    }));

  it('is not placed after a cancel, or after it was reported as missing', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      exchange.fail('POST /order', { kind: 'lost_before' });
      const placing = venue.place(limit(1, 90));
      await exchange.receives('POST /order');
      const gone = { status: 'canceled', filled: 0, reason: 'not_at_venue' };
      expect(await venue.cancel(order(1))).toMatchObject(gone);
      expect(await placing).toMatchObject(gone);
      expect(await venue.find(order(2))).toBeUndefined();
      expect(await venue.place(limit(2, 90))).toMatchObject(gone);
      await venue.place(limit(4, 90));
      await venue.cancel(order(4));
      expect(await venue.place(limit(4, 90))).toMatchObject({ status: 'canceled', filled: 0 });
      // The result must be true whichever request arrives first.
      const late = await open();
      const found = late.find(order(3));
      expect(await late.place(limit(3, 90))).toMatchObject(gone);
      expect(await found).toBeUndefined();
      expect(exchange.orders).toHaveLength(1);
    }));

  it('is placed once despite an unknown error while it is not visible yet', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      await delay(250);
      exchange.fail('POST /order', {
        kind: 'status',
        status: 400,
        body: { code: -9999, msg: 'Something.' },
        done: true,
      });
      exchange.fail('GET /order', HIDDEN, HIDDEN);
      expect(await venue.place(order(1))).toMatchObject({ status: 'filled', filled: 1 });
      expect(exchange.orders.length).toBe(1);
    }));

  it('is placed once despite a duplicate error while it is not visible yet', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      await venue.place(limit(1, 90));
      // Queried once, rejected as a duplicate, queried again, and then until it is visible.
      exchange.fail('GET /order', HIDDEN, HIDDEN, HIDDEN);
      expect(await venue.place(limit(1, 90))).toMatchObject({ status: 'open' });
      expect(exchange.orders.length).toBe(1);
      expect(exchange.asked.filter((call) => call === 'POST /order').length).toBe(2);
    }));

  it('has an unknown outcome while the exchange cannot be reached, and is then placed once', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      const lost: FaultAction = { kind: 'lost_before' };
      exchange.fail('POST /order', lost, lost, lost);
      await expect(venue.place(order(1))).rejects.toMatchObject({ code: 'exchange_unavailable' });
      expect(await venue.place(order(1))).toMatchObject({ status: 'filled' });
      expect(exchange.orders.length).toBe(1);
    }));

  it.for([60_000, 6500])(
    'is placed once although the clock of the exchange has moved by %d ms',
    (ms) =>
      inWorld(async ({ exchange, clock, open }) => {
        const venue = await open();
        const timeQueries = () => exchange.asked.filter((call) => call === 'GET /time').length;
        const before = timeQueries();
        clock.skewMs += ms;
        expect(await venue.place(limit(1, 90))).toMatchObject({ status: 'open' });
        // The exchange rejects what arrives 5 s after it was signed.
        expect(timeQueries()).toBe(before + 1);
        expect(exchange.orders.length).toBe(1);
      }),
  );
});

it('counts fills that become visible after the state of their order', () =>
  inWorld(async ({ exchange, open }) => {
    const venue = await open();
    await venue.place(limit(1, 90, { quantity: 3 }));
    exchange.fill(order(1).client_order_id, 1);
    const { length } = exchange.asked;
    exchange.fail('GET /order', { kind: 'slow', ms: 100 });
    const found = venue.find(order(1));
    await exchange.receives('GET /order', length);
    exchange.fill(order(1).client_order_id, 1);
    expect(await found).toMatchObject({ status: 'open', filled: 2, cost: 180 });
  }));

describe('cancel', () => {
  it('returns the final state of the order', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      for (const number of [1, 2, 3, 4]) await venue.place(limit(number, 90 + (number % 4)));
      exchange.fill(order(3).client_order_id, 1);
      exchange.fill(order(2).client_order_id, 0.4);
      exchange.fail('DELETE /order', { kind: 'lost_before' });
      const none = { filled: 0, cost: 0, fee: 0 };
      expect(await venue.cancel(order(1))).toMatchObject({ status: 'canceled', ...none });
      expect(await venue.cancel(order(2))).toMatchObject({
        status: 'canceled',
        filled: 0.4,
        cost: 36.8,
        fee: 0.0368,
      });
      expect(await venue.cancel(order(3))).toMatchObject({ status: 'filled', filled: 1, cost: 93 });
      exchange.fail('DELETE /order', { kind: 'lost_after' });
      expect(await venue.cancel(order(4))).toMatchObject({ status: 'canceled', ...none });
      expect(await venue.cancel(order(5))).toMatchObject({
        status: 'canceled',
        ...none,
        reason: 'not_at_venue',
      });
      expect(await venue.openOrders()).toEqual([]);
    }));

  it('succeeds only when the exchange has confirmed it', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      for (const number of [1, 2]) await venue.place(limit(number, 90));
      exchange.fill(order(1).client_order_id, 0.4);
      exchange.fail('GET /order', ...Array.from({ length: 20 }, () => HIDDEN));
      const part = { status: 'canceled', filled: 0.4, cost: 36, fee: 0.036 };
      expect(await venue.cancel(order(1))).toMatchObject(part);
      // Response of a gateway without an exchange behind it.
      exchange.fail('GET /openOrders', { kind: 'status', status: 200, body: {} });
      expect(await venue.openOrders()).toHaveLength(1);
    }));

  it('does not wait for other requests', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open({ timeoutMs: 1000 });
      for (const number of [1, 2, 3]) await venue.place(limit(number, 90));
      exchange.requests.length = 0;
      const done: string[] = [];
      const account = venue.account().then(() => done.push('account'));
      exchange.fail('GET /account', { kind: 'slow', ms: 400 });
      exchange.fail('POST /order', {
        kind: 'status',
        status: 429,
        headers: { 'retry-after': '0.9' },
        body: { code: -1015, msg: 'Too many new orders.' },
      });
      const placed = venue.place(limit(4, 90)).then(() => done.push('place'));
      await venue.cancel(order(1)).then(() => done.push('cancel'));
      await exchange.receives('POST /order');
      await account;
      await venue.cancel(order(2)).then(() => done.push('cancel'));
      await placed;
      expect(done).toEqual(['cancel', 'account', 'cancel', 'place']);
      exchange.fail('DELETE /order', { kind: 'half' });
      expect(await venue.cancel(order(3))).toMatchObject({ status: 'canceled' });
    }));

  it('ends the wait of an order that was rate-limited', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      exchange.fail('POST /order', {
        kind: 'status',
        status: 429,
        headers: { 'retry-after': '30' },
        body: { code: -1015, msg: 'Too many new orders.' },
      });
      const placing = venue.place(limit(1, 90));
      await exchange.receives('POST /order');
      const gone = { status: 'canceled', reason: 'not_at_venue' };
      expect(await venue.cancel(order(1))).toMatchObject(gone);
      expect(await placing).toMatchObject(gone);
      expect(exchange.orders).toEqual([]);
    }));

  it('reports for how long the exchange accepts no requests', () =>
    inWorld(async ({ exchange, troubles, open }) => {
      const ended = new AbortController();
      const venue = await open({ signal: ended.signal });
      await venue.place(limit(1, 90));
      const limited = { kind: 'status', status: 429, headers: { 'retry-after': '60' } } as const;
      exchange.fail('GET /account', limited);
      const account = venue.account().catch((error: unknown) => error);
      await exchange.until(() => exchange.asked.at(-1) === 'GET /account');
      await delay(50);
      await expect(venue.cancel(order(1))).rejects.toMatchObject({
        code: 'exchange_unavailable',
        message: expect.stringMatching(/accepts no requests for (60|59) s/),
      });
      expect(troubles).toEqual(['local accepts no requests for 60 s']);
      ended.abort(new Error('it is enough'));
      expect(await account).toMatchObject({ message: 'it is enough' });
    }));
});

it('a rate limit blocks requests for ten minutes at most', () =>
  inWorld(async ({ exchange, troubles, open }) => {
    const ended = new AbortController();
    const venue = await open({ signal: ended.signal });
    const headers = { 'retry-after': '86400' };
    exchange.fail('GET /account', { kind: 'status', status: 429, headers });
    const account = venue.account().catch((error: unknown) => error);
    await delay(50);
    expect(troubles).toEqual(['local accepts no requests for 600 s']);
    ended.abort(new Error('it is enough'));
    expect(await account).toMatchObject({ message: 'it is enough' });
  }));

describe('missing fields in responses', () => {
  it('are never replaced by made-up values', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      await venue.place(order(1));
      const orderId = exchange.orders[0]!.id;
      const known = { symbol: 'BTCUSDT', orderId, side: 'BUY', type: 'MARKET', status: 'FILLED' };
      const say = (more: object): void =>
        exchange.fail('GET /order', { kind: 'status', status: 200, body: { ...known, ...more } });
      say({ origQty: '1' });
      await expect(venue.find(order(1))).rejects.toMatchObject({ code: 'exchange_unavailable' });
      say({ origQty: '1', executedQty: '1', status: undefined });
      await expect(venue.find(order(1))).rejects.toMatchObject({ code: 'exchange_unavailable' });
      // Response for old orders.
      say({ origQty: '1', executedQty: '1', cummulativeQuoteQty: '-1' });
      const filled = { status: 'filled', filled: 1, cost: 100, fee: 0.1 };
      expect(await venue.find(order(1))).toMatchObject(filled);
      say({ origQty: '1', executedQty: '1' });
      expect(await venue.find(order(1))).toMatchObject(filled);
    }));
});

describe('fees', () => {
  it('are reported in units of the asset or converted to the account currency', () =>
    inWorld(async ({ exchange, troubles, open }) => {
      const venue = await open();
      const minute = Math.floor(exchange.now / MINUTE) * MINUTE;
      // The bar of that minute is still open.
      exchange.klines.keep('BNBUSDT', minute - 2 * MINUTE, ['1', '1', '1', '200', '1']);
      exchange.klines.keep('BNBUSDT', minute + MINUTE, ['1', '1', '1', '999', '1']);
      await venue.place(limit(1, 90));
      const fill = (asset: string, rate: number): void => {
        exchange.matching.fee = { asset, rate };
        exchange.fill(order(1).client_order_id, 0.25);
      };
      fill('base', 0.002);
      fill('quote', 0.002);
      fill('BNB', 0.00001);
      expect(await venue.find(order(1))).toMatchObject({
        status: 'open',
        filled: 0.75,
        cost: 67.5,
        fee_units: 0.0005,
        fee: expect.closeTo(0.045 + 200 * 0.000225, 9),
      });
      // The exchange reports a trade later than its order.
      exchange.fail('GET /myTrades', { kind: 'drop_last' }, { kind: 'drop_last' });
      fill('base', 0.002);
      expect(await venue.find(order(1))).toMatchObject({ status: 'filled', fee_units: 0.001 });
      // An asset without a market counts as worth 0, with one warning.
      exchange.matching.fee = { asset: 'XYZ', rate: 0.001 };
      for (const number of [2, 3]) {
        expect(await venue.place(order(number))).toMatchObject({ filled: 1, fee: 0, fee_units: 0 });
      }
      expect(troubles).toEqual(['local has no price of XYZ: its fees are counted as 0']);
      // The price of the account currency in the currency of the fee.
      exchange.klines.keep('USDTEUR', minute - 120 * MINUTE, ['1', '1', '1', '0.8', '1']);
      exchange.matching.fee = { asset: 'EUR', rate: 0.001 };
      expect(await venue.place(order(4))).toMatchObject({ fee: 0.1 / 0.8 });
      exchange.matching.fee = { asset: 'quote', rate: 0.01 };
      expect(await venue.place(order(5))).toMatchObject({ cost: 100, fee: 1 });
    }));
});

describe('trades of an order', () => {
  it('are fetched over all pages', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      await venue.place(limit(1, 90, { quantity: 100 }));
      for (let count = 0; count < 1000; count += 1) exchange.fill(order(1).client_order_id, 0.06);
      exchange.matching.fee = { asset: 'quote', rate: 0.01 };
      exchange.fill(order(1).client_order_id, 40);
      const fee = expect.closeTo(5.4 + 36, 9);
      expect(await venue.find(order(1))).toMatchObject({
        status: 'filled',
        filled: 100,
        cost: 9000,
        fee,
      });
    }));
});

describe('reports', () => {
  it('arrive as orders change, and after a disconnect', () =>
    inWorld(async ({ exchange, signal, open }) => {
      const [earlier, venue] = [await open(), await open()];
      await earlier.place(limit(1, 90));
      const ended = new AbortController();
      const reports = reportsOf(venue, ended.signal);
      const of = (number: number, status: string, filled: number) => (report: VenueReport) =>
        report.order === number && report.status === status && report.filled === filled;
      // An order that another process has placed.
      await until(reports, of(1, 'open', 0));
      await exchange.until(() => exchange.isStreaming('bot'));
      exchange.fill(order(1).client_order_id, 0.5);
      expect(await until(reports, of(1, 'open', 0.5))).toMatchObject({ cost: 45, fee: 0.045 });
      await venue.place(limit(2, 80));
      await until(reports, of(2, 'open', 0));
      exchange.fail('userDataStream.subscribe.signature', { kind: 'lost_before' });
      exchange.cut();
      exchange.fill(order(1).client_order_id, 0.5);
      expect(await until(reports, of(1, 'filled', 1))).toMatchObject({ cost: 90, fee: 0.09 });
      await exchange.until(() => exchange.isStreaming('bot'));
      exchange.setPrice(BTC, 80);
      await until(reports, of(2, 'filled', 1));
      ended.abort();
      expect(await reports.next()).toEqual({ done: true, value: undefined });
      const others = reportsOf(venue, signal);
      const next = others.next();
      await venue.close();
      expect(await next).toEqual({ done: true, value: undefined });
    }));

  it('arrive despite lost messages, and a dead stream is reconnected', () =>
    inWorld(async ({ exchange, troubles, signal, open }) => {
      const venue = await open({ resyncMs: 200 });
      const reports = reportsOf(venue, signal);
      await venue.place(limit(1, 90));
      const filled = until(reports, ({ status }) => status === 'filled');
      await exchange.until(() => exchange.isStreaming('bot'));
      exchange.faults.add({ on: 'executionReport', action: { kind: 'drop' } });
      // Waits until the queries at the start of the stream are done.
      await vi.waitFor(() => {
        const asked = exchange.asked.filter((call) => call === 'GET /openOrders');
        expect(asked.length).toBe(4);
      }, 5000);
      const atIntervals = ['GET /order', 'GET /order'];
      await vi.waitFor(() => expect(exchange.asked.slice(-2)).toEqual(atIntervals), 5000);
      exchange.fill(order(1).client_order_id, 1);
      expect(await filled).toMatchObject({ filled: 1, cost: 90 });
      const subscriptions = () =>
        exchange.asked.filter((call) => call === 'userDataStream.subscribe.signature').length;
      await exchange.until(() => subscriptions() === 2);
      const id = clientOrderId(DEPLOYMENT, 1);
      expect(troubles[0]).toBe(`the order stream sent no change of order ${id}, reconnecting`);
    }));
});

describe('reconciliation of a venue and a session', () => {
  it('cancels orphans, ends missing orders and reports mismatched holdings', () =>
    inWorld(async ({ exchange, open }) => {
      const venue = await open();
      for (const number of [1, 2, 3]) await venue.place(limit(number, 90));
      exchange.fill(order(1).client_order_id, 1);
      const working = [1, 2, 4].map((number) => limit(number, 90));
      const { reports, orphans } = await reconcileOrders(venue, DEPLOYMENT, working, Date.now());
      expect(reports).toMatchObject([
        { order: 1, status: 'filled', filled: 1, cost: 90 },
        { order: 2, status: 'open', filled: 0 },
        { order: 4, status: 'canceled', filled: 0, reason: 'not_at_venue' },
      ]);
      expect(orphans).toEqual([
        { order: 3, client_order_id: clientOrderId(DEPLOYMENT, 3), symbol: BTC },
      ]);
      const cash = 10_000 - 90.09;
      const holds = (units: number, money: number) =>
        reconcileHoldings(venue, { positions: { [BTC]: units }, cash: money });
      expect(await holds(3, cash)).toEqual([]);
      expect(await holds(1, cash / 2)).toEqual([]);
      expect(await holds(3.0001, cash)).toEqual([]);
      expect(await holds(3.0002, cash + 0.01)).toEqual([
        { kind: 'position', symbol: BTC, expected: 3.0002, held: 3 },
        { kind: 'cash', expected: cash + 0.01, held: expect.closeTo(cash, 9) },
      ]);
    }));
});

describe('credentials', () => {
  it('appear in no error, log or warning', () =>
    inWorld(async ({ exchange, troubles, signal, open }) => {
      const written: string[] = [];
      for (const stream of [process.stdout, process.stderr]) {
        const spy = vi.spyOn(stream, 'write').mockImplementation((chunk) => {
          written.push(String(chunk));
          return true;
        });
        onTestFinished(() => spy.mockRestore());
      }
      const venue = await open();
      await venue.place(limit(1, 90));
      const { apiKey, secret } = CREDENTIALS;
      const msg = `what ${apiKey} and ${secret} sent to http://a/b?signature=0123abcd`;
      const echo: FaultAction = { kind: 'status', status: 400, body: { code: -1100, msg } };
      const errors: unknown[] = [];
      const failing = async (doing: Promise<unknown>): Promise<void> => {
        errors.push(
          await doing.then(
            () => 'it did not fail',
            (error: unknown) => error,
          ),
        );
      };
      exchange.fail('DELETE /order', echo, echo);
      await failing(venue.cancel(order(1)));
      // The message contains the whole URL.
      exchange.fail('GET /account', { kind: 'status', status: 401 });
      await failing(venue.account());
      exchange.fail('GET /order', echo);
      await failing(venue.find(order(1)));
      exchange.fail('GET /openOrders', echo);
      await reportsOf(venue, signal).next();
      expect(troubles.length).toBeGreaterThan(0);
      const shown = errors.map((error) => {
        const { message, stack, cause, remedy } = error as Error & { remedy: string };
        return JSON.stringify([message, stack, String(cause), remedy, error]);
      });
      expect(errors).toMatchObject([
        { code: 'exchange_unavailable' },
        { code: 'conflict', reason: 'credentials_refused' },
        { code: 'exchange_unavailable' },
      ]);
      const all = [...shown, ...troubles, ...written].join('\n');
      expect(all).toContain('what … and … sent to http://a/b');
      expect(all).not.toMatch(/canary|signature=\w/);
    }));
});

it('stepOf converts each precision mode of ccxt', () => {
  const modes = { TICK_SIZE: 4, DECIMAL_PLACES: 2 };
  expect([stepOf(0.005, 4, modes), stepOf(3, 2, modes)]).toEqual([0.005, 0.001]);
  expect([stepOf(5, 3, modes), stepOf(undefined, 4, modes)]).toEqual([0, 0]);
});

it.each([
  [true, 'TRADING', 'open'],
  [undefined, 'HALT', 'open'],
  [false, 'HALT', 'halted'],
  [false, 'BREAK', 'halted'],
  [false, 'AUCTION_MATCH', 'auction'],
  [false, 'END_OF_DAY', 'closed'],
])('a market with active = %j and the status %s is %s', (active, status, phase) => {
  expect(phaseOf({ ...(active !== undefined && { active }), info: { status } })).toBe(phase);
});
