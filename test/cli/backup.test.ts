import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readAudit, verifyWholeAudit, type AuditEntry } from '../../src/identity/audit.ts';
import type { Restored } from '../../src/server/restore-database.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { PASSWORD } from '../identity/people.ts';
import { researchDocument } from '../research/talk.ts';
import { SCRATCH } from '../scratch.ts';
import { serveHere, startServer, type ServerHere } from '../server/running.ts';
import { tradingDocument } from '../server/trader.ts';
import { newSqliteTables, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import { answer, cli, fillPlace, newMachine, send, type Ends, type Place } from './backup-setup.ts';
import { isAtLength } from '../length.ts';

/** Daily bars, so that a paper session at the market's pace outlasts the test. */
const SLOW = { speed: 1 };

let directory: string;
/** Cleanup functions, newest first. */
let ends: Ends = [];

beforeAll(async () => {
  directory = await mkdtemp(join(SCRATCH, 'backup-'));
  await fillCatalogue(directory, 1);
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});
afterAll(() => rm(directory, { recursive: true }));

interface SqlitePlace extends Place {
  readonly database: TestDatabase;
  readonly file: string;
  readonly backup: string;
}

async function newPlace(): Promise<SqlitePlace> {
  const database = await newSqliteTables();
  ends.push(database.remove);
  const { file } = database.location;
  const place = await fillPlace(database.location);
  return { ...place, database, file, backup: join(dirname(file), 'backup.sqlite') };
}

const serve = async (
  { database }: SqlitePlace,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerHere> => {
  const server = await serveHere(database, {
    SERVICE_LOCAL_CATALOGUE_DIR: directory,
    ...variables,
  });
  ends.push(() => server.stop());
  return server;
};

const modeOf = async (file: string): Promise<number> => (await stat(file)).mode & 0o777;

test.runIf(isAtLength)('backs up the state of one moment while a server writes', async () => {
  const place = await newPlace();
  const server = await startServer(place.database);
  ends.push(server.kill);
  let acknowledged = 0;
  const write = async (): Promise<void> => {
    const customer = { customer_id: `n-${acknowledged}`, name: 'x'.repeat(100) };
    const { status } = await send(place, server.url, 'POST', '/identity/customers', customer);
    expect(status).toBe(201);
    acknowledged += 1;
  };
  const over = new AbortController();
  const writeOn = async (): Promise<void> => {
    while (!over.signal.aborted) await write();
  };
  for (let i = 0; i < 5; i += 1) await write();
  const before = acknowledged;
  const writing = writeOn();
  const made = await answer<{ bytes: number; content: { audit_head: { seq: number } } }>(
    cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']),
  );
  over.abort();
  await writing;

  expect(await modeOf(place.backup)).toBe(0o600);
  expect((await readdir(dirname(place.file))).filter((name) => name.includes('backup'))).toEqual([
    'backup.sqlite',
  ]);
  const storage = await openStorage({ file: place.backup });
  const customers = await storage.read.selectFrom('customers').select('customer_id').execute();
  const verdict = await verifyWholeAudit((after) => readAudit(storage.read, after, 1000));
  await storage.close();
  const numbers = customers.flatMap(({ customer_id: id }) =>
    id.startsWith('n-') ? [Number(id.slice(2))] : [],
  );
  expect(numbers.length).toBeGreaterThanOrEqual(before);
  expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, i) => i));
  expect(verdict).toEqual({ last: made.content.audit_head });
  expect(acknowledged).toBeGreaterThanOrEqual(numbers.length);
});

test('replaces a file only with --force, and never the database itself', async () => {
  const place = await newPlace();
  await writeFile(place.backup, 'mine');
  const out = ['server', 'backup', '--out', 'backup.sqlite'];
  expect(await cli(place, out)).toMatchObject({
    code: 6,
    stderr: expect.stringMatching(/^error conflict: .*backup\.sqlite already exists\n→ .*--force/),
  });
  expect(await readFile(place.backup, 'utf8')).toBe('mine');
  expect(await cli(place, [...out, '--force'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /backup\.sqlite: [\d,]+ bytes, checked\.\nDatabase .* epoch 1\.\n/,
    ),
  });
  const own = ['server', 'backup', '--out', 'server.sqlite', '--force'];
  expect(await cli(place, own)).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('belongs to the database itself'),
  });
  const nowhere = ['server', 'backup', '--out', 'nowhere/backup.sqlite'];
  expect(await cli(place, nowhere)).toMatchObject({ code: 1 });
});

