/** Halts of one bot or of all bots, in force until lifted. Times are milliseconds since the Unix epoch. */
import { sql } from 'kysely';
import type { BotRegistry } from '../registry/bots.ts';
import type { Log } from '../../base/log.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { Db, HaltsTable } from '../../storage/tables.ts';
import type { TaskRunner } from '../tasks/task-runner.ts';

export interface HaltService extends BotRegistry, Pick<TaskRunner, 'release' | 'wake'> {
  readonly log: Pick<Log, 'warn'>;
}

export type Halt = Readonly<HaltsTable>;

/** Finds the halt in force of a bot, or with null that of all bots. */
export async function findInForce(tx: Db, bot_id: string | null): Promise<Halt | undefined> {
  return tx
    .selectFrom('halts')
    .selectAll()
    .where('lifted_at', 'is', null)
    .where('bot_id', bot_id === null ? 'is' : '=', bot_id)
    .executeTakeFirst();
}

export interface ListedHalt extends Halt {
  readonly deployments: number;
}

/** Lists halts: first those in force, newest first, then lifted ones. */
export async function listHalts(db: Db, request: PageRequest): Promise<Page<ListedHalt>> {
  return readPage(['halts'], request, placeOf, async (after, limit) => {
    const isLifted = sql<number>`case when lifted_at is null then 0 else 1 end`;
    let query = listed(db).orderBy(isLifted).orderBy('halt_id', 'desc').limit(limit);
    if (after !== undefined) {
      const [lifted, halt_id] = after.split('.') as [string, string];
      query = query.where((is) =>
        is.or([
          is(isLifted, '>', Number(lifted)),
          is.and([is(isLifted, '=', Number(lifted)), is('halt_id', '<', halt_id)]),
        ]),
      );
    }
    return query.execute();
  });
}

export function getHalt(db: Db, halt_id: string): Promise<ListedHalt> {
  return listed(db).where('halt_id', '=', halt_id).executeTakeFirstOrThrow();
}

function listed(db: Db) {
  return db
    .selectFrom('halts')
    .selectAll()
    .select((halt) =>
      halt
        .selectFrom('halted_deployments')
        .whereRef('halted_deployments.halt_id', '=', 'halts.halt_id')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .$asScalar()
        .$notNull()
        .as('deployments'),
    );
}

function placeOf({ lifted_at, halt_id }: Halt): string {
  return `${lifted_at === null ? 0 : 1}.${halt_id}`;
}
