/** Makes the SQLite databases of simulated processes fail. */
import Database, { SqliteError } from 'better-sqlite3';
import { currentProcess, type SimulatedProcess } from './process.ts';

type Statement = Database.Statement;
type Prepare = (this: Database.Database, sql: string) => Statement;

/**
 * Applies the faults of each process to its databases, until the returned function is called.
 * Processes share a database file. One whose statement finds the file locked fails at once instead of
 * blocking the thread, so that the caller waits in virtual time.
 */
export function injectSqliteFaults(): () => void {
  const prototype = Database.prototype as { prepare: Prepare; pragma: (sql: string) => unknown };
  const { prepare, pragma } = prototype;
  const claim = (database: Database.Database, owner: SimulatedProcess): void => {
    if (owner.own(database)) pragma.call(database, 'busy_timeout = 0');
  };
  prototype.pragma = function (this: Database.Database, sql: string) {
    const owner = currentProcess();
    if (owner === undefined) return pragma.call(this, sql);
    claim(this, owner);
    // Nothing has to survive the end of this process.
    if (sql.startsWith('synchronous')) return pragma.call(this, 'synchronous = OFF');
    return sql.startsWith('busy_timeout') ? undefined : pragma.call(this, sql);
  };
  prototype.prepare = function (this: Database.Database, sql: string) {
    const owner = currentProcess();
    if (owner === undefined) return prepare.call(this, sql);
    claim(this, owner);
    return guarded(prepare.call(this, sql), sql, owner);
  };
  return () => Object.assign(prototype, { prepare, pragma });
}

/** The part of a statement that Kysely uses. */
function guarded(statement: Statement, sql: string, owner: SimulatedProcess): Statement {
  const attempt = <T>(run: () => T): T => {
    if (owner.isOver) throw new SqliteError(`${owner.name} is dead`, 'SQLITE_MISUSE');
    if (owner.isDatabaseAway) throw connectionFault('connect', 'ECONNREFUSED');
    return sql === 'commit' ? commit(run, owner) : run();
  };
  return {
    reader: statement.reader,
    all: (...parameters: unknown[]) => attempt(() => statement.all(...parameters)),
    run: (...parameters: unknown[]) => attempt(() => statement.run(...parameters)),
    get: (...parameters: unknown[]) => attempt(() => statement.get(...parameters)),
    iterate: (...parameters: unknown[]) => attempt(() => statement.iterate(...parameters)),
  } as unknown as Statement;
}

function commit<T>(run: () => T, owner: SimulatedProcess): T {
  const fault = owner.hasLostVolume ? 'full' : owner.nextCommit();
  if (fault === 'full') throw new SqliteError('database or disk is full', 'SQLITE_FULL');
  if (fault === 'die_before') {
    owner.kill();
    throw new SqliteError(`${owner.name} is dead`, 'SQLITE_MISUSE');
  }
  const result = run();
  if (fault === 'die_after') owner.kill();
  if (fault === 'lost') throw connectionFault('read', 'ECONNRESET');
  return result;
}

/** An error like those of a driver that reaches its database over the network. */
function connectionFault(syscall: string, code: string): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}
