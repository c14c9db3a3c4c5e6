import type { Db } from '../../storage/tables.ts';
import type { Halt } from './halts.ts';

/** Position in the order by bot and deployment, which is that of the index. */
export interface Place {
  readonly bot_id: string;
  readonly deployment_id: string;
}

export const START: Place = { bot_id: '', deployment_id: '' };

/** Selects the active paper sessions that a halt covers, from `after` (exclusive) to `until` (inclusive). */
export function selectSessions(
  db: Db,
  { bot_id }: Pick<Halt, 'bot_id'>,
  after: Place,
  until?: Place,
) {
  let query = db
    .selectFrom('bot_deployments as deployment')
    .where('deployment.ended_at', 'is', null)
    .where('deployment.target', '=', 'paper')
    .where((is) =>
      is(
        is.refTuple('deployment.bot_id', 'deployment.deployment_id'),
        '>',
        is.tuple(after.bot_id, after.deployment_id),
      ),
    );
  if (bot_id !== null) query = query.where('deployment.bot_id', '=', bot_id);
  if (until === undefined) return query;
  return query.where((is) =>
    is(
      is.refTuple('deployment.bot_id', 'deployment.deployment_id'),
      '<=',
      is.tuple(until.bot_id, until.deployment_id),
    ),
  );
}

export async function findFirstSession(
  db: Db,
  halt: Pick<Halt, 'bot_id'>,
  after: Place,
): Promise<Place | undefined> {
  return selectSessions(db, halt, after)
    .select(['deployment.bot_id', 'deployment.deployment_id'])
    .orderBy('deployment.bot_id')
    .orderBy('deployment.deployment_id')
    .limit(1)
    .executeTakeFirst();
}
