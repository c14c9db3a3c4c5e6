import { setTimeout as wait } from 'node:timers/promises';
import type { Storage } from './storage.ts';

/** A database that takes longer for `select 1` is of no use to callers. */
const ANSWERS_WITHIN_MS = 1_000;

/**
 * Returns a function that resolves within a second to whether the database answers. Any number of
 * callers share one query.
 */
export function storageProbe({ check }: Pick<Storage, 'check'>): () => Promise<boolean> {
  let asking: Promise<boolean> | undefined;
  return () => {
    asking ??= check()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        asking = undefined;
      });
    return Promise.race([asking, wait(ANSWERS_WITHIN_MS, false, { ref: false })]);
  };
}
