import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { MIGRATIONS, type Migration, type Statement } from './migrations.ts';
import type { Db } from './tables.ts';
import { storageUnavailable } from './storage-errors.ts';

interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

/**
 * Runs the missing migrations in one transaction.
 *
 * @param lock makes other servers that start at the same time wait until the transaction ends.
 * @throws ServiceError `storage_unavailable`, also if a newer version has migrated the database.
 */
export async function migrate(
  db: Db,
  lock: (tx: Db) => Promise<void>,
  kind: 'sqlite' | 'postgres',
): Promise<void> {
  try {
    await db.transaction().execute(async (tx) => {
      await lock(tx);
      await sql`create table if not exists schema_migrations (
        number bigint primary key,
        name text not null,
        checksum text not null
      )`.execute(tx);
      const { rows } =
        await sql<AppliedMigration>`select number, name, checksum from schema_migrations
        order by number`.execute(tx);
      checkApplied(rows);
      for (const [index, migration] of MIGRATIONS.entries()) {
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

function checkApplied(applied: readonly AppliedMigration[]): void {
  for (const { number, name, checksum: appliedChecksum } of applied) {
    const migration = MIGRATIONS[number - 1];
    if (migration === undefined) {
      throw new ServiceError(
        'storage_unavailable',
        `a newer version of service-local has migrated the database: it has migration ${number}, ${name}`,
        { remedy: 'Start that version or a newer one.' },
      );
    }
    if (checksum(migration) !== appliedChecksum) {
      throw new ServiceError(
        'storage_unavailable',
        `migration ${number} of the database, ${name}, differs from that of this version`,
        { remedy: 'Start the version that migrated the database, or use another database.' },
      );
    }
  }
}

/** Undefined if the statement is for the other kind of database. */
function textFor(statement: Statement, kind: 'sqlite' | 'postgres'): string | undefined {
  if (typeof statement === 'string') return statement;
  return (statement as Readonly<Record<typeof kind, string | undefined>>)[kind];
}

/** Covers the statements for both kinds of databases, so that it is the same on each. */
function checksum({ name, statements }: Migration): string {
  const texts = statements.map(
    (statement) => textFor(statement, 'sqlite') ?? textFor(statement, 'postgres')!,
  );
  const words = [name, ...texts].map((text) => text.split(/\s+/).join(' '));
  return createHash('sha256').update(words.join('\n')).digest('hex');
}
