import { setTimeout as wait } from 'node:timers/promises';
import type { Storage } from './storage.ts';

/** A database that needs longer for `select 1` counts as unavailable, ms. */
const ANSWERS_WITHIN_MS = 1_000;

/**
 * Returns a function that resolves within one second to whether the database answers. Concurrent
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
