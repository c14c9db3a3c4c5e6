import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MINUTE } from '../../src/base/durations.ts';
import { parseTimeframe } from '../../src/market/timeframe.ts';
import { openExchange, type Exchange } from '../../src/trading/venues/market-data.ts';
import type { FeedItem } from '../../src/trading/feed.ts';
import { chooseExchange, readExchanges } from '../../src/trading/venues/exchanges-file.ts';
import { liveFeed, type LiveOptions } from '../../src/trading/live-feed.ts';
import type { Kline } from '../../src/compliance/venue/klines.ts';
import { startExchange, type LocalExchange } from './local-exchange.ts';
import { isAtLength } from '../length.ts';

const START = Date.UTC(2026, 0, 5);
const BTC = 'BTC/USDT';
const ETH = 'ETH/USDT';
const TIMEFRAME = parseTimeframe('1m');

const at = (minute: number): number => START + minute * MINUTE;
const iso = (minute: number): string => new Date(at(minute)).toISOString();

/** A bar whose values are unique to its minute. */
function bar(minute: number, close = 100 + minute): Kline {
  return ['100.10', String(Math.max(close, 100.1)), '0.5', `${close}.00`, '3.25000000'];
}

const candle = (minute: number, close = 100 + minute) => ({
  open: 100.1,
  high: Math.max(close, 100.1),
  low: 0.5,
  close,
  volume: 3.25,
});

const step = (minute: number, bars: object = { [BTC]: candle(minute) }) => ({
  kind: 'data.bars',
  step: { time: at(minute), bars },
});

const refused = (minute: number, reason: string) => ({
  kind: 'data.refused',
  symbol: BTC,
  time: iso(minute),
  reason,
});

const gap = (after: number, before: number, missing: number) => ({
  kind: 'data.gap',
  symbol: BTC,
  after: iso(after),
  before: iso(before),
  missing,
});

interface World {
  readonly market: LocalExchange;
  readonly exchange: Exchange;
  /** Starts the feed, and resolves when the exchange has the subscription. */
  readonly feed: (options?: Partial<LiveOptions>) => Promise<() => Promise<FeedItem>>;
  readonly troubles: readonly string[];
}

/** An exchange whose clock advances only when a test sets it. */
async function startMarket(...symbols: readonly string[]): Promise<LocalExchange> {
  const market = await startExchange({ symbols });
  market.stopClockAt(at(0));
  return market;
}

async function newWorld(): Promise<World> {
  const market = await startMarket(BTC, ETH);
  const ended = new AbortController();
  const exchange = openExchange('local', market.definition, ended.signal);
  const troubles: string[] = [];
  onTestFinished(async () => {
    ended.abort(new Error('the test has ended'));
    await exchange.close();
    await market.close();
  });
  return {
    market,
    exchange,
    troubles,
    async feed(options = {}) {
      const { symbols = [BTC] } = options;
      const items = liveFeed({
        exchange,
        symbols,
        timeframe: TIMEFRAME,
        signal: ended.signal,
        graceMs: 20,
        onTrouble: (message) => troubles.push(message),
        ...options,
      });
      let next = items.next();
      next.catch(() => {});
      await Promise.all(symbols.map((symbol) => market.subscribed(symbol, 1)));
      return async () => {
        const { value } = await next;
        next = items.next();
        next.catch(() => {});
        return value;
      };
    },
  };
}