test.runIf(isAtLength)('backs up, restores and replaces a database of version 0.1.0', async () => {
  const home = await mkdtemp(join(directory, 'old-'));
  const fixture = join(import.meta.dirname, '../fixtures/0.1.0/server.sqlite.gz');
  await writeFile(join(home, 'server.sqlite'), gunzipSync(await readFile(fixture)));
  const env = { SERVICE_LOCAL_HOME: home };
  const run = async (...args: string[]) =>
    answer<object>(inProcess([...args, '--json'], { cwd: home, env }));
  expect(await run('server', 'backup', '--out', 'backup.sqlite')).toMatchObject({
    content: { database_id: null, epoch: null, audit_head: { seq: 31 } },
  });
  const restore = ['server', 'restore', 'backup.sqlite', '--force'];
  const first = await run(...restore);
  expect(first).toMatchObject({ epoch: 2, backup_head: { seq: 31 } });
  // Each replaced database is kept, even twice within a second.
  const second = await run(...restore);
  expect(second).toMatchObject({ epoch: 3 });
  const kept = (await readdir(home)).filter((name) => name.includes('.replaced-'));
  expect(kept).toHaveLength(2);
});

test('refuses to back up a damaged database', async () => {
  const place = await newPlace();
  const bytes = await readFile(place.file);
  bytes.fill(0xa5, 4096 * 3, 4096 * 30);
  await writeFile(place.file, bytes);
  const { code, stderr } = await cli(place, ['server', 'backup', '--out', 'backup.sqlite']);
  expect({ code, stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^error storage_unavailable: /),
  });
  expect(await readdir(dirname(place.file))).not.toContain('backup.sqlite');
});

test('halts all trading after a restore, and ends login sessions, codes and proofs', async () => {
  const place = await newPlace();
  await place.database.execute(`
    insert into sessions (session_id, administrator_id, secret_hash, csrf_token, signed_in_with,
      user_agent, created_at, seen_at, expires_at)
    values ('s', '${place.ada.id}', 'x', 'x', 'password', '', 0, 0, 9e15);
    insert into step_ups (token_hash, administrator_id, action, target, expires_at)
    values ('x', '${place.ada.id}', 'identity.license.revoke', 'deployment:tokyo', 9e15);
    insert into challenges (challenge_hash, purpose, expires_at) values ('x', 'sign_in', 9e15)`);
  const first = await serve(place);
  const machine = await newMachine(ends);
  await answer(machine(first.url, 'enroll', '--code', place.code, '--json'));
  const document = tradingDocument('sma', 'SPX', '1d', 1);
  await send(place, first.url, 'POST', '/bots', { document });
  const started = await send(place, first.url, 'POST', '/bots/sma/paper/start', SLOW);
  const { task_id } = started.body as { readonly task_id: string };
  const schedule = { every: 'day at 06:30', prompt: 'What can I ask?' };
  const talk = researchDocument('talk', { agents: [{ role: 'watcher', schedule }] });
  await send(place, first.url, 'POST', '/bots', { document: talk });
  await answer(cli(place, ['bots', 'agents', 'start', 'talk', 'watcher', '--json'], first.url));
  const { code } = await answer<{ readonly code: string }>(
    cli(
      place,
      ['identity', 'devices', 'enroll-code', '--deployment', 'osaka', '--json'],
      first.url,
    ),
  );
  const totp = place.ada.nextCode();
  await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));
  // A lease issued after the backup.
  await answer(machine(first.url, 'renew', '--now', '--json'));

  const restore = ['server', 'restore', 'backup.sqlite', '--json'];
  expect(await cli(place, restore)).toMatchObject({
    code: 6,
    stdout: expect.stringContaining('"reason": "database_exists"'),
  });
  expect(await cli(place, [...restore, '--force'])).toMatchObject({
    code: 6,
    stdout: expect.stringContaining('"reason": "database_in_use"'),
  });
  expect((await send(place, first.url, 'GET', '/readyz')).status).toBe(200);
  await first.stop();

  const restored = await answer<Restored>(cli(place, [...restore, '--force']));
  expect(restored).toMatchObject({
    epoch: 2,
    ended_sessions: 1,
    stopped_agents: 1,
    imported_entries: 0,
    warnings: [expect.stringMatching(/^revocations after the backup are lost/)],
  });
  const database = new Database(place.file, { readonly: true });
  for (const table of ['sessions', 'step_ups', 'challenges']) {
    expect(database.prepare(`select * from ${table}`).all(), table).toEqual([]);
  }
  database.close();
  expect(await modeOf(place.file)).toBe(0o600);
  expect(await modeOf(restored.replaced!)).toBe(0o600);

  const second = await serve(place);
  expect((await send(place, second.url, 'GET', '/readyz')).body).toMatchObject({
    status: 'ready',
  });
  expect((await send(place, second.url, 'GET', `/tasks/${task_id}`)).body).toMatchObject({
    status: 'canceled',
  });
  expect(await send(place, second.url, 'POST', '/bots/sma/paper/start', SLOW)).toMatchObject({
    status: 409,
    body: { reason: 'halted' },
  });
  const agents = ['bots', 'agents', 'list', 'talk', '--json'];
  expect(await answer(cli(place, agents, second.url))).toMatchObject({
    agents: [{ is_on: false, stopped_by: 'operator', stopped_reason: 'restored' }],
  });
  const another = await newMachine(ends);
  expect(await another(second.url, 'enroll', '--code', code)).toMatchObject({ code: 4 });
  const login = (factor: string) =>
    send(place, second.url, 'POST', '/identity/tokens', {
      administrator: place.ada.name,
      password: PASSWORD,
      code: factor,
      label: 'test',
      scopes: ['read'],
      expires_in_seconds: 3600,
    });
  expect(await login(totp)).toMatchObject({ status: 401 });
  expect(await login(place.ada.recovery_codes[0]!)).toMatchObject({ status: 201 });

  // The machine repeats its request with a nonce, and the warning about its lease is recorded.
  await answer(machine(second.url, 'renew', '--now', '--json'));
  const { entries } = await answer<{ readonly entries: readonly AuditEntry[] }>(
    cli(place, ['identity', 'audit', 'list', '--json'], second.url),
  );
  expect(entries.at(-1)).toMatchObject({
    action: 'identity.license.renew',
    details: { warnings: ['unknown_lease'] },
  });
  expect(entries.find(({ action }) => action === 'server.database.restore')).toMatchObject({
    actor: 'operator',
    details: { epoch: 2, previous_epoch: 1 },
  });
  const lifted = ['bots', 'resume-all', '--reason', 'compared with the venue', '--json'];
  await answer(cli(place, lifted, second.url));
  expect((await send(place, second.url, 'POST', '/bots/sma/paper/start', SLOW)).status).toBe(202);
});

