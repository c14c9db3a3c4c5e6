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
  (sql: string, parameters: readonly unknown[]) => Result<unknown>
>();

interface Result<Row> {
  readonly rows: Row[];
  /** Rows that a statement without `returning` has inserted, updated or deleted. */
  readonly changes: number;
}

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
  const execute = prepare(build);
  return async (db, values) => (await execute(db, values)).rows;
}

/** Like `prepareQuery`, for a statement without `returning`; resolves to the count of changed rows. */
export function prepareChange<Values extends object>(
  build: (db: Db, values: Values) => Compilable,
): (db: Db, values: Values) => Promise<number> {
  const execute = prepare(build);
  return async (db, values) => (await execute(db, values)).changes;
}

function prepare<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Result<Row> | Promise<Result<Row>> {
  /** By database, since the SQL depends on the dialect. */
  const built = new WeakMap<DialectAdapter, Built<Row>>();
  return (db, values) => {
    const { adapter } = db.getExecutor();
    let one = built.get(adapter);
    if (one === undefined) {
      const names = Object.keys(values).map((name) => [name, new Parameter(name)]);
      const query = build(db, Object.fromEntries(names) as Values).compile();
      one = { query, takesList: Array.isArray(values) && takesInOrder(query, values) };
      built.set(adapter, one);
    }
    const { query } = one;
    const parameters = one.takesList
      ? (values as unknown as readonly unknown[])
      : query.parameters.map((parameter) =>
          parameter instanceof Parameter ? values[parameter.name as keyof Values] : parameter,
        );
    const run = synchronousRunners.get(adapter);
    if (run === undefined) return executeOnConnection(db, { ...query, parameters });
    const { sql } = query;
    const execute = (): Result<Row> => run(sql, parameters) as Result<Row>;
    return db.isTransaction ? execute() : readSynchronously(execute);
  };
}

interface Built<Row> {
  readonly query: CompiledQuery<Row>;
  /** Whether its parameters are exactly the values, a list, in their order. */
  readonly takesList: boolean;
}

function takesInOrder({ parameters }: CompiledQuery, values: readonly unknown[]): boolean {
  return (
    parameters.length === values.length &&
    parameters.every((one, i) => one instanceof Parameter && one.name === String(i))
  );
}

async function executeOnConnection<Row>(db: Db, query: CompiledQuery<Row>): Promise<Result<Row>> {
  const { rows, numAffectedRows } = await db.executeQuery<Row>(query);
  return { rows, changes: Number(numAffectedRows ?? 0) };
}

/** Retries only after a failure, since the promises of `retryDuringOutage` take longer than a query. */
function readSynchronously<Row>(execute: () => Result<Row>): Result<Row> | Promise<Result<Row>> {
  try {
    return execute();
  } catch {
    return retryRead(execute);
  }
}

async function retryRead<Row>(execute: () => Result<Row>): Promise<Result<Row>> {
  try {
    return await retryDuringOutage(async () => execute());
  } catch (error) {
    throw wrapDriverError(error);
  }
}