describe('liveFeed', () => {
  it('yields each bar once, with its last values, when the next bar opens', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(0), bar(0, 7));
    await market.stream(BTC, at(0), bar(0, 9));
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(1), bar(1, 5));
    expect(await next()).toEqual(step(0));
    await market.stream(BTC, at(1), bar(1));
    await market.stream(BTC, at(2), bar(2));
    expect(await next()).toEqual(step(1));
    expect(market.asked.filter((call) => call === 'GET /klines')).toEqual([]);
  });

  it('fetches bars missed during a disconnect, and does not yield the open bar', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(1), bar(1, 5));
    expect(await next()).toEqual(step(0));
    market.cut();
    market.keep(BTC, at(1), bar(1));
    market.keep(BTC, at(2), bar(2));
    await market.subscribed(BTC, 2);
    market.stopClockAt(at(3) + 1);
    await market.stream(BTC, at(3), bar(3));
    expect(await next()).toEqual(step(1));
    expect(await next()).toEqual(step(2));
    await market.stream(BTC, at(4), bar(4));
    expect(await next()).toEqual(step(3));
  });

  it('rejects late bars, malformed bars and revisions of bars already used', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(3), bar(3));
    await market.stream(BTC, at(4), bar(4));
    expect(await next()).toEqual(step(3));
    await market.stream(BTC, at(3), bar(3, 90));
    expect(await next()).toEqual(refused(3, 'duplicate'));
    await market.stream(BTC, at(1), bar(1));
    expect(await next()).toEqual(refused(1, 'late'));
  });

  it('rejects malformed bars and survives malformed messages', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(3), bar(3));
    await market.stream(BTC, at(4), ['0', '1', '0', '1', '1']);
    expect(await next()).toEqual(step(3));
    await market.stream(BTC, at(5), ['NaN', '1', '1', '1', '1']);
    expect(await next()).toEqual(refused(4, 'invalid'));
    await market.stream(BTC, at(6), ['1', '-1', '1', '1', '1']);
    expect(await next()).toEqual(refused(5, 'invalid'));
    market.stopClockAt(at(7) + 1);
    await market.stream(BTC, at(7), bar(7));
    expect(await next()).toEqual(refused(6, 'invalid'));
    for (const garbage of ['{', 'null', '{"e":"kline"}', '{"e":"kline","k":{"s":7,"t":"x"}}']) {
      await market.say(garbage);
    }
    market.stopClockAt(at(8) + 1);
    await market.stream(BTC, at(8), bar(8));
    // The client may reconnect meanwhile, so the message is repeated.
    const resend = setInterval(
      () => void market.stream(BTC, at(8), bar(8, (Math.random() + 1) * 9)),
      50,
    );
    onTestFinished(() => clearInterval(resend));
    expect(await next()).toEqual(gap(3, 7, 3));
    expect(await next()).toEqual(step(7));
  });

  it('rejects bars that are not aligned to the timeframe', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(0) + 1, bar(0));
    expect(await next()).toMatchObject({ kind: 'data.refused', reason: 'invalid' });
    await market.stream(BTC, at(1), bar(1));
    expect(await next()).toEqual(step(0));
  });

  it('rejects a bar far in the future according to the clock of the exchange', async () => {
    const { market, feed } = await newWorld();
    const next = await feed();
    await market.stream(BTC, at(0), bar(0));
    market.stopClockAt(at(0) + 1);
    await market.stream(BTC, at(500), bar(500));
    expect(await next()).toEqual(refused(500, 'invalid'));
    await market.stream(BTC, at(1), bar(1));
    expect(await next()).toEqual(step(0));
  });

  it('completes a step when the bars of all instruments are closed, in the order of the universe', async () => {
    const { market, feed } = await newWorld();
    const next = await feed({ symbols: [ETH, BTC], graceMs: 60_000 });
    await market.stream(BTC, at(0), bar(0));
    await market.stream(ETH, at(0), bar(0, 7));
    await market.stream(BTC, at(1), bar(1));
    await market.stream(ETH, at(1), bar(1, 8));
    const item = await next();
    expect(item).toEqual(step(0, { [ETH]: candle(0, 7), [BTC]: candle(0) }));
    assert(item.kind === 'data.bars');
    expect(Object.keys(item.step.bars)).toEqual([ETH, BTC]);
  });

  it('stops waiting for an instrument once the exchange has confirmed that it had no trades', async () => {
    const { market, feed } = await newWorld();
    const next = await feed({ symbols: [BTC, ETH] });
    await market.stream(BTC, at(0), bar(0));
    await market.stream(ETH, at(0), bar(0, 7));
    market.stopClockAt(at(1) + 1);
    await market.stream(BTC, at(1), bar(1));
    // The bar has ended, but no later one has come.
    expect(await next()).toEqual(step(0, { [BTC]: candle(0), [ETH]: candle(0, 7) }));
    market.stopClockAt(at(2) + 1);
    await market.stream(BTC, at(2), bar(2));
    expect(await next()).toEqual(step(1));
    await market.stream(ETH, at(2), bar(2, 9));
    market.stopClockAt(at(3) + 1);
    await market.stream(ETH, at(3), bar(3, 9));
    await market.stream(BTC, at(3), bar(3));
    expect(await next()).toEqual({ ...gap(0, 2, 1), symbol: ETH });
    expect(await next()).toEqual(step(2, { [BTC]: candle(2), [ETH]: candle(2, 9) }));
  });

  it('continues after the last step taken earlier, with the missed bars', async () => {
    const { market, feed } = await newWorld();
    for (const minute of [0, 1, 2, 4]) market.keep(BTC, at(minute), bar(minute));
    market.stopClockAt(at(5) + 1);
    const next = await feed({ after: at(0) });
    await market.stream(BTC, at(5), bar(5));
    expect(await next()).toEqual(step(1));
    expect(await next()).toEqual(step(2));
    expect(await next()).toEqual(gap(2, 4, 1));
    expect(await next()).toEqual(step(4));
  });

  it('fetches the bars before its first step for indicators, without the one of the step', async () => {
    const { market, feed } = await newWorld();
    for (const minute of [-4, -3, -1, 0]) market.keep(BTC, at(minute), bar(minute));
    const next = await feed({ warmUp: { bars: 3, longer: {} } });
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(1), bar(1));
    const item = await next();
    assert(item.kind === 'data.warm_up');
    expect([...item.bars[BTC]!.time]).toEqual([at(-3), at(-1)]);
    expect([...item.bars[BTC]!.close]).toEqual([97, 99]);
    expect(await next()).toEqual(step(0));
  });

  it('fetches longer bars for indicators, and its own since the last complete one', async () => {
    const { market, feed } = await newWorld();
    for (const minute of [-1500, -1440, -3, -1, 0]) market.keep(BTC, at(minute), bar(minute, 50));
    for (const minute of [60, 63]) market.keep(BTC, at(minute), bar(minute));
    const next = await feed({ warmUp: { bars: 1, longer: { '1d': 2, '1h': 1 } } });
    await market.stream(BTC, at(64), bar(64));
    await market.stream(BTC, at(65), bar(65));
    const read = async () => {
      const item = await next();
      assert(item.kind === 'data.warm_up');
      const { bars, timeframe, continues } = item;
      return { timeframe, continues, times: [...bars[BTC]!.time] };
    };
    const minutes = [0, 60, 63].map(at);
    expect(await read()).toEqual({ timeframe: undefined, continues: false, times: minutes });
    const days = [at(-2 * 1440), at(-1440)];
    expect(await read()).toEqual({ timeframe: '1d', continues: true, times: days });
    expect(await read()).toEqual({ timeframe: '1h', continues: true, times: [at(0)] });
    expect(await next()).toEqual(step(64));
  });

  it('starts without the bars before its first step if they cannot be fetched, and reports that', async () => {
    const { market, exchange, feed, troubles } = await newWorld();
    vi.spyOn(exchange, 'history').mockRejectedValue(new Error('no'));
    const next = await feed({ warmUp: { bars: 3, longer: {} } });
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(1), bar(1));
    // Replaces bars that a start before this one recorded.
    expect(await next()).toEqual({ kind: 'data.warm_up', bars: {} });
    expect(await next()).toEqual(step(0));
    expect(troubles).toEqual([expect.stringContaining('indicators start without history: ')]);
  });

  it('fetches no bars for indicators when it continues', async () => {
    const { market, feed } = await newWorld();
    market.keep(BTC, at(-1), bar(-1));
    const next = await feed({ after: at(-1), warmUp: { bars: 3, longer: {} } });
    await market.stream(BTC, at(0), bar(0));
    await market.stream(BTC, at(1), bar(1));
    expect(await next()).toEqual(step(0));
  });

  it('reports a gap for bars that the exchange does not return', async () => {
    const { market, exchange, feed } = await newWorld();
    vi.spyOn(exchange, 'history').mockRejectedValue(new Error('no'));
    const next = await feed({ after: at(0) });
    await market.stream(BTC, at(5), bar(5));
    await market.stream(BTC, at(6), bar(6));
    expect(await next()).toEqual(gap(0, 5, 4));
    expect(await next()).toEqual(step(5));
  });

  it.runIf(isAtLength)('retries a request after the time in Retry-After', async () => {
    const { market, feed } = await newWorld();
    market.keep(BTC, at(1), bar(1));
    market.stopClockAt(at(2) + 1);
    const next = await feed({ after: at(0) });
    market.fail('requests', { kind: 'status', status: 429, headers: { 'retry-after': '1' } });
    const before = performance.now();
    await market.stream(BTC, at(2), bar(2));
    expect(await next()).toEqual(step(1));
    // Timers are up to a millisecond early.
    expect(performance.now() - before).toBeGreaterThan(990);
  });

  it('fetches bars when the stream is silent, and reconnects if the stream missed some', async () => {
    const { market, feed, troubles } = await newWorld();
    const next = await feed({ quietMs: 50 });
    await market.stream(BTC, at(0), bar(0, 5));
    market.keep(BTC, at(0), bar(0));
    market.keep(BTC, at(1), bar(1));
    market.stopClockAt(at(2) + 1);
    expect(await next()).toEqual(step(0));
    expect(await next()).toEqual(step(1));
    await market.subscribed(BTC, 2);
    expect(troubles).toContain(
      `${BTC}: the exchange has bars that the stream did not send; reconnecting`,
    );
  });

  it.runIf(isAtLength)(
    'reconnects after the exchange has rejected streams for a while',
    async () => {
      const { market, feed, troubles } = await newWorld();
      const next = await feed();
      await market.stream(BTC, at(0), bar(0));
      market.faults.add({ on: 'connect', action: { kind: 'lost_before' } });
      market.cut();
      await vi.waitFor(() => expect(troubles.length).toBeGreaterThan(1));
      market.faults.clear();
      await market.subscribed(BTC, 2);
      await market.stream(BTC, at(0), bar(0));
      await market.stream(BTC, at(1), bar(1));
      expect(await next()).toEqual(step(0));
    },
  );

  it('ends with its signal', async () => {
    const { feed } = await newWorld();
    const stop = new AbortController();
    const next = await feed({ signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(next()).rejects.toThrow('enough');
  });
});

