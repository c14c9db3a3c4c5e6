/** Searches of clients whose trials run on the workers of this database, and their inputs. */
import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../../base/errors.ts';
import { DAY } from '../../base/durations.ts';
import { packageVersion } from '../../base/package-version.ts';
import { currentTraceparent } from '../../base/tracing.ts';
import type { EncodedInput } from '../../backtest/shards/search-input.ts';
import { requireRoomForParts, requireRoomForSearch } from './search-quotas.ts';
import type { CodeLimits } from '../../trading/sandbox/hosted-run.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, SearchesTable } from '../../storage/tables.ts';

export interface SearchService extends StorageService {
  /** Undefined if the server runs no custom code. */
  readonly customCode?: CodeLimits | undefined;
}

/** Changes of searches wait for each other, and not for other writes. */
export const SEARCH_WRITE = { scope: 'searches' } as const;

/** A search that its client has not used for this long is deleted, with its results. */
const KEPT_MS = 7 * DAY;

export type Search = Readonly<
  Pick<SearchesTable, 'search_id' | 'digest' | 'title' | 'created_by' | 'created_at' | 'used_at'>
>;

export interface NewSearch {
  readonly digest: string;
  readonly title: string;
  /** Version of the client's package. */
  readonly package: string;
  /** Whether the strategy is custom code. */
  readonly has_code: boolean;
}

/**
 * Creates a search, or returns the one that an interrupted command of the same caller left.
 * @throws ServiceError `conflict` for another version of the package or too many searches; `not_allowed`
 *   for custom code if it is disabled
 */
export async function openSearch(
  { storage, clock, customCode }: SearchService,
  by: string,
  { digest, title, package: version, has_code }: NewSearch,
): Promise<Pick<Search, 'search_id'>> {
  const own = packageVersion();
  if (version !== own) {
    throw new ServiceError(
      'conflict',
      `the server runs version ${own}, and the client ${version}`,
      {
        reason: 'version_differs',
        remedy: `Install version ${own} of service-local: other versions may calculate other figures.`,
      },
    );
  }
  if (has_code && customCode === undefined) throw codeIsOff();
  const now = clock();
  return storage.write(async (tx) => {
    const found = await tx
      .selectFrom('searches')
      .select('search_id')
      .where('digest', '=', digest)
      .where('package', '=', version)
      .where('created_by', '=', by)
      .executeTakeFirst();
    if (found !== undefined) {
      await touch(tx, found.search_id, by, now);
      return found;
    }
    await requireRoomForSearch(tx, by);
    const search_id = uuidv7({ msecs: now });
    const times = { created_at: now, used_at: now };
    await tx
      .insertInto('searches')
      .values({
        search_id,
        digest,
        title,
        package: version,
        created_by: by,
        ended_count: 0,
        traceparent: currentTraceparent(),
        ...times,
      })
      .execute();
    return { search_id };
  }, SEARCH_WRITE);
}

export function codeIsOff(): ServiceError {
  return new ServiceError('not_allowed', 'this server does not run custom code', {
    reason: 'custom_code_off',
    remedy:
      'Start the server and its workers with `--custom-code true`, or run the search on this machine.',
  });
}

/**
 * Records a request of the owner of a search.
 * @throws ServiceError `not_found`; `not_allowed` for the search of another administrator
 */
export async function touch(tx: Db, search_id: string, by: string, now: number): Promise<void> {
  await requireOwner(tx, search_id, by);
  await tx
    .updateTable('searches')
    .set({ used_at: now })
    .where('search_id', '=', search_id)
    .execute();
}

async function requireOwner(tx: Db, search_id: string, by: string): Promise<void> {
  const search = await tx
    .selectFrom('searches')
    .select('created_by')
    .where('search_id', '=', search_id)
    .executeTakeFirst();
  if (search === undefined) throw unknownSearch(search_id);
  if (search.created_by === by) return;
  throw new ServiceError(
    'not_allowed',
    `the search ${search_id} belongs to another administrator`,
    {
      reason: 'not_owner',
      remedy: 'Ask its owner, or cancel it with a token that has the scope admin.',
    },
  );
}

/** @throws ServiceError `not_found` */
export async function refuseUnknownSearch(
  db: Db,
  search_id: string,
  remedy?: string,
): Promise<void> {
  const row = await db
    .selectFrom('searches')
    .select('search_id')
    .where('search_id', '=', search_id)
    .executeTakeFirst();
  if (row === undefined) throw unknownSearch(search_id, remedy);
}

function unknownSearch(
  search_id: string,
  remedy = 'It was canceled or not used for a week. Run the command again.',
): ServiceError {
  return new ServiceError('not_found', `there is no search ${search_id}`, { remedy });
}

