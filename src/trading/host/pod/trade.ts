import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../base/errors.ts';
import { reportEnd } from './report-end.ts';
import { PodRunner } from './pod-runner.ts';
import type { RunEnd, TradeOptions } from './trade-options.ts';

const TICK_MS = 1000;
/** Time for closing connections after everything was reported, ms. */
const CLOSE_WITHIN_MS = 2000;

/** Trades for a deployment until it ends or is stopped. */
export async function trade(options: TradeOptions): Promise<RunEnd> {
  const { journal, stop, onView } = options;
  const closing = new AbortController();
  const runner = new PodRunner(options, closing.signal);
  const { hosted } = runner;
  onView(runner.status);
  const tick = setInterval(() => runner.post({ kind: 'ticked' }), TICK_MS);
  // Another process may resume the session.
  const onStop = (): void => runner.post({ kind: 'stop_requested', isFinal: false });
  stop.addEventListener('abort', onStop);
  if (stop.aborted) onStop();
  try {
    while (hosted.life.claim !== 'fenced' && hosted.life.verified === undefined) {
      await runner.turn();
    }
    if (hosted.life.claim !== 'fenced') return await reportEnd(runner, options);
    const state = hosted.session?.state() ?? journal.state;
    const nothing = { verified: false, orders: [], error: undefined };
    return { outcome: 'fenced', ...nothing, state, steps: journal.steps };
  } finally {
    clearInterval(tick);
    stop.removeEventListener('abort', onStop);
    closing.abort(new ServiceError('interrupted', 'the runner ends'));
    await Promise.race([runner.close(), delay(CLOSE_WITHIN_MS, undefined, { ref: false })]);
  }
}
