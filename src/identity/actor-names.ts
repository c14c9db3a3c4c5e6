import { sql } from 'kysely';
import type { Db } from '../storage/tables.ts';

/** Adds the name of each actor: `created_by_name` for the field `created_by`. */
export type WithNames<T, F extends string> = T & Readonly<Record<`${F}_name`, string | null>>;

/**
 * Adds the current names of the administrators and devices in `fields`; null for the operator, the
 * server and unknown actors. Runs one query for all rows.
 */
export async function withNames<T extends object, F extends keyof T & string>(
  db: Db,
  rows: readonly T[],
  ...fields: readonly F[]
): Promise<WithNames<T, F>[]> {
  const actors = rows.flatMap((row) => fields.map((field) => row[field] as string | null));
  const names = await namesOf(db, new Set(actors));
  return rows.map((row) => {
    const named = fields.map((field) => [
      `${field}_name`,
      names.get(row[field] as string | null) ?? null,
    ]);
    return { ...row, ...(Object.fromEntries(named) as Record<`${F}_name`, string | null>) };
  });
}

async function namesOf(
  db: Db,
  actors: ReadonlySet<string | null>,
): Promise<ReadonlyMap<string | null, string>> {
  const ids = [...actors].flatMap(
    (actor) => /^(?:administrator|device):(.*)$/s.exec(actor ?? '')?.[1] ?? [],
  );
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('administrators')
    .select(['administrator_id as id', 'name', sql.lit('administrator').as('kind')])
    .where('administrator_id', 'in', ids)
    .unionAll(
      db
        .selectFrom('devices')
        .select(['device_id as id', 'name', sql.lit('device').as('kind')])
        .where('device_id', 'in', ids),
    )
    .execute();
  return new Map(rows.map(({ kind, id, name }) => [`${kind}:${id}`, name]));
}
