/** Measures the tables of a SQLite file, which reads the whole file. Runs in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { TableSize } from './table-sizes.ts';

const database = new Database(workerData as string, { readonly: true, fileMustExist: true });
try {
  const sizes = database.prepare<[], TableSize>(
    `select tbl_name as name, sum(pgsize) as bytes from dbstat
      join sqlite_schema on sqlite_schema.name = dbstat.name
      where aggregate = true group by tbl_name`,
  );
  parentPort!.postMessage(sizes.all());
} finally {
  database.close();
}
