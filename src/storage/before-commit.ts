import type { Db } from './tables.ts';

type Work = () => Promise<void>;

const works = new WeakMap<Db, Work[]>();

/**
 * Runs `work` once, after all other work of the transaction or savepoint and before its commit. If it
 * fails, nothing of the transaction is written. It is dropped with a savepoint that is rolled back.
 *
 * @param tx of a `storage.write`.
 */
export function beforeCommit(tx: Db, work: Work): void {
  const planned = works.get(tx);
  if (planned === undefined) works.set(tx, [work]);
  else planned.push(work);
}

export async function runBeforeCommit(tx: Db): Promise<void> {
  const planned = works.get(tx) ?? [];
  works.delete(tx);
  for (const work of planned) await work();
}
