import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Restored } from '../../src/server/restore-database.ts';
import { RESTORE_MARKER } from '../../src/storage/restore-marker.ts';
import { SCRATCH, TEMPORARY } from '../scratch.ts';
import { serveHere } from '../server/running.ts';
import { tradingDocument } from '../server/trader.ts';
import { startPostgres, type Cluster } from '../storage/cluster.ts';
import { newDatabase, query } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { answer, cli, fillPlace, newMachine, send, type Ends, type Place } from './backup-setup.ts';

const SLOW = { speed: 1 };
/** Version of the packaged PostgreSQL. */
const PACKAGED = 18;
const DUMP = 'pg_dump';

interface Client {
  /** Directory with pg_dump and pg_restore; undefined if they are on the PATH. */
  readonly directory: string | undefined;
}

/** Finds client programs of the same version as a PostgreSQL server. */
function findClient(): Client | undefined {
  try {
    const version = execFileSync(DUMP, ['--version'], { encoding: 'utf8' });
    if (Number(/ (\d+)/.exec(version)?.[1]) >= PACKAGED) return { directory: undefined };
  } catch {
    // pg_dump is not on the PATH.
  }
  const installed = '/usr/lib/postgresql';
  const versions = existsSync(installed) ? readdirSync(installed).sort().toReversed() : [];
  const directory = versions
    .map((version) => join(installed, version, 'bin'))
    .find((bin) => [DUMP, 'postgres'].every((name) => existsSync(join(bin, name))));
  return directory === undefined ? undefined : { directory };
}

const client = findClient();
let directory: string;
let ends: Ends = [];

beforeAll(async () => {
  directory = await mkdtemp(join(SCRATCH, 'backup-postgres-'));
  await fillCatalogue(directory, 1);
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});
afterAll(() => rm(directory, { recursive: true }));

async function newDirectory(parent = SCRATCH): Promise<string> {
  const made = await mkdtemp(join(parent, 'backup-'));
  ends.push(() => rm(made, { recursive: true }));
  return made;
}

describe.skipIf(client === undefined)('with pg_dump and pg_restore', () => {
  let own: Cluster | undefined;
  let cluster: string;
  beforeAll(async () => {
    const { directory: installed } = client!;
    if (installed !== undefined) own = await startPostgres(undefined, SCRATCH, installed);
    cluster = own?.url ?? inject('postgres');
  });
  afterAll(() => own?.stop());

  async function newPlace(): Promise<Place & { readonly url: string }> {
    const database = await newDatabase('postgres', cluster);
    ends.push(database.remove);
    const place = await fillPlace(database.location, await newDirectory());
    const { url } = database.location as { readonly url: string };
    return at(place, url);
  }

  function at(place: Place, url: string): Place & { readonly url: string } {
    const PATH = [client!.directory, process.env['PATH']].filter(Boolean).join(':');
    return { ...place, url, env: { ...place.env, PATH, DATABASE_URL: url } };
  }

  async function emptyDatabase(): Promise<string> {
    const { location, remove } = await newDatabase('postgres', cluster);
    ends.push(remove);
    return (location as { readonly url: string }).url;
  }

  const serve = async ({ url }: { readonly url: string }) => {
    const database = { location: { url }, execute: async () => {}, remove: async () => {} };
    const server = await serveHere(database, { SERVICE_LOCAL_CATALOGUE_DIR: directory });
    ends.push(() => server.stop());
    return server;
  };

  test('restores a dump into an empty database, halts trading and ends codes', async () => {
    const place = await newPlace();
    const first = await serve(place);
    const machine = await newMachine(ends);
    await answer(machine(first.url, 'enroll', '--code', place.code, '--json'));
    await send(place, first.url, 'POST', '/bots', {
      document: tradingDocument('sma', 'SPX', '1d', 1),
    });
    await send(place, first.url, 'POST', '/bots/sma/paper/start', SLOW);
    const code = ['identity', 'devices', 'enroll-code', '--deployment', 'osaka', '--json'];
    const osaka = await answer<{ readonly code: string }>(cli(place, code, first.url));

    const backup = ['server', 'backup', '--out', 'backup.dump', '--json'];
    expect(await answer(cli(place, backup))).toMatchObject({ kind: 'postgres', content: null });
    expect((await stat(join(place.directory, 'backup.dump'))).mode & 0o777).toBe(0o600);
    expect(await readdir(place.directory)).toEqual(['backup.dump']);

    const [recovery = ''] = place.ada.recovery_codes;
    const revoke = ['identity', 'leases', 'revoke', '--deployment', 'tokyo', '--reason', 'unpaid'];
    const confirmed = ['--confirm', 'tokyo', '--code', recovery, '--json'];
    await answer(cli(place, [...revoke, ...confirmed], first.url));
    const list = ['identity', 'audit', 'list', '--after', '0', '--json'];
    const { stdout: log } = await cli(place, list, first.url);
    await first.stop();

    const restore = ['server', 'restore', 'backup.dump', '--json'];
    expect(await cli(place, restore)).toMatchObject({
      code: 6,
      stdout: expect.stringContaining('"reason": "database_not_empty"'),
    });

    const another = at(place, await emptyDatabase());
    const { entries } = JSON.parse(log) as { readonly entries: readonly object[] };
    await writeFile(
      join(place.directory, 'gap.json'),
      JSON.stringify({ entries: entries.slice(-1) }),
    );
    expect(await cli(another, [...restore, '--audit', 'gap.json'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/"reason": "missing"/),
    });
    const tables = await query(another.url, "select 1 from pg_tables where schemaname = 'public'");
    expect(tables).toEqual([]);

    await writeFile(join(place.directory, 'audit.json'), log);
    const restored = await answer<Restored>(cli(another, [...restore, '--audit', 'audit.json']));
    expect(restored).toMatchObject({
      epoch: 2,
      ended_sessions: 1,
      replaced: null,
      applied: { 'admin.identity.license.revoke': 1 },
    });
    const second = await serve(another);
    expect((await send(place, second.url, 'GET', '/readyz')).body).toMatchObject({
      status: 'ready',
    });
    expect(await send(place, second.url, 'POST', '/bots/sma/paper/start', SLOW)).toMatchObject({
      status: 409,
      body: { reason: 'halted' },
    });
    const other = await newMachine(ends);
    expect(await other(second.url, 'enroll', '--code', osaka.code)).toMatchObject({ code: 4 });
    expect(await machine(second.url, 'renew', '--now')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is revoked'),
    });
    const verified = await cli(another, ['identity', 'audit', 'verify'], second.url);
    expect(verified.code).toBe(0);
  });

  test('refuses to start a server on a database whose restore is incomplete', async () => {
    const place = await newPlace();
    await answer(cli(place, ['server', 'backup', '--out', 'backup.dump', '--json']));
    const another = at(place, await emptyDatabase());
    // The state that a killed restore leaves.
    await query(another.url, `create table ${RESTORE_MARKER} ()`);
    await expect(serve(another)).rejects.toMatchObject({
      code: 'storage_unavailable',
      reason: 'restore_interrupted',
    });
    expect(await cli(another, ['server', 'restore', 'backup.dump', '--json'])).toMatchObject({
      code: 6,
      stdout: expect.stringContaining('"reason": "restore_interrupted"'),
    });
  });

  test('refuses to restore a truncated dump', async () => {
    const place = await newPlace();
    await answer(cli(place, ['server', 'backup', '--out', 'backup.dump', '--json']));
    const file = join(place.directory, 'backup.dump');
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, bytes.length - 1000));
    const another = at(place, await emptyDatabase());
    const { code, stderr } = await cli(another, ['server', 'restore', 'backup.dump']);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('pg_restore failed'),
    });
    expect(await query(another.url, "select 1 from pg_tables where schemaname = 'public'")).toEqual(
      [],
    );
  });
});

