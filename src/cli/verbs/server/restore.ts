import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { isSystemError, writeRemedy } from '../../../base/system-errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import type { Restored } from '../../../server/restore-database.ts';
import type { Output } from '../../output.ts';
import { defineVerb, type Answer } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'restore a backup, with all trading halted',
  description:
    "Makes a backup the database of the server. Stop the server and its workers first. For PostgreSQL, DATABASE_URL names a new, empty database. Afterwards all bots are halted until a person resumes them, paper sessions have ended, schedules of agents are off, and enrollment codes, login sessions and device proofs from before are invalid. The epoch of the database rises, so that runners reject servers of the replaced one. With --audit, revocations and other withdrawals that were recorded after the backup apply again. Run it on the server's machine.",
  arguments: { file: { description: 'file that `server backup` wrote', complete: 'file' } },
  options: {
    audit: {
      value: 'file',
      description: 'newer audit log, from `identity audit list --after 0 --json`',
      complete: 'file',
    },
    keyset: {
      value: 'file',
      description: "newer published keyset, such as a machine's license_public_key.json",
      complete: 'file',
    },
    force: { description: 'replace an existing SQLite database, which is kept under another name' },
  },
  settings: ['event_archive_dir'],
  examples: [
    'server restore /backups/server-2026-01-02.sqlite',
    'server restore /backups/latest.sqlite --audit audit.json --force',
    'server restore /backups/latest.sqlite --keyset license_public_key.json --json',
  ],
  async run({ settings, io, cwd }, { file }, { audit, keyset, force }) {
    const { restoreDatabase } = await import('../../../server/restore-database.ts');
    const { parseAuditFile } = await import('../../../identity/audit-file.ts');
    const read = (name: string): Promise<string> => readText(resolve(cwd, name), name);
    const options = {
      force,
      archiveDirectory: settings.event_archive_dir,
      audit:
        audit === undefined
          ? undefined
          : { name: audit, entries: parseAuditFile(await read(audit), audit) },
      keyset: keyset === undefined ? undefined : await read(keyset),
    };
    try {
      const path = resolve(cwd, file);
      const restored = await restoreDatabase(settings.home, io.env, path, options);
      return answerOf(restored, audit !== undefined, settings.event_archive_dir);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      throw new ServiceError('output_not_writable', `cannot write the database (${error.code})`, {
        remedy: writeRemedy(error, 'Check the permissions of SERVICE_LOCAL_HOME.'),
        cause: error,
      });
    }
  },
});

async function readText(path: string, name: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${name} (${error.code})`, {
      cause: error,
    });
  }
}

const WITHOUT_AUDIT =
  'revocations after the backup are lost: repeat them, or restore the backup again with --audit';

const NOTHING_NEWER =
  'the audit log has no entry after the backup, so revocations after the backup are lost';

/** Audit actions that end recovery codes when they apply again. */
const RECOVERY_CODE_USES = [
  'admin.identity.administrator.login',
  'admin.identity.administrator.step_up',
];

function answerOf(restored: Restored, hasAudit: boolean, archiveDirectory: string): Answer {
  const forgotten = hasAudit ? NOTHING_NEWER : WITHOUT_AUDIT;
  const warnings = [
    ...(restored.imported_head === null ? [forgotten] : []),
    ...warningsOf(restored),
    ...archiveWarnings(restored, archiveDirectory),
  ];
  return {
    data: { ...restored, warnings },
    show(out) {
      const { database_id, epoch, backup_head, imported_entries, imported_head, replaced } =
        restored;
      out.line(`Restored: database ${database_id} now has epoch ${epoch}.`);
      if (replaced !== null) out.line(`The replaced database is kept as ${replaced}.`);
      out.line(
        `All bots are halted, and ${formatCountOf(restored.ended_sessions, 'paper session')} ended.`,
      );
      if (restored.stopped_agents > 0) {
        out.line(
          `Schedules of ${formatCountOf(restored.stopped_agents, 'agent')} are off; start them with \`bots agents start\`.`,
        );
      }
      out.line(
        'Login sessions and unused enrollment codes have ended; codes of authenticator apps work again after a minute.',
      );
      if (RECOVERY_CODE_USES.some((action) => (restored.applied[action] ?? 0) > 0)) {
        out.line(
          'Administrators who used a recovery code after the backup have none left; `identity administrators reset NAME` makes new ones.',
        );
      }
      out.line(
        `Audit log: the backup ends at entry ${backup_head.seq}; later entries imported: ${imported_entries}.`,
      );
      if (imported_head !== null) {
        const { seq, hash, recorded_at } = imported_head;
        out.line(
          `The imported log ends at ${recorded_at} with ${seq}:${hash}. Later entries are lost.`,
        );
      }
      showCounts(out, 'Applied again', restored.applied);
      showCounts(out, 'Not applied; repeat what is still wanted', restored.not_applied);
      for (const warning of warnings) out.line(`Warning: ${warning}`);
    },
  };
}

function showCounts(out: Output, title: string, counts: Restored['applied']): void {
  const rows = Object.entries(counts);
  if (rows.length === 0) return;
  out.line(`${title}:`);
  for (const [action, count] of rows) out.line(`  ${action}: ${count}`);
}

function archiveWarnings({ missing_archives }: Restored, directory: string): string[] {
  const [first] = missing_archives;
  if (first === undefined) return [];
  return [
    `${formatCountOf(missing_archives.length, 'file')} of archived events, such as ${first}, ${missing_archives.length === 1 ? 'is' : 'are'} not in ${directory}: copy the directory of the replaced server, and run \`events verify\``,
  ];
}

function warningsOf({ keyset_version, stored_keyset_version }: Restored): string[] {
  if (keyset_version <= (stored_keyset_version ?? 0)) return [];
  const held = `machines may hold version ${keyset_version} of the keyset, and reject the older one of this server`;
  return [
    stored_keyset_version === null
      ? `${held}: run \`service-local identity root sign-keyset --chain license-root.json --upload\`, or, without a trust root, \`identity keys announce\` until the version is higher`
      : `${held}, version ${stored_keyset_version}: run \`service-local identity root sign-keyset --chain license-root.json --upload\` with the newest file, or restore with --keyset`,
  ];
}
