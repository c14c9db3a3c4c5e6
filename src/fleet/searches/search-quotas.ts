/** Quotas for the searches of one administrator in the database. */
import { ServiceError } from '../../base/errors.ts';
import type { Db } from '../../storage/tables.ts';

const MOST_SEARCHES = 20;
/** Parts of inputs in all searches, of at most 192 KiB each: 3 GiB. */
const MOST_PARTS = 16_384;
/** Shards of a search that wait, run or have ended, without those that the client has received. */
const MOST_SHARDS = 4096;

/** @throws ServiceError `conflict`, reason `quota`, if the administrator may not open another search */
export async function requireRoomForSearch(tx: Db, by: string): Promise<void> {
  const { count } = await tx
    .selectFrom('searches')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('created_by', '=', by)
    .executeTakeFirstOrThrow();
  if (count >= MOST_SEARCHES) throw exceeded(`you would have more than ${MOST_SEARCHES} searches`);
}

/**
 * @param parts number of parts of an input of which none is stored yet
 * @throws ServiceError `conflict`, reason `quota`
 */
export async function requireRoomForParts(tx: Db, by: string, parts: number): Promise<void> {
  const inputs = await tx
    .selectFrom('search_inputs')
    .innerJoin('searches', 'searches.search_id', 'search_inputs.search_id')
    .select(['search_inputs.search_id', 'search_inputs.digest', 'parts'])
    .distinct()
    .where('created_by', '=', by)
    .execute();
  const stored = inputs.reduce((sum, input) => sum + input.parts, 0);
  if (stored + parts > MOST_PARTS) {
    throw exceeded(`the inputs of your searches would have more than ${MOST_PARTS} parts`);
  }
}

/** @throws ServiceError `conflict`, reason `quota` */
export async function requireFewShards(tx: Db, search_id: string): Promise<void> {
  const { count } = await tx
    .selectFrom('search_shards')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('search_id', '=', search_id)
    .executeTakeFirstOrThrow();
  if (count > MOST_SHARDS) throw exceeded(`the search would keep more than ${MOST_SHARDS} shards`);
}

function exceeded(what: string): ServiceError {
  return new ServiceError('conflict', what, {
    reason: 'quota',
    remedy:
      'List your searches with `service-local searches list`, and cancel those that you do not need with `service-local searches cancel`.',
  });
}
