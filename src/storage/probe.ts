import { setTimeout as wait } from 'node:timers/promises';
import type { Storage } from './storage.ts';

/** A database that takes longer than this for `select 1` counts as unavailable. */
const ANSWERS_WITHIN_MS = 1_000;

/**
 * Returns a function that resolves within one second to whether the database answers. Concurrent
 * callers share one query.
 */
export function storageProbe({ check }: Pick<Storage, 'check'>): () => Promise<boolean> {
  let query: Promise<boolean> | undefined;
  return () => {
    query ??= check()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        query = undefined;
      });
    return Promise.race([query, wait(ANSWERS_WITHIN_MS, false, { ref: false })]);
  };
}