describe('openExchange', () => {
  it('sends requests only to the configured urls', async () => {
    const market = await startMarket(BTC);
    const { definition } = market;
    const stop = new AbortController();
    const exchange = openExchange('local', { ...definition, options: {} }, stop.signal);
    onTestFinished(async () => {
      stop.abort();
      await exchange.close();
      await market.close();
    });
    // ccxt also loads the futures of Binance by default.
    await expect(exchange.check([BTC], '1m')).rejects.toThrow(/fapi/i);
  });

  it('reports missing symbols and timeframes with pointers into the spec', async () => {
    const { exchange } = await newWorld();
    await exchange.check([ETH, BTC], '1m');
    await expect(exchange.check([BTC, 'DOGE/USDT'], '10m')).rejects.toMatchObject({
      code: 'invalid_spec',
      problems: [{ pointer: '/spec/data/timeframe' }, { pointer: '/spec/universe/symbols/1' }],
    });
  });

  it('throws exchange_unavailable if the exchange does not answer', async () => {
    const { exchange, market } = await newWorld();
    market.faults.add({ on: 'requests', action: { kind: 'status', status: 500 } });
    await expect(exchange.check([BTC], '1m')).rejects.toMatchObject({
      code: 'exchange_unavailable',
      retryable: true,
    });
  });

  it('removes user names and passwords in urls from errors', async () => {
    const urls = { public: 'http://ada:secret@127.0.0.1:1/api/v3' };
    const definition = { ccxt: 'binance', options: { fetchMarkets: { types: ['spot'] } }, urls };
    const stop = new AbortController();
    const exchange = openExchange('local', definition, stop.signal);
    onTestFinished(() => {
      stop.abort();
      return exchange.close();
    });
    const error: unknown = await exchange.check([BTC], '1m').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'exchange_unavailable' });
    expect((error as Error).message).toMatch(/127\.0\.0\.1:1/);
    expect((error as Error).message).not.toMatch(/ada|secret/);
  });

  it('throws for an exchange that ccxt does not have', () => {
    const open = () => openExchange('x', { ccxt: 'nowhere' }, new AbortController().signal);
    expect(open).toThrow(
      expect.objectContaining({
        message: 'ccxt cannot stream data of nowhere',
        reason: 'unknown_exchange',
      }),
    );
  });

  it('maps symbols of the bot to symbols of the exchange', async () => {
    const market = await startMarket(BTC);
    const definition = { ...market.definition, symbols: { BITCOIN: BTC } };
    const stop = new AbortController();
    const exchange = openExchange('local', definition, stop.signal);
    onTestFinished(async () => {
      stop.abort();
      await exchange.close();
      await market.close();
    });
    await exchange.check(['BITCOIN'], '1m');
    const shown = exchange.watch('BITCOIN', '1m');
    await market.subscribed(BTC, 1);
    await market.stream(BTC, at(0), bar(0));
    expect(await shown).toEqual([{ time: at(0), ...candle(0) }]);
  });
});

