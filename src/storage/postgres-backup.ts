/** Dumps of a PostgreSQL database, made and read by its own programs. */
import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { writeAtomically } from '../base/atomic-file.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { RESTORE_MARKER } from './restore-marker.ts';
import type { BackupOptions } from './sqlite-backup.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const LONGEST_OUTPUT = 16 * 1024 * 1024;

/**
 * Runs pg_dump, and reads the whole dump back before the file appears under its name.
 * @throws the system's error, `EEXIST` for an existing file without `force`; ServiceError
 *   `storage_unavailable`; `backup_tool_missing` without a pg_dump that can read this server.
 */
export async function backupPostgres(
  url: string,
  env: NodeJS.ProcessEnv,
  out: string,
  { force }: Pick<BackupOptions, 'force'>,
): Promise<void> {
  const target = targetOf(url, env);
  const version = await inDatabase(url, serverVersion);
  const byHand = `pg_dump --format=custom --file=${quoted(out)} ${target.options}`;
  await requireTool('pg_dump', version, byHand, target);
  await requireTool('pg_restore', version, byHand, target);
  await writeAtomically(out, [], {
    mode: 0o600,
    exclusive: !force,
    async check(temporary) {
      await run('pg_dump', ['--format=custom', '--no-password', `--file=${temporary}`], target);
      await checkDump(temporary, target);
    },
  });
}

/** Reads a dump to its end, restoring nothing. @throws ServiceError `storage_unavailable` */
async function checkDump(file: string, target: Target): Promise<void> {
  const { stdout } = await run('pg_restore', ['--list', file], target);
  for (const table of ['audit_entries', 'audit_head']) {
    if (new RegExp(`TABLE DATA \\S+ ${table} `).test(stdout)) continue;
    throw new ServiceError('storage_unavailable', `the dump lacks the table ${table}`, {
      remedy: 'Dump the database of a service-local server.',
    });
  }
  await run('pg_restore', ['--file=/dev/null', file], target);
}

/**
 * Restores a dump into an empty database, which keeps the marker table; see `RESTORE_MARKER`.
 * @throws ServiceError `file_not_found`; `invalid_data` if it is no dump; `conflict` for a database
 *   that is not empty; `backup_tool_missing`; `storage_unavailable`
 */
export async function restorePostgres(
  file: string,
  url: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  await refuseNoDump(file);
  const target = targetOf(url, env);
  const version = await inDatabase(url, serverVersion);
  await requireTool('pg_restore', version, undefined, target);
  await checkDump(file, target);
  await inDatabase(url, async (client) => {
    await refuseNotEmpty(client, target.database);
    await client.query(`create table ${RESTORE_MARKER} ()`);
  });
  try {
    const how = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges'];
    await run('pg_restore', [...how, '--no-password', `--dbname=${target.database}`, file], target);
  } catch (error) {
    await inDatabase(url, (client) => client.query(`drop table ${RESTORE_MARKER}`));
    throw error;
  }
}

/** Removes what a failed restore left in the database, which was empty before. */
export async function emptyRestored(url: string): Promise<void> {
  await inDatabase(url, (client) =>
    client.query(`do $$
      declare name text;
      begin
        for name in select format('%I.%I', schemaname, tablename) from pg_tables
            where schemaname not like 'pg\\_%' and schemaname <> 'information_schema' loop
          execute 'drop table if exists ' || name || ' cascade';
        end loop;
      end $$`),
  );
}

async function refuseNoDump(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${path} (${error.code})`, {
      remedy: 'Name a backup that exists and that this user can read.',
      cause: error,
    });
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(5), 0, 5, 0);
    if (buffer.subarray(0, bytesRead).toString('latin1') === 'PGDMP') return;
  } finally {
    await file.close();
  }
  throw new ServiceError('invalid_data', `${path} is not a dump in PostgreSQL's custom format`, {
    remedy: 'Name a file that `service-local server backup` wrote for PostgreSQL.',
  });
}

