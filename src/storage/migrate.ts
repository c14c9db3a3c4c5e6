import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
import { phaseOf, type Phase } from './contract-steps.ts';
import type { Migration, Statement } from './migrations.ts';
import type { Db } from './tables.ts';
import { storageUnavailable } from './storage-errors.ts';

interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  /** Absent or null if it was applied by a version that did not record it. */
  readonly phase?: Phase | null;
  /** Version of service-local that applied it. */
  readonly version?: string | null;
}

/**
 * Runs the missing migrations in one transaction. A database that a newer version has migrated stays
 * as it is, and is accepted if all further migrations are expand steps.
 *
 * @param known all migrations of this version.
 * @param lock makes other servers that start at the same time wait until the transaction ends.
 * @throws ServiceError `storage_unavailable`, with the reason `newer_schema` after a contract step that
 *   this version does not know.
 */
export async function migrate(
  db: Db,
  known: readonly Migration[],
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
      const applied = await readApplied(tx);
      checkApplied(applied, known);
      const missing = [...known.entries()].slice(applied.length);
      for (const [, { statements }] of missing) {
        for (const statement of statements) {
          const text = textFor(statement, kind);
          if (text !== undefined) await sql.raw(text).execute(tx);
        }
      }
      // Recorded after all statements, because some of these columns are added by them.
      for (const [index, migration] of missing) {
        await sql`insert into schema_migrations (number, name, checksum, phase, version)
          values (${index + 1}, ${migration.name}, ${checksum(migration)}, ${phaseOf(migration)},
            ${packageVersion()})`.execute(tx);
      }
    });
  } catch (error) {
    throw error instanceof ServiceError ? error : storageUnavailable(error);
  }
}

/** Returns an error if the database has a contract step that is not among the `known` migrations. */
export async function schemaFault(
  db: Db,
  known: readonly Migration[],
): Promise<ServiceError | undefined> {
  return findUnknownContract(await readApplied(db), known);
}

async function readApplied(db: Db): Promise<readonly AppliedMigration[]> {
  // Databases of earlier versions lack some of the columns.
  const query = sql<AppliedMigration>`select * from schema_migrations order by number`;
  return (await query.execute(db)).rows;
}

function checkApplied(applied: readonly AppliedMigration[], known: readonly Migration[]): void {
  const fault = findUnknownContract(applied, known);
  if (fault !== undefined) throw fault;
  for (const { number, name, checksum: appliedChecksum } of applied) {
    const migration = known[number - 1];
    if (migration !== undefined && checksum(migration) !== appliedChecksum) {
      throw new ServiceError(
        'storage_unavailable',
        `migration ${number} of the database, ${name}, differs from that of this version`,
        { remedy: 'Start the version that migrated the database, or use another database.' },
      );
    }
  }
}

function findUnknownContract(
  applied: readonly AppliedMigration[],
  known: readonly Migration[],
): ServiceError | undefined {
  const step = applied.findLast(({ number, phase }) => number > known.length && phase !== 'expand');
  if (step === undefined) return undefined;
  const { number, name, version } = step;
  return new ServiceError(
    'storage_unavailable',
    `a newer version of service-local has migrated the database: this version, ${packageVersion()}, cannot use it after migration ${number}, ${name}`,
    {
      reason: 'newer_schema',
      remedy: version
        ? `Start version ${version} or newer, or restore the backup from before the upgrade.`
        : 'Start the version that migrated the database or a newer one.',
    },
  );
}

/** Undefined if the statement is for the other kind of database. */
export function textFor(statement: Statement, kind: 'sqlite' | 'postgres'): string | undefined {
  if (typeof statement === 'string') return statement;
  return (statement as Readonly<Record<typeof kind, string | undefined>>)[kind];
}

/** Covers the statements for both kinds of databases, so that it is the same on each. */
export function checksum({ name, statements }: Migration): string {
  const texts = statements.map(
    (statement) => textFor(statement, 'sqlite') ?? textFor(statement, 'postgres')!,
  );
  const words = [name, ...texts].map((text) => text.split(/\s+/).join(' '));
  return createHash('sha256').update(words.join('\n')).digest('hex');
}
