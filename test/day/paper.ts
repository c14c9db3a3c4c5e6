/** Paper sessions of a simulated day: their bars, and what must hold for them. */
import { MessageChannel } from 'node:worker_threads';
import { MINUTE } from '../../src/market/bar-time.ts';
import type { LiveMarkets } from '../../src/trading/live-markets.ts';
import type { LiveMessage } from '../../src/trading/live-worker.ts';
import type { Machine } from './machine.ts';
import type { World } from './world.ts';

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

interface PaperRow {
  readonly task_id: string;
  readonly slug: string;
  readonly status: string;
  readonly ended_at: number | null;
  readonly state: string;
}

interface EventRow {
  readonly kind: string;
  readonly payload: string;
}

/** Sessions of the bots that have not ended. */
export function openPaper(world: World, slugs: readonly string[]): readonly PaperRow[] {
  return readPaper(world).filter(({ slug, ended_at }) => ended_at === null && slugs.includes(slug));
}

/** Each session takes each bar once and gives each order one number, whichever worker runs it. */
export function checkPaper(world: World): void {
  for (const { task_id, status, state } of readPaper(world)) {
    const violate = (what: string): void => world.violate(`paper session ${task_id} ${what}`);
    if (status === 'failed') violate('has failed');
    const { working } = JSON.parse(state) as { readonly working: readonly unknown[] };
    if (working.length > 0) violate('has ended with working orders');
    const events = world.records.all(
      'select kind, payload from bot_events where run_id = ? order by seq',
      task_id,
    ) as readonly EventRow[];
    const payloads = (of: string): readonly string[] =>
      events.filter(({ kind }) => kind === of).map(({ payload }) => payload);
    const times = payloads('data.bars').map((one) =>
      Date.parse((JSON.parse(one) as { readonly time: string }).time),
    );
    if (times.some((time, at) => at > 0 && time !== times[at - 1]! + MINUTE)) {
      violate('has lost or repeated a bar');
    }
    const orders = payloads('order.submitted');
    if (new Set(orders).size < orders.length) violate('has submitted an order twice');
    if (events.findIndex(({ kind }) => kind === 'run.ended') < events.length - 1) {
      violate('continues after its end');
    }
    world.note(`paper ${task_id} ${status}: ${times.length} bars, ${orders.length} orders`);
  }
}

function readPaper({ records }: World): readonly PaperRow[] {
  return records.all(
    `select tasks.task_id, bots.slug, tasks.status, tasks.ended_at, s.state
     from tasks join bots on bots.bot_id = tasks.bot_id
     join trading_sessions s on s.task_id = tasks.task_id
     where tasks.kind = 'paper' order by tasks.task_id`,
  ) as readonly PaperRow[];
}
