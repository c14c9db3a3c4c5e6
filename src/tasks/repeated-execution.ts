import { ServiceError } from '../errors.ts';
import type { Db } from '../storage/tables.ts';

/** That a session of a bot executed too often what its risk limits for repeated execution are about. */
export interface ExecutionLatch {
  /** Of the event that tells of it. */
  readonly event_seq: number;
  /** Task of the session. */
  readonly run_id: string;
  /** When it was recorded, milliseconds since the Unix epoch. */
  readonly latched_at: number;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  /** Orders executed within so many seconds. */
  readonly count: number;
  readonly seconds: number;
  /** Whether the session has not ended. */
  readonly active: boolean;
}

/** What is to be told when a person enables a bot again. */
export const RE_ENABLED = 'control.re_enabled';

/** Those that nobody has looked at yet, oldest first. The log of the bot is all that keeps them. */
export async function latchesInForce(tx: Db, bot_id: string): Promise<readonly ExecutionLatch[]> {
  const rows = await tx
    .selectFrom('bot_events as event')
    .innerJoin('bot_deployments as deployment', 'deployment.task_id', 'event.run_id')
    .select(['event.seq', 'event.run_id', 'event.recorded_at', 'event.payload'])
    .select('deployment.ended_at')
    .where('event.bot_id', '=', bot_id)
    .where('event.kind', '=', 'account.latched')
    .where('event.seq', '>', (is) =>
      is
        .selectFrom('bot_events')
        .select(is.fn.coalesce(is.fn.max('seq'), is.val(0)).as('seq'))
        .where('bot_id', '=', bot_id)
        .where('kind', '=', RE_ENABLED),
    )
    .orderBy('event.seq')
    .execute();
  return rows.map(({ seq, run_id, recorded_at, payload, ended_at }) => {
    const told = JSON.parse(payload) as Pick<
      ExecutionLatch,
      'symbol' | 'side' | 'count' | 'seconds'
    >;
    const { symbol, side, count, seconds } = told;
    return {
      event_seq: seq,
      run_id: run_id!,
      latched_at: recorded_at,
      symbol,
      side,
      count,
      seconds,
      active: ended_at === null,
    };
  });
}

/** @throws ServiceError `conflict` with the reason `latched` for a bot that nobody has re-enabled. */
export async function refuseLatched(tx: Db, bot_id: string): Promise<void> {
  const latch = (await latchesInForce(tx, bot_id)).at(-1);
  if (latch === undefined) return;
  const { count, side, symbol, seconds } = latch;
  throw new ServiceError(
    'conflict',
    `the bot is latched: it executed ${count} orders to ${side} ${symbol} within ${seconds} s`,
    {
      reason: 'latched',
      remedy: `See \`service-local bots events ${bot_id} --kind account.latched\` for what it did, and let it trade again with \`service-local bots re-enable ${bot_id} --reason "…"\`.`,
    },
  );
}
