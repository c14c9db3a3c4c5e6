/** Files that a backtest runs instead of the files of its version. They are deleted some time after its end. */
import { bundleHash, type Bundle } from '../../bots/bundle.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { insertBundle } from './new-version.ts';

/** Stores the unsaved files of a queued task. */
export async function keepUnsaved(
  tx: Db,
  task_id: string,
  files: Bundle,
  now: number,
): Promise<void> {
  const bundle_hash = await insertBundle(tx, files, now);
  await tx.insertInto('unsaved_bundles').values({ task_id, bundle_hash }).execute();
}

/**
 * Reads unsaved files, and verifies their hash.
 * @param hash null for no files.
 * @throws ServiceError `bundle_tampered`
 */
export async function readUnsaved(db: Db, hash: string | null): Promise<Bundle | undefined> {
  if (hash === null) return undefined;
  const row = await db
    .selectFrom('bundles')
    .select('files')
    .where('hash', '=', hash)
    .executeTakeFirst();
  const files = row && (JSON.parse(row.files) as Bundle);
  if (files !== undefined && bundleHash(files) === hash) return files;
  throw new ServiceError('bundle_tampered', `the unsaved files do not match their hash ${hash}`, {
    remedy: 'Check who can write to the database, then start the backtest again.',
  });
}

/** Tasks whose files are deleted in one write, so that other writes wait only briefly. */
const TASKS_AT_ONCE = 100;

/** Deletes the unsaved files of tasks that ended by a time, ms since the Unix epoch. */
export async function deleteOldUnsaved(
  { read, write }: Pick<Storage, 'read' | 'write'>,
  endedBy: number,
): Promise<void> {
  for (;;) {
    const old = await read
      .selectFrom('unsaved_bundles')
      .innerJoin('tasks', 'tasks.task_id', 'unsaved_bundles.task_id')
      .select(['tasks.task_id', 'bundle_hash'])
      .where('ended_at', '<=', endedBy)
      .limit(TASKS_AT_ONCE)
      .execute();
    if (old.length === 0) return;
    const task_ids = old.map(({ task_id }) => task_id);
    const hashes = [...new Set(old.map(({ bundle_hash }) => bundle_hash))];
    // A write without a scope excludes all others, so no version or task can begin to use a bundle.
    await write(async (tx) => {
      await tx.deleteFrom('unsaved_bundles').where('task_id', 'in', task_ids).execute();
      await tx
        .deleteFrom('bundles')
        .where('hash', 'in', hashes)
        .where('hash', 'not in', (of) =>
          of.selectFrom('unsaved_bundles').select('bundle_hash').where('bundle_hash', 'in', hashes),
        )
        .where('hash', 'not in', (of) =>
          of
            .selectFrom('bot_versions')
            .select('bundle_hash')
            .where('bundle_hash', 'in', hashes)
            .$castTo<{ bundle_hash: string }>(),
        )
        .execute();
    });
  }
}
