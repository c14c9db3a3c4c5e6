import { ServiceError } from '../../base/errors.ts';
import type { Db } from '../../storage/tables.ts';
import type { BotRow } from '../registry/bots.ts';

/**
 * Latches: a session may place no orders until a person re-enables the bot, because it reached its
 * `repeated_execution` limit, or because holdings are missing from its account at the venue.
 */
export interface ExecutionLatch {
  /** Sequence number of the event that recorded the latch. */
  readonly event_seq: number;
  /** Task of the session. */
  readonly run_id: string;
  /** Milliseconds since the Unix epoch. */
  readonly latched_at: number;
  readonly control: 'repeated_execution' | 'reconciliation';
  /** Set for `repeated_execution`; null for `reconciliation`. */
  readonly symbol: string | null;
  readonly side: 'buy' | 'sell' | null;
  /** Number of orders executed within `seconds`. */
  readonly count: number | null;
  readonly seconds: number | null;
  /** Whether the session has not ended. */
  readonly active: boolean;
}

/** Kind of the event that records a latch. */
export const LATCHED = 'account.latched';
/** Kind of the event that lifts all latches of a bot. */
export const RE_ENABLED = 'control.re_enabled';

/** Reads the latches that no person has lifted from the log of the bot, oldest first. */
export async function listLatches(tx: Db, bot_id: string): Promise<readonly ExecutionLatch[]> {
  const rows = await tx
    .selectFrom('bot_events as event')
    .innerJoin('bot_deployments as deployment', 'deployment.task_id', 'event.run_id')
    .select(['event.seq', 'event.run_id', 'event.recorded_at', 'event.payload'])
    .select('deployment.ended_at')
    .where('event.bot_id', '=', bot_id)
    .where('event.kind', '=', LATCHED)
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
    const latch = JSON.parse(payload) as Partial<ExecutionLatch>;
    const { symbol = null, side = null, count = null, seconds = null } = latch;
    const control =
      latch.control === 'reconciliation' ? latch.control : ('repeated_execution' as const);
    return {
      event_seq: seq,
      run_id: run_id!,
      latched_at: recorded_at,
      control,
      symbol,
      side,
      count,
      seconds,
      active: ended_at === null,
    };
  });
}

export async function refuseLatched(
  tx: Db,
  { bot_id, slug }: Pick<BotRow, 'bot_id' | 'slug'>,
): Promise<void> {
  const latch = (await listLatches(tx, bot_id)).at(-1);
  if (latch === undefined) return;
  const { control, count, side, symbol, seconds } = latch;
  const why =
    control === 'reconciliation'
      ? 'holdings are missing from its account at the venue'
      : `it executed ${count} orders to ${side} ${symbol} within ${seconds} s`;
  throw new ServiceError('conflict', `the bot is latched: ${why}`, {
    reason: 'latched',
    remedy: `See \`service-local bots events ${slug} --kind account.latched\` for the cause, and let the bot trade again with \`service-local bots re-enable ${slug} --reason "…"\`.`,
  });
}
