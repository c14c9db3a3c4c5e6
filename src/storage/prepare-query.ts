import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely';
import { retryDuringOutage } from './outage.ts';
import type { Db } from './tables.ts';
import { wrapDriverError } from './storage-errors.ts';

/** Placeholder for a value in a compiled query. */
class Parameter {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Functions that run SQL synchronously on a SQLite connection, because Kysely's promises take longer
 * than the query.
 */
export const synchronousRunners = new WeakMap<
  DialectAdapter,
  (sql: string, parameters: readonly unknown[]) => unknown[]
>();

/**
 * Prepares a frequent query. It is built once, since building it takes longer than running it.
 *
 * ```ts
 * const selectPlan = prepareQuery((db, { id }: { readonly id: string }) =>
 *   db.selectFrom('plans').selectAll().where('plan_id', '=', id),
 * );
 * const [plan] = await selectPlan(db, { id: 'pro' });
 * ```
 *
 * @param build receives placeholders for the values, which it must not inspect.
 * @returns a function that runs the query and returns its rows.
 */
export function prepareQuery<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<Row[]> {
  /** By database, since the SQL depends on the dialect. */
  const built = new WeakMap<DialectAdapter, CompiledQuery<Row>>();
  return async (db, values) => {
    const { adapter } = db.getExecutor();
    let query = built.get(adapter);
    if (query === undefined) {
      const names = Object.keys(values).map((name) => [name, new Parameter(name)]);
      query = build(db, Object.fromEntries(names) as Values).compile();
      built.set(adapter, query);
    }
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Parameter ? values[parameter.name as keyof Values] : parameter,
    );
    const run = synchronousRunners.get(adapter);
    if (run !== undefined) {
      const rows = (): Row[] => run(query.sql, parameters) as Row[];
      return db.isTransaction ? rows() : readSynchronously(rows);
    }
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

async function readSynchronously<Row>(rows: () => Row[]): Promise<Row[]> {
  try {
    return await retryDuringOutage(async () => rows());
  } catch (error) {
    throw wrapDriverError(error);
  }
}
