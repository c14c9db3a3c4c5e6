import { sql } from 'kysely';
import { appendEvents } from '../../../src/events/append.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { CREATED } from '../../events/bots.ts';
import { makeSessions } from '../../fleet/halts/sessions.ts';
import { tradingDocument } from '../trader.ts';

/** Slug of a bot of `addManyBots`, the only one with backtests that has events. */
export const ONE_OF_MANY = 'many-1';
const ITS_ID = '0198c0de-0001-7000-8000-000000000001';

/**
 * Adds bots whose backtests have ended, a twentieth of them with an error, and others with a running
 * paper session each. SQLite only.
 * @param now milliseconds since the Unix epoch; the newest run ended a minute before.
 */
export async function addManyBots(
  storage: Storage,
  now: number,
  { bots, runs, running }: Readonly<Record<'bots' | 'runs' | 'running', number>>,
): Promise<void> {
  await makeSessions(storage, { count: running, slug: 'running' });
  const document = JSON.stringify(tradingDocument(ONE_OF_MANY, 'SPX', '1d', 10));
  const id = (kind: number, n: 'i' | 'i % bots') =>
    sql.raw<string>(`printf('0198c0de-000${kind}-7000-8000-%012x', ${n})`);
  const numbers = (count: number) => sql`with recursive n (i, bots) as (
    select 0, ${bots - running} union all select i + 1, bots from n where i < ${count - 1})`;
  const ago = sql`(${now} - (${runs} - i) * 60000)`;
  const isFailed = sql`i % 20 = 0`;
  const metrics = sql`json_object('metrics', json_object(
    'total_return', (i * 7919 % 1000) / 1000.0,
    'sharpe', (i * 104729 % 5000) / 1000.0 - 2,
    'max_drawdown', -(i * 1299709 % 900) / 1000.0))`;
  const rows = numbers(bots - running);
  const runRows = numbers(runs);
  const [bot, botOfRun] = [id(1, 'i'), id(1, 'i % bots')];
  await storage.write(async (tx) => {
    for (const statement of [
      sql`insert into bots (bot_id, slug, name, kind, status, current_version, created_at, updated_at,
          event_seq, event_hash) ${rows}
        select ${bot}, 'many-' || i, 'Strategy ' || i, 'trading', 'active', 1, ${now}, ${now}, 0,
          '${sql.raw('0'.repeat(64))}' from n`,
      sql`insert into bot_versions (bot_id, version, hash, document, created_at, created_by) ${rows}
        select ${bot}, 1, 'none', ${document}, ${now}, 'operator' from n`,
      sql`insert into bot_deployments (deployment_id, bot_id, version, target, status, task_id,
          result_summary, created_at, ended_at) ${runRows}
        select ${id(2, 'i')}, ${botOfRun}, 1, 'backtest', iif(${isFailed}, 'failed', 'success'),
          ${id(3, 'i')}, iif(${isFailed}, null, ${metrics}), ${ago}, ${ago} from n`,
      sql`insert into tasks (task_id, kind, bot_id, version, deployment_id, status, input,
          progress_done, attempts, needs_level, created_by, created_at, started_at, ended_at) ${runRows}
        select ${id(3, 'i')}, 'backtest', ${botOfRun}, 1, ${id(2, 'i')},
          iif(${isFailed}, 'failed', 'success'), '{}', 1, 1, 1, 'operator', ${ago}, ${ago}, ${ago}
        from n`,
    ]) {
      await statement.execute(tx);
    }
    await appendEvents(tx, ITS_ID, now, [CREATED]);
  });
}
