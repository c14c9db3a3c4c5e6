import { sql } from 'kysely';
import { getBot } from '../registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendEvents } from '../../events/append.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { listLatches, RE_ENABLED, type ExecutionLatch } from '../tasks/latches.ts';
import type { HaltService } from './halts.ts';

export interface ReEnabled {
  readonly bot_id: string;
  readonly latches: readonly ExecutionLatch[];
  /** Milliseconds since the Unix epoch. */
  readonly re_enabled_at: number;
  readonly re_enabled_by: Actor;
}

/**
 * Lifts the latches of a bot: sessions may start, and active sessions accept orders with their next
 * update. The count of repeated executions restarts.
 *
 * @throws ServiceError `not_found`; `conflict` when the bot is not latched.
 */
export function reEnableBot(
  { storage, clock }: Pick<HaltService, 'storage' | 'clock'>,
  by: Actor,
  ref: string,
  reason: string,
): Promise<ReEnabled> {
  return storage.write(async (tx) => {
    const { bot_id, slug, current_version: version } = await getBot(tx, ref);
    const latches = await listLatches(tx, bot_id);
    if (latches.length === 0) {
      throw new ServiceError('conflict', `bot ${slug} is not latched`, {
        reason: 'not_latched',
        remedy: `See \`service-local bots events ${slug} --kind account.latched\`.`,
      });
    }
    const now = clock();
    const events = latches.map(({ event_seq }) => event_seq);
    await appendAudit(tx, now, {
      actor: by,
      action: 'bots.re_enable',
      target: `bot:${bot_id}`,
      details: { control: latches.at(-1)!.control, events, reason },
    });
    await appendEvents(tx, bot_id, now, [
      {
        kind: RE_ENABLED,
        version,
        occurred_at: now,
        payload: { control: latches.at(-1)!.control, events, reason, by },
      },
    ]);
    const lifted = Map.groupBy(latches, ({ run_id }) => run_id);
    for (const [task_id, ofSession] of lifted) {
      await tx
        .updateTable('trading_sessions')
        .set((of) => ({
          latches_lifted: sql<number>`${of.ref('latches_lifted')} + ${ofSession.length}`,
        }))
        .where('task_id', '=', task_id)
        .execute();
    }
    return { bot_id, latches, re_enabled_at: now, re_enabled_by: by };
  });
}
