import { forkBot } from '../api/fork.ts';
import * as api from '../api/replay.ts';
import { getBotId } from '../fleet/registry/bots.ts';
import { verifyEvents } from '../events/verify-events.ts';
import { compareWithBacktest, forkRun, replayRun } from '../fleet/parity/replay.ts';
import { momentOf, serializeState } from './bot-state.ts';
import type { App, Services } from './services.ts';

export function addReplay(app: App, { tasks }: Services): void {
  const { read } = tasks.storage;

  app.openapi(api.replayBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { until_seq, until, run_id } = c.req.valid('json');
    if (run_id !== undefined) {
      return c.json(await replayRun(tasks, bot_ref, run_id), 200);
    }
    const bot_id = await getBotId(read, bot_ref);
    const { head, state, state_hash, fault, archived_seq } = await verifyEvents(
      read,
      bot_id,
      momentOf(until_seq, until, tasks.clock()),
    );
    return c.json(
      {
        ...head,
        archived_seq,
        state: state ? serializeState(state) : null,
        state_hash: state_hash ?? null,
        verified: fault === undefined,
        fault: fault ?? null,
      },
      200,
    );
  });
  app.openapi(api.compareBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const parity = await compareWithBacktest(tasks, bot_ref, c.req.valid('json'));
    return c.json(parity, 200);
  });
  app.openapi(forkBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    return c.json(await forkRun(tasks, bot_ref, c.req.valid('json')), 200);
  });
}
