import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { isSystemError, writeRemedy } from '../../../base/system-errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'copy the whole database to a file, while servers run',
  description:
    "Copies the whole database to one file as of one moment, while servers and workers continue. The copy is checked and appears under its name only when it is complete. A SQLite database is copied by SQLite's own backup function. For the PostgreSQL that DATABASE_URL names, the command runs pg_dump, which must be on the PATH and not older than the server, and reads the whole dump back. The file contains secrets, such as the second factors of administrators. Run it on the server's machine.",
  options: {
    out: { value: 'file', description: 'file to write', required: true, complete: 'file' },
    force: { description: 'replace an existing file' },
  },
  settings: ['event_archive_dir'],
  examples: [
    'server backup --out /backups/server-2026-01-02.sqlite',
    'server backup --out /backups/latest.sqlite --force --json | jq .content.audit_head',
  ],
  async run({ settings, io, cwd, progress }, _args, { out, force }) {
    const { backupDatabase } = await import('../../../storage/backup.ts');
    const file = resolve(cwd, out);
    let bar: ReturnType<typeof progress> | undefined;
    const onProgress = (done: number, total: number): void => {
      bar ??= progress('pages', total);
      bar.update(done);
    };
    try {
      const backup = await backupDatabase(settings.home, io.env, file, { force, onProgress });
      return {
        data: { file, ...backup },
        show(shown) {
          shown.line(`${file}: ${formatCountOf(backup.bytes, 'byte')}, checked.`);
          const { content } = backup;
          if (content === null) return;
          if (content.database_id !== null) {
            shown.line(`Database ${content.database_id}, epoch ${content.epoch}.`);
          }
          if (content.archived_files > 0) {
            shown.line(
              `Not in the backup: ${formatCountOf(content.archived_files, 'file')} of archived events. Copy ${settings.event_archive_dir}, too.`,
            );
          }
          shown.line(`Audit log: ${content.audit_head.seq}:${content.audit_head.hash}`);
        },
      };
    } catch (error) {
      throw isSystemError(error) ? notWritten(error, file) : error;
    } finally {
      bar?.stop();
    }
  },
});

function notWritten(error: NodeJS.ErrnoException, file: string): ServiceError {
  if (error.code === 'EEXIST') {
    return new ServiceError('conflict', `${file} already exists`, {
      reason: 'file_exists',
      remedy: 'Name another file, or replace it with --force.',
      cause: error,
    });
  }
  return new ServiceError('output_not_writable', `cannot write ${file} (${error.code})`, {
    remedy: writeRemedy(error, 'Name a file in a directory that exists and that you may write to.'),
    cause: error,
  });
}
