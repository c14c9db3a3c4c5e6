/** Archives of the events of all bots, for the commands that run beside a server. */
import { join } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { withLock } from '../base/file-lock.ts';
import { formatCountOf } from '../base/format.ts';
import { deleteUnusedBars } from '../events/archive/unused-bars.ts';
import { archiveBot, type Archive, type FiledPart } from '../fleet/archive/archive-bot.ts';
import { restoreBot } from '../fleet/archive/restore-bot.ts';
import { listMissingFiles, verifyBot, type VerifiedBot } from '../fleet/archive/verify-archive.ts';
import { getBotId } from '../fleet/registry/bots.ts';
import type { Db } from '../storage/tables.ts';

/** Wait for another command on the same directory. */
const LOCK_WAIT_MS = 1_000;

/** Runs `work` while no other command changes the directory of archives. */
function exclusively<T>({ directory }: Archive, work: () => Promise<T>): Promise<T> {
  return withLock(join(directory, '.lock'), LOCK_WAIT_MS, work);
}

/**
 * Archives the events of one bot, or of all bots, from before a month.
 *
 * @param before start of the month, ms since the Unix epoch.
 * @param onPart called with each archived part.
 * @throws ServiceError `not_found` for an unknown bot; `file_not_found` if the directory lacks earlier
 *   files; otherwise as `archiveBot`, after which other bots are not archived.
 */
export async function archiveEvents(
  archive: Archive,
  bot_ref: string | undefined,
  before: number,
  onPart: (part: FiledPart) => void,
): Promise<void> {
  await exclusively(archive, async () => {
    await refuseOtherDirectory(archive);
    for (const bot_id of await listBotIds(archive.storage.read, bot_ref)) {
      for await (const part of archiveBot(archive, bot_id, before)) onPart(part);
    }
    await deleteUnusedBars(archive.storage);
  });
}

/** Refuses a directory without the files of earlier archives, such as an empty or a wrong one. */
async function refuseOtherDirectory({ storage, directory }: Archive): Promise<void> {
  const missing = await listMissingFiles(storage.read, directory);
  if (missing.length === 0) return;
  const files = formatCountOf(missing.length, 'file');
  throw new ServiceError(
    'file_not_found',
    `${directory} lacks ${files} of events that are archived already, such as ${missing[0]!}`,
    {
      remedy:
        'Choose the directory of the earlier archives with --event-archive-dir, or copy the files from a backup. No event was removed from the database.',
    },
  );
}

/** Restores archived events of a bot; see `restoreBot`. */
export async function restoreEvents(
  archive: Archive,
  bot_ref: string,
  month: string | undefined,
  onPart: (part: FiledPart) => void,
): Promise<void> {
  await exclusively(archive, async () => {
    const bot_id = await getBotId(archive.storage.read, bot_ref);
    for await (const part of restoreBot(archive, bot_id, month)) onPart(part);
  });
}

/** Verifies the whole log of one bot, or of all bots. */
export async function* verifyLogs(
  archive: Omit<Archive, 'clock'>,
  bot_ref: string | undefined,
): AsyncGenerator<VerifiedBot, void, void> {
  for (const bot_id of await listBotIds(archive.storage.read, bot_ref)) {
    yield verifyBot(archive, bot_id);
  }
}

async function listBotIds(db: Db, bot_ref: string | undefined): Promise<string[]> {
  if (bot_ref !== undefined) return [await getBotId(db, bot_ref)];
  const rows = await db.selectFrom('bots').select('bot_id').orderBy('bot_id').execute();
  return rows.map(({ bot_id }) => bot_id);
}