describe('exchanges_file', () => {
  const written = async (text: string): Promise<string> => {
    const dir = await mkdtemp(join(tmpdir(), 'service-local-exchanges-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    await writeFile(join(dir, 'exchanges.yaml'), text);
    return join(dir, 'exchanges.yaml');
  };

  it('defines exchanges by name and suggests close names', async () => {
    const exchanges = readExchanges(await written('binance: {ccxt: binance}'));
    expect(exchanges).toEqual({ binance: { ccxt: 'binance' } });
    expect(chooseExchange(exchanges, undefined)).toBe('binance');
    expect(() => chooseExchange(exchanges, 'binanc')).toThrow('no exchange "binanc"');
    expect(() => chooseExchange({}, undefined)).toThrow('has no exchange');
    const two = { ...exchanges, kraken: { ccxt: 'kraken' } };
    expect(() => chooseExchange(two, undefined)).toThrow('several');
  });

  it('rejects API keys', async () => {
    const file = await written('binance: {ccxt: binance, apiKey: abc}\nOTHER: {}');
    expect(() => readExchanges(file)).toThrow(
      expect.objectContaining({
        code: 'invalid_setting',
        problems: expect.arrayContaining([
          expect.objectContaining({ message: expect.stringContaining('apiKey') as string }),
        ]) as unknown,
      }) as Error,
    );
  });
});