test.runIf(isAtLength)(
  'restores withdrawals made after the backup from an exported audit log',
  async () => {
    const place = await newPlace();
    const first = await serve(place);
    const machine = await newMachine(ends);
    await answer(machine(first.url, 'enroll', '--code', place.code, '--json'));
    const document = tradingDocument('sma', 'SPX', '1d', 1);
    await send(place, first.url, 'POST', '/bots', { document });
    await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));

    const [recovery = ''] = place.ada.recovery_codes;
    const revoke = ['identity', 'leases', 'revoke', '--deployment', 'tokyo', '--reason', 'unpaid'];
    const confirmed = ['--confirm', 'tokyo', '--code', recovery, '--json'];
    await answer(cli(place, [...revoke, ...confirmed], first.url));
    await answer(cli(place, ['bots', 'halt', 'sma', '--reason', 'a test', '--json'], first.url));
    const plan = ['identity', 'plans', 'create', '--id', 'new', '--name', 'New', '--json'];
    await answer(cli(place, plan, first.url));
    const listed = await cli(
      place,
      ['identity', 'audit', 'list', '--after', '0', '--json'],
      first.url,
    );
    await first.stop();

    const audit = join(dirname(place.file), 'audit.json');
    const { entries } = JSON.parse(listed.stdout) as { readonly entries: AuditEntry[] };
    const restore = [
      'server',
      'restore',
      'backup.sqlite',
      '--force',
      '--audit',
      'audit.json',
      '--json',
    ];
    const rejection = async (changed: readonly AuditEntry[]): Promise<object> => {
      await writeFile(audit, JSON.stringify({ entries: changed }));
      const { code, stdout } = await cli(place, restore);
      expect(code).toBe(1);
      const files = await readdir(dirname(place.file));
      expect(files.sort()).toEqual(['audit.json', 'backup.sqlite', 'server.sqlite']);
      const database = new Database(place.file, { readonly: true });
      expect(database.prepare('select hash from audit_head').get()).toEqual({ hash: last.hash });
      database.close();
      return (JSON.parse(stdout) as { readonly error: object }).error;
    };
    const last = entries.at(-1)!;
    const gap = entries.filter(({ seq }) => seq !== last.seq - 1);
    expect(await rejection(gap)).toMatchObject({
      code: 'audit_tampered',
      reason: 'missing',
      message: `audit.json: entry ${last.seq - 1} is missing`,
    });
    const forged = entries.map((entry) =>
      entry.seq === last.seq - 1 ? { ...entry, target: 'deployment:osaka' } : entry,
    );
    expect(await rejection(forged)).toMatchObject({
      reason: 'altered',
      message: `audit.json: entry ${last.seq - 1} has been altered`,
    });
    expect(await rejection(entries.map((entry) => ({ ...entry, hash: last.hash })))).toMatchObject({
      reason: 'other_log',
    });

    const backupHead = await answer<Restored>(
      cli(place, ['server', 'restore', 'backup.sqlite', '--force', '--json']),
    ).then(({ backup_head }) => backup_head);
    await writeFile(
      audit,
      JSON.stringify({ entries: entries.filter(({ seq }) => seq <= backupHead.seq) }),
    );
    expect(await answer(cli(place, restore))).toMatchObject({
      imported_head: null,
      warnings: [expect.stringMatching(/^the audit log has no entry after the backup/)],
    });

    await writeFile(audit, listed.stdout);
    const { stdout: shown } = await cli(place, restore.slice(0, -1));
    expect(shown).toMatch(/codes of authenticator apps work again after a minute/);
    expect(shown).toMatch(/used a recovery code after the backup have none left/);
    const restored = await answer<Restored>(cli(place, restore));
    const { seq, hash, recorded_at } = last;
    expect(restored).toMatchObject({
      applied: {
        'admin.identity.license.revoke': 1,
        'admin.identity.administrator.step_up': 1,
      },
      not_applied: { 'admin.identity.plan.create': 1 },
      imported_entries: 4,
      imported_head: { seq, hash, recorded_at },
      warnings: [],
    });

    const second = await serve(place);
    const denied = await machine(second.url, 'renew', '--now');
    expect(denied).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('the license of the installation tokyo is revoked'),
    });
    await answer(cli(place, ['bots', 'resume-all', '--reason', 'a test', '--json'], second.url));
    expect(await send(place, second.url, 'POST', '/bots/sma/paper/start', SLOW)).toMatchObject({
      status: 409,
      body: { reason: 'halted' },
    });
    const verified = ['identity', 'audit', 'verify', '--head', `${last.seq}:${last.hash}`];
    expect(await cli(place, verified, second.url)).toMatchObject({ code: 0 });
  },
);

