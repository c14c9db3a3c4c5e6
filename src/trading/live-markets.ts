import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { fromErrorData, type ErrorData } from '../base/error-data.ts';
import { ServiceError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { THREAD_ENV } from '../base/thread-env.ts';
import { chooseExchange, noExchange, type Exchanges } from './venues/exchanges-file.ts';
import type { FeedItem } from './feed.ts';
import type { LiveAnswer, LiveMessage, LiveRequest, LiveSource } from './live-worker.ts';

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

export function liveMarkets(exchanges: Exchanges, log: Log): LiveMarkets {
  let running: Worker | undefined;
  const waiting = new Map<number, (error: ErrorData | undefined) => void>();
  let last = 0;

  const thread = (): Worker => (running ??= start());
  const start = (): Worker => {
    const file = new URL(`./live-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const worker = new Worker(file, { workerData: exchanges, env: THREAD_ENV });
    worker.on('message', (answer: LiveAnswer) => {
      if ('trouble' in answer) log.warn(`live market data: ${answer.trouble}`);
      else settle(answer.checked, answer.error);
    });
    worker.on('error', (error) =>
      log.error({ err: error, msg: 'the live market data thread failed' }),
    );
    worker.on('exit', () => {
      if (running === worker) running = undefined;
      const error = {
        code: 'exchange_unavailable',
        message: 'the live market data thread has stopped',
        remedy: 'Try again.',
      } as const;
      for (const id of waiting.keys()) settle(id, error);
    });
    return worker;
  };
  const settle = (id: number, error: ErrorData | undefined): void => {
    waiting.get(id)?.(error);
    waiting.delete(id);
  };

  return {
    async choose(name, symbols, timeframe) {
      const exchange = chooseExchange(exchanges, name);
      const source = { exchange, symbols, timeframe };
      last += 1;
      const id = last;
      const { promise, resolve } = Promise.withResolvers<ErrorData | undefined>();
      waiting.set(id, resolve);
      thread().postMessage({ check: id, ...source } satisfies LiveRequest);
      const error = await promise;
      if (error !== undefined) throw fromErrorData(error);
      return source;
    },
    open(source) {
      if (!Object.hasOwn(exchanges, source.exchange)) chooseExchange(exchanges, source.exchange);
      const { port1, port2 } = new MessageChannel();
      thread().postMessage({ port: port1, ...source } satisfies LiveRequest, [port1]);
      return port2;
    },
    async stop() {
      await running?.terminate();
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
        if (isClosed)
          throw new ServiceError('exchange_unavailable', 'the live market data thread has stopped');
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
