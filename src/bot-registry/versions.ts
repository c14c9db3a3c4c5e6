import { diffDocuments, type Change } from '../bots/diff.ts';
import { ServiceError } from '../errors.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { BotVersionsTable, Db } from '../storage/tables.ts';
import { botIdOf } from './bots.ts';

/** What lists show of a version. Times are milliseconds since the Unix epoch. */
export type BotVersionRow = Readonly<
  Pick<BotVersionsTable, 'version' | 'hash' | 'created_at' | 'created_by'>
>;

export interface BotVersion extends BotVersionRow {
  /** JSON: the spec as its author wrote it. */
  readonly document: string;
}

const SUMMARY = ['version', 'hash', 'created_at', 'created_by'] as const;

/**
 * The versions of a bot, the newest first.
 * @throws ServiceError `not_found`; `invalid_request` for a cursor of another list.
 */
export async function listVersions(
  db: Db,
  ref: string,
  request: PageRequest,
): Promise<Page<BotVersionRow>> {
  const bot_id = await botIdOf(db, ref);
  return readPage(
    ['versions', bot_id],
    request,
    ({ version }) => String(version),
    async (after, limit) => {
      const query = db
        .selectFrom('bot_versions')
        .select(SUMMARY)
        .where('bot_id', '=', bot_id)
        .orderBy('version', 'desc')
        .limit(limit);
      return (after === undefined ? query : query.where('version', '<', Number(after))).execute();
    },
  );
}

/** @throws ServiceError `not_found` for the bot, or the version. */
export async function getVersion(db: Db, ref: string, version: number): Promise<BotVersion> {
  const bot_id = await botIdOf(db, ref);
  const found = await db
    .selectFrom('bot_versions')
    .select([...SUMMARY, 'document'])
    .where('bot_id', '=', bot_id)
    .where('version', '=', version)
    .executeTakeFirst();
  if (found !== undefined) return found;
  throw new ServiceError('not_found', `the bot ${ref} has no version ${version}`, {
    remedy: `See \`service-local bots versions ${ref}\`.`,
  });
}

/**
 * What differs between two versions of a bot.
 * @throws ServiceError `not_found` for the bot, or a version.
 */
export async function diffVersions(
  db: Db,
  ref: string,
  from: number,
  to: number,
): Promise<Change[]> {
  const before = await getVersion(db, ref, from);
  const after = await getVersion(db, ref, to);
  return diffDocuments(JSON.parse(before.document), JSON.parse(after.document));
}
