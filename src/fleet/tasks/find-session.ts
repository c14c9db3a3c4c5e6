import { ServiceError } from '../../base/errors.ts';
import { archivedRunError } from '../../events/archive/archived-events.ts';
import { readRows } from '../../events/read-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { Db } from '../../storage/tables.ts';
import { getBotId } from '../registry/bots.ts';
import { getTask, type Task } from './tasks.ts';

/** A trading session as last recorded in the log of its bot. */
export interface FoundSession {
  readonly task: Task;
  /** State after its newest batch. */
  readonly state: SessionState;
}

/**
 * Finds a trading session of a bot, by default the one that recorded the newest state.
 *
 * @throws ServiceError `not_found` for an unknown bot, or one without the session in its log;
 * `archived` if the session may have begun by the last archived event.
 */
export async function findSession(db: Db, ref: string, run_id?: string): Promise<FoundSession> {
  const bot_id = await getBotId(db, ref);
  const newest = { after_seq: 0, kinds: ['session.state'], run_id, last: true, limit: 1 };
  const { rows, archived_seq } = await readRows(db, bot_id, newest);
  const [row] = rows;
  if (row === undefined) {
    if (archived_seq > 0 && run_id !== undefined) throw await archivedRunError(db, bot_id, run_id);
    const which = run_id === undefined ? 'no trading session' : `no trading session ${run_id}`;
    throw new ServiceError('not_found', `the log of bot ${ref} has ${which}`, {
      remedy: `List the runs with \`service-local bots deployments ${ref}\`.`,
    });
  }
  const task = await getTask(db, row.run_id!);
  return { task, state: JSON.parse(row.payload) as SessionState };
}
