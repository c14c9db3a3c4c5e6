/**
 * The thread in which a process has its live market data: ccxt takes a second to load, and what goes
 * wrong in it takes nothing else down.
 */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { ServiceError } from '../base/errors.ts';
import { parseTimeframe, type TimeframeName } from '../market/timeframe.ts';
import { openExchange, type Exchange } from './venues/ccxt.ts';
import type { Exchanges } from './venues/exchanges-file.ts';
import type { FeedItem } from './feed.ts';
import { liveFeed } from './live.ts';

/** Bars of an exchange. */
export interface LiveSource {
  readonly exchange: string;
  /** In the order of the universe. */
  readonly symbols: readonly string[];
  readonly timeframe: TimeframeName;
}

/** What the thread is asked: whether there are such bars, or to send them to a port. */
export type LiveRequest = LiveSource &
  ({ readonly check: number } | { readonly port: MessagePort });

/** Of an error, what goes from one thread to another. */
export type LiveError = Pick<ServiceError, 'code' | 'message' | 'reason' | 'remedy' | 'problems'>;

export type LiveAnswer =
  | { readonly checked: number; readonly error?: LiveError }
  | { readonly trouble: string };

/** To a port that has asked by saying after which step. */
export type LiveMessage = { readonly item: FeedItem } | { readonly error: LiveError };

const exchanges = workerData as Exchanges;
const opened = new Map<string, Exchange>();
/** How many feeds each has. */
const users = new Map<string, number>();
const { signal } = new AbortController();

function exchangeOf(name: string): Exchange {
  const open = opened.get(name) ?? openExchange(name, exchanges[name]!, signal);
  opened.set(name, open);
  return open;
}

function send(answer: LiveAnswer): void {
  parentPort!.postMessage(answer);
}

async function check(id: number, { exchange, symbols, timeframe }: LiveSource): Promise<void> {
  try {
    await exchangeOf(exchange).check(symbols, timeframe);
    send({ checked: id });
  } catch (error) {
    send({ checked: id, error: errorOf(error) });
  }
}

function feed(port: MessagePort, { exchange, symbols, timeframe }: LiveSource): void {
  const gone = new AbortController();
  port.on('close', () => gone.abort());
  port.once('message', async (after: number | undefined) => {
    users.set(exchange, (users.get(exchange) ?? 0) + 1);
    const tell = (message: LiveMessage): void => port.postMessage(message);
    try {
      const items = liveFeed({
        exchange: exchangeOf(exchange),
        symbols,
        timeframe: parseTimeframe(timeframe),
        after,
        signal: gone.signal,
        onTrouble: (message) => send({ trouble: `${exchange}: ${message}` }),
      });
      for await (const item of items) tell({ item });
    } catch (error) {
      if (!gone.signal.aborted) tell({ error: errorOf(error) });
    } finally {
      users.set(exchange, users.get(exchange)! - 1);
      // Nobody wants what still streams.
      if (users.get(exchange) === 0) opened.get(exchange)?.drop();
    }
  });
}

function errorOf(error: unknown): LiveError {
  if (!(error instanceof ServiceError)) {
    return {
      code: 'failure',
      message: String(error),
      reason: undefined,
      remedy: undefined,
      problems: [],
    };
  }
  const { code, message, reason, remedy, problems } = error;
  return { code, message, reason, remedy, problems };
}

parentPort!.on('message', (request: LiveRequest) => {
  if ('port' in request) feed(request.port, request);
  else void check(request.check, request);
});
