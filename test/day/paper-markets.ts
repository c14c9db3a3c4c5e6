/** Bars of the paper sessions of a simulated day. */
import { MessageChannel } from 'node:worker_threads';
import { MINUTE } from '../../src/base/durations.ts';
import type { LiveMarkets } from '../../src/trading/live-markets.ts';
import type { LiveMessage } from '../../src/trading/live-worker.ts';
import type { Machine } from './machine.ts';

/** Bars of a minute come faster than at the exchange, so that more faults meet a session. */
const BAR_EVERY_MS = 6000;
const FIRST_BAR = Date.UTC(2025, 0, 1);

/** Live bars for paper sessions, which sometimes end with an error. */
export function paperMarkets(machine: Machine): LiveMarkets {
  const begun = machine.now;
  return {
    choose: async (_name, symbols, timeframe) => ({ exchange: 'exchange', symbols, timeframe }),
    open: ({ symbols }) => {
      const { port1, port2 } = new MessageChannel();
      port1.once('message', (after: number | undefined) => {
        const newest = (): number => Math.floor((machine.now - begun) / BAR_EVERY_MS);
        let next = after === undefined ? newest() : (after - FIRST_BAR) / MINUTE + 1;
        const post = (message: LiveMessage): void => port1.postMessage(message);
        const send = (): void => {
          for (; next <= newest(); next += 1) {
            const bars = Object.fromEntries(symbols.map((symbol) => [symbol, candleAt(next)]));
            const step = { time: FIRST_BAR + next * MINUTE, bars };
            post({ item: { kind: 'data.bars', step } });
          }
          if (machine.happens(0.05)) {
            post({ error: { code: 'exchange_unavailable', message: 'the stream ended' } });
          } else timer = setTimeout(send, BAR_EVERY_MS);
        };
        let timer = setTimeout(send, 1);
        port1.on('close', () => clearTimeout(timer));
      });
      return port2;
    },
    async stop() {},
  };
}

/** Prices that make averages cross often. */
function candleAt(index: number) {
  const price = (at: number): number =>
    Number((20 + 2 * Math.sin(at) + Math.sin(at / 3)).toFixed(2));
  const [open, close] = [price(index), price(index + 1)];
  return { open, high: Math.max(open, close), low: Math.min(open, close), close, volume: 1000 };
}
