import { whyEphemeral } from '../base/ephemeral-directory.ts';
import { ServiceError } from '../base/errors.ts';
import { formatCountOf } from '../base/format.ts';
import { withDatabase } from './administrators.ts';
import type { Answer, Context } from './verb.ts';

/** Parser of an option that takes a month such as `2026-01`. */
export function parseMonth(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new ServiceError('usage', `'${text}' is not a month`, {
    remedy: 'Write the year and the month from 01 to 12, such as 2026-01.',
  });
}

/** The first month of which events stay in the database by default: the third before the current one. */
export function firstKeptMonth(now: number): string {
  const date = new Date(now);
  const kept = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 3);
  return new Date(kept).toISOString().slice(0, 7);
}

export function startOfMonth(month: string): number {
  return Date.parse(`${month}-01T00:00:00Z`);
}

/** Runs `work` on the server's own database and the directory of archives. */
export async function withArchive<T>(
  context: Context,
  work: (archive: {
    readonly storage: Parameters<Parameters<typeof withDatabase>[1]>[0]['storage'];
    readonly directory: string;
    readonly clock: () => number;
  }) => Promise<T>,
): Promise<T> {
  const directory = context.settings.event_archive_dir;
  return withDatabase(context, (own) => work({ ...own, directory }));
}

/**
 * Refuses a directory whose files vanish with the container, since archived events exist nowhere else.
 * @throws ServiceError `output_not_writable`
 */
export function refuseEphemeral(directory: string, env: NodeJS.ProcessEnv): void {
  const why = whyEphemeral(directory, env);
  if (why === undefined) return;
  throw new ServiceError('output_not_writable', `files in ${directory} are not durable: ${why}`, {
    remedy:
      'Mount a volume there (archive.existingClaim in the Helm chart), or choose another directory with --event-archive-dir. No event was removed from the database.',
  });
}

interface ShownPart {
  readonly bot_id: string;
  readonly month: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly hash: string;
  readonly file: string;
  readonly file_bytes: number;
  readonly file_sha256: string;
}

/** Lists the files that a command wrote or read. */
export function partsAnswer(
  directory: string,
  parts: readonly ShownPart[],
  texts: { readonly done: string; readonly none: string },
): Answer {
  const files = parts.map(({ file_bytes: bytes, file_sha256: sha256, ...part }) => ({
    bot_id: part.bot_id,
    month: part.month,
    first_seq: part.first_seq,
    last_seq: part.last_seq,
    hash: part.hash,
    file: part.file,
    bytes,
    sha256,
  }));
  return {
    data: { directory, files },
    show(out) {
      if (files.length === 0) {
        out.line(texts.none);
        return;
      }
      out.table(
        [
          { title: 'bot' },
          { title: 'month' },
          { title: 'events', align: 'right' },
          { title: 'bytes', align: 'right' },
          { title: 'file' },
        ],
        files.map(({ bot_id, month, first_seq, last_seq, bytes, file }) => [
          bot_id,
          month,
          String(last_seq - first_seq + 1),
          String(bytes),
          file,
        ]),
      );
      out.line(`${texts.done} ${formatCountOf(files.length, 'file')} in ${directory}.`);
    },
  };
}
