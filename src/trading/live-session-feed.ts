import { setTimeout as delay } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { backoffMs } from '../base/backoff.ts';
import { ServiceError } from '../base/errors.ts';
import { findMissing } from '../market/data-gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { liveItems } from './live-markets.ts';
import type { SessionFeed } from './feed.ts';

const REOPEN = { shortestMs: 250, longestMs: 60_000 };

/**
 * Feeds live bars to a session without end. Opens another port after a failure that is retryable.
 *
 * @param open see `LiveMarkets`.
 */
export function liveSessionFeed(
  open: () => Promise<MessagePort>,
  exchange: string,
  timeframe: Timeframe,
  notes: readonly string[],
): SessionFeed {
  return {
    total: null,
    barMs: timeframe.ms,
    notes: [`The bars came from ${exchange} as they closed.`, ...notes],
    async *items(after, signal) {
      let last = after;
      for (let failures = 1; ; failures += 1) {
        try {
          for await (const item of liveItems(await open(), last, signal)) {
            failures = 0;
            if (item.kind === 'data.bars') last = item.step.time;
            yield item;
          }
        } catch (error) {
          if (signal.aborted || !(error instanceof ServiceError && error.retryable)) throw error;
        }
        const wait = delay(backoffMs(failures, REOPEN, Math.random()), undefined, { signal });
        await wait.catch(() => signal.throwIfAborted());
      }
    },
    source: (_symbol, taken) => ({ bars: taken.length, missing: findMissing(taken, timeframe) }),
  };
}
