import { ServiceError } from '../../base/errors.ts';
import { restorePart } from '../../events/archive/move-events.ts';
import { appendAudit } from '../../identity/audit.ts';
import type { Archive, FiledPart } from './archive-bot.ts';
import { FILE_FAULTS } from './archive-file.ts';
import { listParts, readPart, type LogFault } from './verify-archive.ts';

/**
 * Puts the archived events of a bot back into the database, from the newest part to the first part of a
 * month. Each part is one write. The files stay.
 *
 * @param month such as `2026-01`; undefined for all events.
 * @throws ServiceError `not_found` if no event of the month is archived; `events_tampered` for a missing
 *   or altered file; `conflict`, reason `archive_moved`.
 */
export async function* restoreBot(
  { storage, directory, clock }: Archive,
  bot_id: string,
  month: string | undefined,
): AsyncGenerator<FiledPart, void, void> {
  const parts = await listParts(storage.read, bot_id);
  const first = month === undefined ? 0 : parts.findIndex((part) => part.month === month);
  if (first < 0 || parts.length === 0) throw notArchived(bot_id, month, parts);
  for (let place = parts.length - 1; place >= first; place -= 1) {
    const part = parts[place]!;
    const read = await readPart(directory, part, parts[place - 1]);
    if ('fault' in read) throw faultError(bot_id, directory, read);
    await storage.write(async (tx) => {
      await restorePart(tx, part, read.rows);
      const { month: restored, first_seq, last_seq, hash, file } = part;
      await appendAudit(tx, clock(), {
        actor: 'operator',
        action: 'server.events.restore',
        target: `bot:${bot_id}`,
        details: { month: restored, first_seq, last_seq, hash, file },
      });
    });
    yield part;
  }
}

function notArchived(
  bot_id: string,
  month: string | undefined,
  parts: readonly FiledPart[],
): ServiceError {
  const months = [...new Set(parts.map((part) => part.month))];
  const which = month === undefined ? 'no events are' : `no event of ${month} is`;
  return new ServiceError('not_found', `${which} archived for bot ${bot_id}`, {
    remedy:
      months.length === 0
        ? 'Its events are in the database.'
        : `Choose one of its archived months: ${months.join(', ')}.`,
  });
}

function faultError(
  bot_id: string,
  directory: string,
  { file, seq, fault }: LogFault,
): ServiceError {
  const what =
    fault in FILE_FAULTS
      ? `${file} in ${directory} ${FILE_FAULTS[fault as keyof typeof FILE_FAULTS]}`
      : `event ${seq} of bot ${bot_id}${file === null ? '' : ` in ${file}`} is invalid: ${fault}`;
  return new ServiceError('events_tampered', what, {
    reason: fault,
    remedy:
      file === null
        ? 'Find out who can write to the database, and restore it from a backup.'
        : 'Copy the file from a backup of the directory of archives.',
  });
}
