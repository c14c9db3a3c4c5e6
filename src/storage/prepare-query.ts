import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely';
import { retryDuringOutage } from './outage.ts';
import type { Db } from './tables.ts';
import { wrapDriverError } from './storage-errors.ts';

/** Stands for a value in a query that is kept. */
class Parameter {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * How to run SQL for its rows on a database in this process, of whose connection it is: the promises
 * of Kysely take longer than the query.
 */
export const synchronousRunners = new WeakMap<
  DialectAdapter,
  (sql: string, parameters: readonly unknown[]) => unknown[]
>();

/**
 * A query that is run all the time. It is built once, as to build it takes longer than to run it.
 *
 * ```ts
 * const selectPlan = prepareQuery((db, { id }: { readonly id: string }) =>
 *   db.selectFrom('plans').selectAll().where('plan_id', '=', id),
 * );
 * const [plan] = await selectPlan(db, { id: 'pro' });
 * ```
 *
 * @param build gets stand-ins for the values, of which it may look at none.
 * @returns runs it, for its rows.
 */
export function prepareQuery<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<Row[]> {
  /** By the database for whose dialect it was compiled. */
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
      return db.isTransaction ? rows() : readAtOnce(rows);
    }
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

async function readAtOnce<Row>(rows: () => Row[]): Promise<Row[]> {
  try {
    return await retryDuringOutage(async () => rows());
  } catch (error) {
    throw wrapDriverError(error);
  }
}
