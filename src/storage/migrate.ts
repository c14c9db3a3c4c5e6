import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { MIGRATIONS, type Migration, type Statement } from './migrations.ts';
import type { Db } from './tables.ts';
import { storageUnavailable } from './storage-errors.ts';

interface Done {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

/**
 * Brings the schema to that of this version: runs the migrations it lacks, all or none of them.
 *
 * @param lock keeps other servers that start at the same time out until the end of the transaction.
 * @throws ServiceError `storage_unavailable`, also for a database that a newer version has been at.
 */
export async function migrate(
  db: Db,
  lock: (tx: Db) => Promise<void>,
  kind: 'sqlite' | 'postgres',
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  try {
    await db.transaction().execute(async (tx) => {
      await lock(tx);
      await sql`create table if not exists schema_migrations (
        number bigint primary key,
        name text not null,
        checksum text not null
      )`.execute(tx);
      const { rows } = await sql<Done>`select number, name, checksum from schema_migrations
        order by number`.execute(tx);
      checkDone(rows, migrations);
      for (const [index, migration] of migrations.entries()) {
        if (index < rows.length) continue;
        for (const statement of migration.statements) {
          const text = textFor(statement, kind);
          if (text !== undefined) await sql.raw(text).execute(tx);
        }
        await sql`insert into schema_migrations (number, name, checksum)
          values (${index + 1}, ${migration.name}, ${checksum(migration)})`.execute(tx);
      }
    });
  } catch (error) {
    throw error instanceof ServiceError ? error : storageUnavailable(error);
  }
}

function checkDone(done: readonly Done[], migrations: readonly Migration[]): void {
  for (const { number, name, checksum: done_as } of done) {
    const migration = migrations[number - 1];
    if (migration === undefined) {
      throw new ServiceError(
        'storage_unavailable',
        `the database is of a newer version: it has migration ${number}, ${name}`,
        { remedy: 'Start the version that made it, or a newer one.' },
      );
    }
    if (checksum(migration) !== done_as) {
      throw new ServiceError(
        'storage_unavailable',
        `migration ${number} of the database, ${name}, is not the one of this version`,
        { remedy: 'Start the version that made it, or use another database.' },
      );
    }
  }
}

/** Undefined where it is none of that database. */
function textFor(statement: Statement, kind: 'sqlite' | 'postgres'): string | undefined {
  if (typeof statement === 'string') return statement;
  return (statement as Readonly<Record<typeof kind, string | undefined>>)[kind];
}

/** Over the statements of both databases. */
function checksum({ name, statements }: Migration): string {
  const texts = statements.map((one) => textFor(one, 'sqlite') ?? textFor(one, 'postgres')!);
  const words = [name, ...texts].map((text) => text.split(/\s+/).join(' '));
  return createHash('sha256').update(words.join('\n')).digest('hex');
}