describe('with other programs', () => {
  /** Puts a shell script on the PATH as pg_dump. */
  async function withProgram(script: string): Promise<Place> {
    const database = await newDatabase('postgres');
    ends.push(database.remove);
    const url = new URL((database.location as { readonly url: string }).url);
    url.password = 'hunter2-secret';
    const programs = await newDirectory(TEMPORARY);
    for (const name of [DUMP, 'pg_restore']) {
      await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`);
      await chmod(join(programs, name), 0o755);
    }
    const place = await fillPlace({ url: url.href }, await newDirectory());
    return { ...place, env: { ...place.env, PATH: `${programs}:/usr/bin:/bin` } };
  }

  test('does not run an older pg_dump, and prints the command without the password', async () => {
    const place = await withProgram('echo "pg_dump (PostgreSQL) 12.3"');
    const { code, stdout, stderr } = await cli(place, ['server', 'backup', '--out', 'backup.dump']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^error backup_tool_missing: pg_dump \(PostgreSQL\) 12\.3 is older than/,
    );
    expect(stderr).toMatch(
      /: pg_dump --format=custom --file=\S+backup\.dump --host=\S+ --port=5432 --username=postgres test_\w+\n$/,
    );
    expect(stderr).not.toContain('hunter2');
    expect(await readdir(place.directory)).toEqual([]);
  });

  test('pg_dump uses DATABASE_URL in spite of other variables of PostgreSQL', async () => {
    const record = join(await newDirectory(), 'record');
    const place = await withProgram(
      `case "$1" in --version) echo "pg_dump (PostgreSQL) 99.0";; *) env > ${record}; exit 1;; esac`,
    );
    const env = {
      ...place.env,
      PGSERVICE: 'other',
      PGHOSTADDR: '192.0.2.1',
      PGDATABASE: 'other',
    };
    const backup = ['server', 'backup', '--out', 'backup.dump'];
    expect(await cli({ ...place, env }, backup)).toMatchObject({ code: 1 });
    const seen = await readFile(record, 'utf8');
    expect(seen).not.toMatch(/^PG(SERVICE|HOSTADDR)=/m);
    expect(seen).toMatch(/^PGDATABASE=test_/m);
  });

  test('passes the password to pg_dump in its environment, never in arguments or errors', async () => {
    const record = join(await newDirectory(), 'record');
    const place = await withProgram(
      `case "$1" in --version) echo "pg_dump (PostgreSQL) 99.0";; *) echo "$PGPASSWORD" "$PGDATABASE" "$@" > ${record}; echo "wrong: $PGPASSWORD" >&2; exit 1;; esac`,
    );
    const { code, stderr } = await cli(place, ['server', 'backup', '--out', 'backup.dump']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error storage_unavailable: pg_dump failed: wrong: …\n/),
    });
    expect(stderr).not.toContain('hunter2');
    const [password, database, ...args] = (await readFile(record, 'utf8')).trim().split(' ');
    expect([password, database]).toEqual(['hunter2-secret', expect.stringMatching(/^test_/)]);
    expect(args.join(' ')).toMatch(/^--format=custom --no-password --file=\S+\.tmp$/);
    expect(await readdir(place.directory)).toEqual([]);
  });
});
