import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { endThread } from '../base/end-thread.ts';
import { fromErrorData, type ErrorData } from '../base/error-data.ts';
import type { Log } from '../base/log.ts';
import { THREAD_ENV } from '../base/thread-env.ts';
import { chooseExchange, noExchange, type Exchanges } from './venues/exchanges-file.ts';
import type { FeedItem } from './feed.ts';
import type { LiveMessage, LiveRequest, LiveSource } from './live-worker.ts';

/** Live market data of a process. Its thread starts with the first request. */
export interface LiveMarkets {
  /**
   * Chooses the exchange and checks that it has the symbols and the timeframe.
   *
   * @param exchange may be undefined if there is only one.
   * @throws ServiceError `conflict` for an unknown exchange, or without ccxt; `invalid_spec` if the
   *   exchange lacks symbols or the timeframe, with pointers into the spec; `exchange_unavailable`.
   */
  choose(
    exchange: string | undefined,
    symbols: LiveSource['symbols'],
    timeframe: LiveSource['timeframe'],
  ): Promise<LiveSource>;
  /** Opens a port for `liveItems`, which may be transferred to another thread. */
  open(source: LiveSource): MessagePort;
  stop(): Promise<void>;
}

/** Used by a process without exchanges. */
export const NO_LIVE_MARKETS: LiveMarkets = {
  async choose() {
    throw noExchange();
  },
  open() {
    throw noExchange();
  },
  async stop() {},
};

const STOPPED = {
  code: 'exchange_unavailable',
  message: 'the live market data thread has stopped',
} as const;

export function liveMarkets(exchanges: Exchanges, log: Log): LiveMarkets {
  let running: Worker | undefined;

  const start = (): Worker => {
    const file = new URL(`./live-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(file, { workerData: exchanges, env: THREAD_ENV });
    worker.on('message', (trouble: string) => log.warn(`live market data: ${trouble}`));
    worker.on('error', (error) =>
      log.error({ err: error, msg: 'the live market data thread failed' }),
    );
    worker.on('exit', () => {
      if (running === worker) running = undefined;
    });
    return worker;
  };
  const request = (wanted: LiveRequest['wanted'], source: LiveSource): MessagePort => {
    const { port1, port2 } = new MessageChannel();
    running ??= start();
    running.postMessage({ wanted, port: port1, ...source } satisfies LiveRequest, [port1]);
    return port2;
  };

  return {
    async choose(name, symbols, timeframe) {
      const source = { exchange: chooseExchange(exchanges, name), symbols, timeframe };
      const port = request('check', source);
      const { promise, resolve } = Promise.withResolvers<ErrorData | undefined>();
      port.on('message', resolve);
      port.on('close', () => resolve({ ...STOPPED, remedy: 'Try again.' }));
      const error = await promise;
      port.close();
      if (error !== undefined) throw fromErrorData(error);
      return source;
    },
    open(source) {
      chooseExchange(exchanges, source.exchange);
      return request('bars', source);
    },
    async stop() {
      if (running !== undefined) await endThread(running);
    },
  };
}

/**
 * Iterates over live bars from a port of `LiveMarkets`.
 *
 * @param after time of the last step taken earlier, ms since epoch.
 * @param signal iterating throws its reason.
 */
export async function* liveItems(
  port: MessagePort,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<FeedItem, never> {
  const received: LiveMessage[] = [];
  let arrival = Promise.withResolvers<void>();
  let isClosed = false;
  port.on('message', (message: LiveMessage) => {
    received.push(message);
    arrival.resolve();
  });
  port.on('close', () => {
    isClosed = true;
    arrival.resolve();
  });
  const wake = (): void => arrival.resolve();
  signal.addEventListener('abort', wake);
  port.postMessage(after);
  try {
    for (;;) {
      signal.throwIfAborted();
      const message = received.shift();
      if (message === undefined) {
        if (isClosed) throw fromErrorData(STOPPED);
        await arrival.promise;
        arrival = Promise.withResolvers();
      } else if ('item' in message) yield message.item;
      else throw fromErrorData(message.error);
    }
  } finally {
    signal.removeEventListener('abort', wake);
    port.close();
  }
}
