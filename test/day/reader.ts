import Database from 'better-sqlite3';

/** Reads a database that processes of the day write. */
export class Reader {
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();

  constructor(file: string) {
    this.#database = new Database(file, { readonly: true });
  }

  all(sql: string, ...parameters: readonly unknown[]): readonly unknown[] {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement.all(...parameters);
  }

  close(): void {
    this.#database.close();
  }
}