async function refuseNotEmpty(client: pg.Client, database: string): Promise<void> {
  const { rows } = await client.query<{ readonly name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'S') and n.nspname not like 'pg\\_%'
     and n.nspname <> 'information_schema' order by c.relname = '${RESTORE_MARKER}' desc limit 1`,
  );
  const [first] = rows;
  if (first === undefined) return;
  const isInterrupted = first.name === RESTORE_MARKER;
  throw new ServiceError(
    'conflict',
    isInterrupted
      ? `a restore into the database ${database} was interrupted or is running`
      : `the database ${database} is not empty: it contains the table ${first.name}`,
    {
      reason: isInterrupted ? 'restore_interrupted' : 'database_not_empty',
      remedy: isInterrupted
        ? 'If no restore is running, drop and create the database, and restore again.'
        : 'Create a new database, for example with `createdb`, and set DATABASE_URL to it.',
    },
  );
}

interface Target {
  readonly database: string;
  /** Command-line options to show to a person, without the password. */
  readonly options: string;
  /** Environment with the password, which no command line shows. */
  readonly env: NodeJS.ProcessEnv;
  readonly password: string | undefined;
}

const SSL = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;

function targetOf(url: string, env: NodeJS.ProcessEnv): Target {
  const { host, port, user = '', database = '', password } = new pg.Client(url);
  const { searchParams } = new URL(url);
  const ssl = SSL.flatMap((name) => {
    const value = searchParams.get(name);
    return value === null ? [] : [[`PG${name.toUpperCase()}`, value]];
  });
  const secret = typeof password === 'string' ? password : undefined;
  return {
    database,
    options: `--host=${quoted(host)} --port=${port} --username=${quoted(user)} ${quoted(database)}`,
    env: {
      ...env,
      // These would lead to another database than DATABASE_URL.
      PGSERVICE: undefined,
      PGHOSTADDR: undefined,
      PGHOST: host,
      PGPORT: String(port),
      PGUSER: user,
      PGDATABASE: database,
      ...(secret !== undefined && { PGPASSWORD: secret }),
      ...Object.fromEntries(ssl),
      LC_MESSAGES: 'C',
    },
    password: secret,
  };
}

function quoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

async function serverVersion(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ readonly number: string }>(
    "select current_setting('server_version_num') as number",
  );
  return Math.floor(Number(rows[0]!.number) / 10_000);
}

async function inDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'service-local server backup',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    if (error instanceof ServiceError || !(error instanceof Error)) throw error;
    const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : error;
    throw new ServiceError('storage_unavailable', `cannot use DATABASE_URL: ${message}`, {
      remedy: 'Check that PostgreSQL is running, and the address and password in DATABASE_URL.',
      cause: error,
    });
  } finally {
    await client.end().catch(() => {});
  }
}

/** @throws ServiceError `backup_tool_missing`, with the command to run where the program is. */
async function requireTool(
  name: 'pg_dump' | 'pg_restore',
  version: number,
  byHand: string | undefined,
  { env }: Target,
): Promise<void> {
  let found: string;
  try {
    found = (await promisify(execFile)(name, ['--version'], { env })).stdout.trim();
  } catch {
    throw toolMissing('not_found', `${name} is not on the PATH`, version, byHand);
  }
  const major = Number(/\(PostgreSQL\) (\d+)/.exec(found)?.[1]);
  if (major >= version) return;
  const message = `${found} is older than the server, PostgreSQL ${version}`;
  throw toolMissing('too_old', message, version, byHand);
}

function toolMissing(
  reason: string,
  message: string,
  version: number,
  byHand: string | undefined,
): ServiceError {
  const install = `Install the client programs of PostgreSQL ${version} or later`;
  return new ServiceError('backup_tool_missing', message, {
    reason,
    remedy:
      byHand === undefined
        ? `${install} on this machine.`
        : `${install}, or run this where they are, with the password in PGPASSWORD or ~/.pgpass: ${byHand}`,
  });
}

/** @throws ServiceError `storage_unavailable` with what the program reported. */
async function run(
  name: string,
  args: readonly string[],
  { env, password }: Target,
): Promise<{ readonly stdout: string }> {
  try {
    return await promisify(execFile)(name, args, { env, maxBuffer: LONGEST_OUTPUT });
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    const report = stderr.trim().split('\n').slice(0, 3).join('; ') || message;
    const safe = password ? report.replaceAll(password, '…') : report;
    throw new ServiceError('storage_unavailable', `${name} failed: ${safe}`, {
      remedy: 'Correct what it reports, and run the command again.',
    });
  }
}