export interface SearchProgress extends Search {
  readonly queued: number;
  readonly running: number;
  readonly ended: number;
  readonly failed: number;
}

/** All searches with the number of their shards, oldest first. */
export async function listSearches(db: Db): Promise<SearchProgress[]> {
  const rows = await db.selectFrom('searches').selectAll().orderBy('search_id').execute();
  const counts = await db
    .selectFrom('search_shards')
    .select(['search_id', 'status', ({ fn }) => fn.countAll().as('count')])
    .groupBy(['search_id', 'status'])
    .execute();
  return rows.map(({ search_id, digest, title, created_by, created_at, used_at }) => {
    const search = { search_id, digest, title, created_by, created_at, used_at };
    const count = (status: string): number =>
      Number(
        counts.find((one) => one.search_id === search_id && one.status === status)?.count ?? 0,
      );
    return {
      ...search,
      queued: count('queued'),
      running: count('running'),
      ended: count('success'),
      failed: count('failed'),
    };
  });
}

/**
 * Deletes a search. Its workers stop at their next heartbeat.
 *
 * @param owner required owner of the search; undefined if any caller may delete it
 * @throws ServiceError `not_found`; `not_allowed` for the search of another administrator
 */
export async function deleteSearch(
  { storage }: SearchService,
  search_id: string,
  owner: string | undefined,
): Promise<void> {
  await storage.write(async (tx) => {
    await refuseUnknownSearch(tx, search_id, 'See `service-local searches list`.');
    if (owner !== undefined) await requireOwner(tx, search_id, owner);
    await drop(tx, [search_id]);
  }, SEARCH_WRITE);
}

/** Deletes the searches that no client has used for a week. */
export async function expireSearches({ storage, clock }: SearchService): Promise<void> {
  const before = clock() - KEPT_MS;
  const find = (db: Db) =>
    db.selectFrom('searches').select('search_id').where('used_at', '<', before).execute();
  if ((await find(storage.read)).length === 0) return;
  await storage.write(async (tx) => {
    await drop(
      tx,
      (await find(tx)).map(({ search_id }) => search_id),
    );
  }, SEARCH_WRITE);
}

async function drop(tx: Db, search_ids: readonly string[]): Promise<void> {
  if (search_ids.length === 0) return;
  for (const table of ['search_shards', 'search_inputs', 'searches'] as const) {
    await tx.deleteFrom(table).where('search_id', 'in', search_ids).execute();
  }
}

export interface InputPart {
  readonly search_id: string;
  readonly digest: string;
  readonly place: number;
  readonly parts: number;
  /** In base64. */
  readonly data: string;
}

/**
 * Stores a part of an input, once.
 * @throws ServiceError as `touch`; `conflict` for a wrong number of parts, or too many
 */
export async function storePart(
  { storage, clock }: SearchService,
  by: string,
  part: InputPart,
): Promise<void> {
  const { search_id, digest, parts, place } = part;
  await storage.write(async (tx) => {
    await touch(tx, search_id, by, clock());
    const stored = await tx
      .selectFrom('search_inputs')
      .select('parts')
      .where('search_id', '=', search_id)
      .where('digest', '=', digest)
      .limit(1)
      .executeTakeFirst();
    if (place >= parts || (stored !== undefined && stored.parts !== parts)) {
      throw new ServiceError('conflict', `the input ${digest} does not have ${parts} parts`, {
        reason: 'other_parts',
        remedy: 'Send the same number of parts with each part, and number them from 0.',
      });
    }
    if (stored === undefined) await requireRoomForParts(tx, by, parts);
    await tx
      .insertInto('search_inputs')
      .values(part)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }, SEARCH_WRITE);
}

/** Whether all parts of an input are stored. */
export async function hasInput(db: Db, search_id: string, digest: string): Promise<boolean> {
  const { stored, parts } = await db
    .selectFrom('search_inputs')
    .select(({ fn }) => [fn.countAll().as('stored'), fn.max('parts').as('parts')])
    .where('search_id', '=', search_id)
    .where('digest', '=', digest)
    .executeTakeFirstOrThrow();
  return parts !== null && Number(stored) === parts;
}

/** Reads a stored input, part by part. */
export async function readInput(db: Db, search_id: string, digest: string): Promise<EncodedInput> {
  const parts: Buffer[] = [];
  for (let place = 0; ; place += 1) {
    const part = await db
      .selectFrom('search_inputs')
      .select('data')
      .where('search_id', '=', search_id)
      .where('digest', '=', digest)
      .where('place', '=', place)
      .executeTakeFirst();
    if (part === undefined) return { digest, bytes: Buffer.concat(parts) };
    parts.push(Buffer.from(part.data, 'base64'));
  }
}
