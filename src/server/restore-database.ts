/** Restores a backup so that no trading in it continues by itself. */
import { endAllPaperSessions, recordHalt } from '../fleet/halts/halt.ts';
import { listMissingFiles } from '../fleet/archive/verify-archive.ts';
import { newerEntries } from '../identity/audit-file.ts';
import { appendAudit, auditHead, importAudit, type AuditEntry } from '../identity/audit.ts';
import { endCredentials } from '../identity/restored.ts';
import { restoreKeyset } from '../identity/restored-keyset.ts';
import { reapplyAudit, type ReappliedAudit } from '../identity/reapply-audit.ts';
import { stopAllSchedules } from '../research/schedules.ts';
import { adoptAt, databaseIdentity } from '../storage/database-identity.ts';
import { storageLocation } from '../storage/storage-location.ts';
import { placeOf } from '../storage/place.ts';
import { emptyRestored, restorePostgres } from '../storage/postgres-backup.ts';
import { RESTORE_MARKER } from '../storage/restore-marker.ts';
import { restoreSqlite } from '../storage/sqlite-restore.ts';
import { openStorage, type Storage, type StorageLocation } from '../storage/storage.ts';
import type { Db } from '../storage/tables.ts';

export interface AuditFile {
  readonly name: string;
  readonly entries: readonly AuditEntry[];
}

export interface RestoreOptions {
  /** Whether an existing SQLite database may be replaced. */
  readonly force: boolean;
  /** Exported audit log, whose entries after the backup are imported. */
  readonly audit: AuditFile | undefined;
  /** Keyset document that was published after the backup. */
  readonly keyset: string | undefined;
  /** Directory that should have the files of archived events; by default they are not looked for. */
  readonly archiveDirectory?: string;
}

export interface Restored extends ReappliedAudit {
  readonly database_id: string;
  readonly epoch: number;
  /** Last audit entry of the backup. */
  readonly backup_head: { readonly seq: number; readonly hash: string };
  /** Number of audit entries after it that were imported. */
  readonly imported_entries: number;
  /** Last imported entry; null if there are none. A truncated file ends earlier than the log did. */
  readonly imported_head: Pick<AuditEntry, 'seq' | 'hash' | 'recorded_at'> | null;
  /** The halt of all bots that the restore put in force. */
  readonly halt_id: string;
  /** Number of paper sessions that were queued or running in the backup. */
  readonly ended_sessions: number;
  /** Number of agents whose schedule was on in the backup. */
  readonly stopped_agents: number;
  /** Files of archived events that the database needs, but that are not in the directory. */
  readonly missing_archives: readonly string[];
  /** Null without a stored keyset. */
  readonly stored_keyset_version: number | null;
  readonly replaced: string | null;
}

/**
 * Restores a backup to the database of `home` and `DATABASE_URL`. Afterwards, all bots are halted, all
 * schedules of agents are off, and all earlier login sessions, codes and proofs have ended.
 *
 * @throws ServiceError as `restoreSqlite`, `restorePostgres` and `newerEntries`.
 */
export async function restoreDatabase(
  home: string,
  env: NodeJS.ProcessEnv,
  file: string,
  options: RestoreOptions,
): Promise<Restored> {
  const location = storageLocation(home, env);
  const now = Date.now();
  if ('url' in location) {
    await restorePostgres(file, location.url, env);
    try {
      const target = { ...location, isRestoring: true };
      const restored = await inStorage(target, (storage) =>
        finishRestore(storage, now, options, 0),
      );
      return { ...restored, replaced: null };
    } catch (error) {
      await emptyRestored(location.url);
      throw error;
    }
  }
  const { prepared, replaced } = await restoreSqlite(
    file,
    location.file,
    { force: options.force, now },
    (copy, former) =>
      inStorage({ file: copy }, (storage) =>
        finishRestore(storage, now, options, former?.epoch ?? 0),
      ),
  );
  return { ...prepared, replaced: replaced?.file ?? null };
}

