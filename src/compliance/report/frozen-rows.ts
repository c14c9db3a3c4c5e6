/** Rows of frozen validation reports. */
import { ServiceError } from '../../base/errors.ts';
import { getBotId } from '../../fleet/registry/bots.ts';
import type { Db, ValidationReportsTable } from '../../storage/tables.ts';

/** Selects all versions of a bot, newest first. */
export function selectVersions(db: Db, bot_id: string) {
  return db
    .selectFrom('validation_reports')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .orderBy('version', 'desc');
}

/** @throws ServiceError `not_found` for the bot or the version. */
export async function getRow(
  db: Db,
  ref: string,
  version: number,
): Promise<ValidationReportsTable> {
  const all = selectVersions(db, await getBotId(db, ref));
  const row = await all.where('version', '=', version).executeTakeFirst();
  if (row !== undefined) return row;
  const message = `bot ${ref} has no validation report with version ${version}`;
  throw new ServiceError('not_found', message, {
    remedy: `List the versions with \`service-local bots validation-report list ${ref}\`.`,
  });
}

export async function findNewest(db: Db, bot_id: string, year: number) {
  return selectVersions(db, bot_id).where('year', '=', year).limit(1).executeTakeFirst();
}