test.runIf(isAtLength)(
  'reports a keyset older than that of the machines, and restores a published one',
  async () => {
    const place = await newPlace();
    const first = await serve(place);
    const identity = (...words: string[]) =>
      answer<object>(cli(place, ['identity', ...words, '--json'], first.url));
    const sign = ['root', 'sign-keyset', '--chain', 'root/license-root.json', '--upload', '--yes'];
    const key = ['--key', 'root/root-key-1.pem'];
    await identity('root', 'init', '--out', 'root');
    await identity(...sign, ...key, '--code', place.ada.recovery_codes[0]!);
    await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));
    expect(await identity(...sign, ...key)).toMatchObject({ version: 2 });
    const published = await (await fetch(`${first.url}/.well-known/license-keys.json`)).text();
    const log = await cli(
      place,
      ['identity', 'audit', 'list', '--after', '0', '--json'],
      first.url,
    );
    await first.stop();
    const home = dirname(place.file);
    await writeFile(join(home, 'audit.json'), log.stdout);
    await writeFile(join(home, 'keyset.json'), published);

    const restore = ['server', 'restore', 'backup.sqlite', '--force', '--audit', 'audit.json'];
    expect(await answer<Restored>(cli(place, [...restore, '--json']))).toMatchObject({
      keyset_version: 2,
      stored_keyset_version: 1,
      warnings: [
        expect.stringMatching(/^machines may hold version 2 of the keyset.* version 1: run `/),
      ],
    });
    const other = JSON.stringify({ ...(JSON.parse(published) as object), roots: [] });
    await writeFile(join(home, 'other.json'), other);
    expect(await cli(place, [...restore, '--keyset', 'other.json'])).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(
        /^error invalid_data: the keyset does not follow the stored one/,
      ),
    });
    const again = [...restore, '--keyset', 'keyset.json', '--json'];
    expect(await answer<Restored>(cli(place, again))).toMatchObject({
      stored_keyset_version: 2,
      warnings: [],
    });
    const second = await serve(place);
    const served = await (await fetch(`${second.url}/.well-known/license-keys.json`)).json();
    const { roots, keyset } = JSON.parse(published) as { roots: object; keyset: object };
    expect(served).toMatchObject({ roots, keyset });
  },
);

test.runIf(isAtLength)('withdraws the keys that a restored keyset lacks', async () => {
  const place = await newPlace();
  const home = dirname(place.file);
  const first = await serve(place);
  const identity = (url: string, ...words: string[]) =>
    answer<object>(cli(place, ['identity', ...words, '--json'], url));
  const sign = ['root', 'sign-keyset', '--chain', 'root/license-root.json', '--upload', '--yes'];
  const key = ['--key', 'root/root-key-1.pem'];
  await identity(first.url, 'root', 'init', '--out', 'root');
  await identity(first.url, ...sign, ...key, '--code', place.ada.recovery_codes[0]!);
  const signedWith = await fetch(`${first.url}/auth/license/public-key`);
  const { public_key_id: former } = (await signedWith.json()) as { readonly public_key_id: string };
  await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));
  await first.stop();

  const next = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  const second = await serve(place, { SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: next });
  await identity(second.url, ...sign, ...key);
  expect((await cli(place, ['identity', 'keys', 'retire', '--', former], second.url)).code).toBe(0);
  expect(await identity(second.url, ...sign, ...key)).toMatchObject({ retired: [former] });
  const published = await (await fetch(`${second.url}/.well-known/license-keys.json`)).text();
  await writeFile(join(home, 'keyset.json'), published);
  await second.stop();

  const restore = ['server', 'restore', 'backup.sqlite', '--force', '--keyset', 'keyset.json'];
  await answer(cli(place, [...restore, '--json']));
  const third = await serve(place);
  const issue = { deployment_id: 'tokyo' };
  expect(await send(place, third.url, 'POST', '/auth/license/leases', issue)).toMatchObject({
    status: 503,
    body: { code: 'license_lease_unavailable', reason: 'retired_key' },
  });
  const served = await (await fetch(`${third.url}/.well-known/license-keys.json`)).json();
  expect(served).toMatchObject({ keys: [] });
});

test('a server that still has the replaced file open does not trade', async () => {
  const place = await newPlace();
  await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));
  const old = await serve(place);
  await send(place, old.url, 'POST', '/bots', { document: tradingDocument('sma', 'SPX', '1d', 1) });
  // Simulates a replacement while the server is running.
  await rm(place.file);
  await answer(cli(place, ['server', 'restore', 'backup.sqlite', '--json']));
  expect(await send(place, old.url, 'POST', '/bots/sma/paper/start', SLOW)).toMatchObject({
    status: 409,
    body: { code: 'database_not_adopted', reason: 'moved' },
  });
});

test('replaces a database that is too damaged to open, and keeps a copy of it', async () => {
  const place = await newPlace();
  await answer(cli(place, ['server', 'backup', '--out', 'backup.sqlite', '--json']));
  await writeFile(place.file, 'what a bad disk left');
  const restore = ['server', 'restore', 'backup.sqlite', '--force', '--json'];
  const { replaced } = await answer<Restored>(cli(place, restore));
  expect(await readFile(replaced!, 'utf8')).toBe('what a bad disk left');
  const database = new Database(place.file, { readonly: true });
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  database.close();
});

test('refuses to restore a file that is not a backup', async () => {
  const place = await newPlace();
  await writeFile(place.backup, 'no database');
  const restore = (file: string) => cli(place, ['server', 'restore', file, '--force']);
  const rejection = async (file: string, code: number, text: string): Promise<void> =>
    expect(await restore(file)).toMatchObject({ code, stderr: expect.stringContaining(text) });
  await rejection('backup.sqlite', 3, 'is not a SQLite database');
  await rejection('nowhere.sqlite', 3, 'file_not_found');
  await rejection('server.sqlite', 3, 'is a database in use, not a backup');
  new Database(join(dirname(place.file), 'other.sqlite')).exec('create table t (x)').close();
  await rejection('other.sqlite', 1, 'audit_head');
});