async function inStorage<T>(
  location: StorageLocation,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  const storage = await openStorage(location);
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

const HALT_REASON =
  'The database was restored from a backup. Compare positions and open orders with the venues before you resume.';

/** Actions that `finishRestore` applies itself. */
const HALTS: ReadonlySet<string> = new Set(['bots.halt', 'bots.resume', 'bots.resume_all']);

/** Makes one write, so that a restored database is either complete or unusable. */
async function finishRestore(
  storage: Storage,
  now: number,
  { audit, keyset, archiveDirectory }: RestoreOptions,
  knownEpoch: number,
): Promise<Omit<Restored, 'replaced'>> {
  const place = await placeOf(storage.read);
  return storage.write(async (tx) => {
    const backup_head = await auditHead(tx);
    const entries = audit === undefined ? [] : await newerEntries(tx, audit.entries, audit.name);
    await importAudit(tx, entries);
    const reapplied = await reapplyAudit(tx, entries, HALTS);
    await endCredentials(tx, now);
    const before = await databaseIdentity(tx);
    const { database_id, epoch } = await adoptAt(tx, place, Math.max(knownEpoch, epochIn(entries)));
    await appendAudit(tx, now, {
      actor: 'operator',
      action: 'server.database.restore',
      target: `database:${database_id}`,
      details: {
        epoch,
        previous_epoch: before.epoch,
        backup_seq: backup_head.seq,
        backup_hash: backup_head.hash,
        imported_entries: entries.length,
        applied: reapplied.applied,
        not_applied: reapplied.not_applied,
        place,
      },
    });
    if (keyset !== undefined) await restoreKeyset(tx, now, keyset);
    const halted = await haltRestored(tx, now, entries);
    const last = entries.at(-1);
    if (storage.kind === 'postgres') await tx.schema.dropTable(RESTORE_MARKER).execute();
    return {
      ...reapplied,
      database_id,
      epoch,
      backup_head,
      imported_entries: entries.length,
      imported_head: last
        ? { seq: last.seq, hash: last.hash, recorded_at: last.recorded_at }
        : null,
      ...halted,
      stopped_agents: await stopAllSchedules(tx, now, 'operator', 'restored'),
      missing_archives:
        archiveDirectory === undefined ? [] : await listMissingFiles(tx, archiveDirectory),
      stored_keyset_version: await storedKeysetVersion(tx),
    };
  });
}

async function storedKeysetVersion(tx: Db): Promise<number | null> {
  const trust = await tx.selectFrom('license_trust').select('keyset_version').executeTakeFirst();
  const endorsed = await tx.selectFrom('license_endorsement').select('version').executeTakeFirst();
  return trust?.keyset_version ?? endorsed?.version ?? null;
}

/** Halts all bots, and individually each bot that was halted after the backup and not resumed. */
async function haltRestored(tx: Db, now: number, entries: readonly AuditEntry[]) {
  const all = await recordHalt(tx, now, 'operator', null, HALT_REASON);
  const last = new Map<string, AuditEntry>();
  for (const entry of entries) {
    if (entry.action === 'bots.halt' || entry.action === 'bots.resume') {
      last.set(entry.target.replace(/^bot:/, ''), entry);
    }
  }
  for (const [botId, { action, details }] of last) {
    const bot = await tx
      .selectFrom('bots')
      .select('bot_id')
      .where('bot_id', '=', botId)
      .executeTakeFirst();
    if (bot === undefined || action !== 'bots.halt') continue;
    const reason = typeof details['reason'] === 'string' ? details['reason'] : HALT_REASON;
    await recordHalt(tx, now, 'operator', botId, reason);
  }
  return { halt_id: all.halt_id, ended_sessions: await endAllPaperSessions(tx, now, all) };
}

/** Highest epoch of an adopted copy in the entries. */
function epochIn(entries: readonly AuditEntry[]): number {
  const epochs = entries
    .filter(({ action }) => /^server\.database\.(adopt|restore)$/.test(action))
    .map(({ details }) => Number(details['epoch']) || 0);
  return Math.max(0, ...epochs);
}
