/**
 * Thread for live market data. ccxt takes a second to load, and a failure in it must not end the
 * process.
 */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../base/error-data.ts';
import { ServiceError } from '../base/errors.ts';
import { parseTimeframe, type TimeframeName } from '../market/timeframe.ts';
import { openExchange, type Exchange } from './venues/market-data.ts';
import type { Exchanges } from './venues/exchanges-file.ts';
import type { FeedItem } from './feed.ts';
import { liveFeed } from './live-feed.ts';
import type { WarmUpRequest } from './warm-up-of-session.ts';

/** Source of live bars. */
export interface LiveSource {
  readonly exchange: string;
  /** In the order of the universe. */
  readonly symbols: readonly string[];
  readonly timeframe: TimeframeName;
  /** See `LiveOptions`. */
  readonly warmUp?: WarmUpRequest | undefined;
}

/**
 * Asks the thread to check a source, and to send its error or undefined to the port; or to send its
 * bars there.
 */
export interface LiveRequest extends LiveSource {
  readonly wanted: 'check' | 'bars';
  readonly port: MessagePort;
}

/** Sent to a port, after the port has sent the time of its last step. */
export type LiveMessage = { readonly item: FeedItem } | { readonly error: ErrorData };

const exchanges = workerData as Exchanges;
const opened = new Map<string, Exchange>();
/** Count of feeds per exchange. */
const users = new Map<string, number>();
const { signal } = new AbortController();

function exchangeOf(name: string): Exchange {
  const open = opened.get(name) ?? openExchange(name, exchanges[name]!, signal);
  opened.set(name, open);
  return open;
}

async function check({ port, exchange, symbols, timeframe }: LiveRequest): Promise<void> {
  try {
    await exchangeOf(exchange).check(symbols, timeframe);
    port.postMessage(undefined);
  } catch (error) {
    port.postMessage(errorOf(error));
  }
}

function feed({ port, exchange, symbols, timeframe, warmUp }: LiveRequest): void {
  const closed = new AbortController();
  port.on('close', () => closed.abort());
  port.once('message', async (after: number | undefined) => {
    users.set(exchange, (users.get(exchange) ?? 0) + 1);
    const post = (message: LiveMessage): void => port.postMessage(message);
    try {
      const items = liveFeed({
        exchange: exchangeOf(exchange),
        symbols,
        timeframe: parseTimeframe(timeframe),
        after,
        warmUp,
        signal: closed.signal,
        onTrouble: (message) => parentPort!.postMessage(`${exchange}: ${message}`),
      });
      for await (const item of items) post({ item });
    } catch (error) {
      if (!closed.signal.aborted) post({ error: errorOf(error) });
    } finally {
      users.set(exchange, users.get(exchange)! - 1);
      // No feed uses the streams of this exchange.
      if (users.get(exchange) === 0) opened.get(exchange)?.drop();
    }
  });
}

function errorOf(error: unknown): ErrorData {
  if (error instanceof ServiceError) return toErrorData(error).error;
  return { code: 'failure', message: String(error) };
}

parentPort!.on('message', (request: LiveRequest) => {
  if (request.wanted === 'bars') feed(request);
  else void check(request);
});
