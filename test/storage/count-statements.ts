/**
 * Counts what writes and reads cost. On PostgreSQL, each round trip takes longer than most statements,
 * and statements of a transaction that are sent together share one.
 */
import Database from 'better-sqlite3';
import pg from 'pg';
import { vi } from 'vitest';

export interface Cost {
  readonly statements: number;
  readonly round_trips: number;
}

type Query = (this: void, client: pg.Client, args: readonly unknown[]) => Promise<unknown>;

/** Counts the statements of transactions on PostgreSQL while `work` runs. */
export async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const { prototype } = pg.Client;
  const query: Query = Reflect.apply.bind(undefined, Reflect.get(prototype, 'query') as never);
  /** Count of unanswered statements, by client. */
  const writers = new Map<pg.Client, number>();
  let [statements, round_trips] = [0, 0];
  const counted = async (client: pg.Client, args: readonly unknown[]): Promise<unknown> => {
    if (args[0] === 'begin') writers.set(client, 0);
    const unanswered = writers.get(client);
    if (unanswered === undefined) return query(client, args);
    statements += 1;
    if (unanswered === 0) round_trips += 1;
    writers.set(client, unanswered + 1);
    try {
      return await query(client, args);
    } finally {
      writers.set(client, writers.get(client)! - 1);
    }
  };
  const spy = vi.spyOn(prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    return counted(this, args);
  });
  await work();
  spy.mockRestore();
  return { statements, round_trips };
}

interface Statement {
  readonly source: string;
  readonly database: object;
}

/** The object with the methods of all prepared statements. */
function statementPrototype() {
  const memory = new Database(':memory:');
  const statement = memory.prepare('select 1');
  memory.close();
  return Object.getPrototypeOf(statement) as Record<
    'run' | 'all',
    (this: Statement, ...args: unknown[]) => unknown
  >;
}

/** Counts the statements of transactions on SQLite while `work` runs, which have no round trips. */
export async function sqliteCostOf(work: () => Promise<unknown>): Promise<number> {
  const prototype = statementPrototype();
  const open = new Set<object>();
  let statements = 0;
  const spies = (['run', 'all'] as const).map((method) => {
    const original = prototype[method];
    return vi.spyOn(prototype, method).mockImplementation(function (
      this: Statement,
      ...args: unknown[]
    ) {
      const { source, database } = this;
      if (source.startsWith('begin')) open.add(database);
      if (open.has(database)) statements += 1;
      if (source === 'commit' || source === 'rollback') open.delete(database);
      return original.apply(this, args);
    });
  });
  await work();
  for (const spy of spies) spy.mockRestore();
  return statements;
}

export interface ReadCost {
  readonly statements: number;
  /** Number of rows that the statements returned. */
  readonly rows: number;
  /** Steps of the plans of the statements, as SQLite explains them, such as `SCAN bots`. */
  readonly plans: readonly string[];
}

/** Counts what SQLite returns while `work` runs. */
export async function sqliteReadCostOf(work: () => Promise<unknown>): Promise<ReadCost> {
  const prototype = statementPrototype();
  const original = prototype.all;
  const ran = new Map<string, Statement>();
  let [statements, rows] = [0, 0];
  const spy = vi.spyOn(prototype, 'all').mockImplementation(function (
    this: Statement,
    ...args: unknown[]
  ) {
    const found = original.apply(this, args) as readonly unknown[];
    statements += 1;
    rows += found.length;
    ran.set(this.source, this);
    return found;
  });
  try {
    await work();
  } finally {
    spy.mockRestore();
  }
  const plans = [...ran].flatMap(([source, { database }]) => {
    const plan = (database as Database.Database).prepare(`explain query plan ${source}`);
    const values = Array.from({ length: source.split('?').length - 1 }, () => 0);
    return (plan.all(values) as readonly { readonly detail: string }[]).map(({ detail }) => detail);
  });
  return { statements, rows, plans };
}
