/** This version opens, migrates, verifies and continues files and databases of earlier versions. */
import { createHash } from 'node:crypto';
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Lock, Summary } from '../src/backtest/summary.ts';
import { verifyEvents } from '../src/events/verify-events.ts';
import { readAudit, verifyWholeAudit } from '../src/identity/audit.ts';
import { getLease } from '../src/identity/leases.ts';
import { addToken, authenticateToken } from '../src/identity/tokens.ts';
import { importKeyset } from '../src/lease/keys.ts';
import { leaseStatus } from '../src/lease/status.ts';
import { checkLeaseUse } from '../src/lease/use.ts';
import { verifyLease } from '../src/lease/verify.ts';
import { SCOPES } from '../src/base/scopes.ts';
import { openStorage, type Storage } from '../src/storage/storage.ts';
import { inProcess } from './cli/in-process.ts';
import type { Result } from './cli/service-local.ts';
import { codeAt } from './identity/people.ts';
import { isAtLength } from './length.ts';
import { SCRATCH } from './scratch.ts';
import { serveHere, type ServerHere } from './server/running.ts';
import { DATABASES, newDatabase, type TestDatabase } from './storage/databases.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures/0.1.0');

/** Facts about a database that `fixtures/make.ts` recorded. */
interface Kept {
  readonly token: string;
  readonly administrator_id: string;
  readonly leases: Readonly<Record<string, string>>;
  readonly retired_key: string;
  readonly locked: { readonly version: number; readonly task_id: string; readonly trades: string };
  readonly stopped: string;
  readonly halted: string;
  readonly running: string;
  readonly queued_backtest: string;
  readonly queued_paper: string;
  readonly heads: Readonly<Record<string, Head>>;
}

interface Head {
  readonly bot_id: string;
  readonly seq: number;
  readonly hash: string;
  readonly state_hash: string;
}

type Made = Readonly<Record<Storage['kind'], Kept>> & {
  readonly made_at: string;
  readonly runs_to: string;
  readonly password: string;
  readonly totp_secret: string;
};

const text = (name: string): Promise<string> => readFile(join(FIXTURES, name), 'utf8');
const made = JSON.parse(await text('made.json')) as Made;
const NOW = Date.parse(made.made_at);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(SCRATCH, 'service-local-fixtures-'));
  await cp(FIXTURES, directory, { recursive: true });
  // Git does not preserve the file permissions that the program requires.
  for (const folder of ['home', 'runner/runner']) await makePrivate(join(directory, folder));
});
afterAll(() => rm(directory, { recursive: true }));

async function makePrivate(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isFile()) await chmod(join(folder, entry.name), 0o600);
  }
}

const read = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');
const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

describe('leases of 0.1.0', () => {
  it.each([
    ['valid', 'valid'],
    ['grace', 'grace'],
    ['expired', 'expired'],
    ['revoked', 'valid'],
  ])('verify against their keyset: %s', async (name, state) => {
    const keyset = importKeyset(JSON.parse(await read('leases/keyset.json')));
    if (!keyset.ok) throw new Error(keyset.detail);
    const verified = verifyLease(await read(`leases/${name}.json`), keyset.keys);
    if (!verified.ok) throw new Error(verified.detail);
    expect(leaseStatus(verified.claims, NOW).state).toBe(state);
    expect(checkLeaseUse(verified.claims, { product: 'any' })).toEqual({ ok: true });
    expect(verified.claims.lease_id).toBe(made.sqlite.leases[name]);
  });

  it('leases of 0.1.0 are rejected once their key is retired', async () => {
    const keyset = importKeyset(JSON.parse(await read('leases/keyset.json')));
    if (!keyset.ok) throw new Error(keyset.detail);
    expect(verifyLease(await read('leases/of-retired-key.json'), keyset.keys).ok).toBe(false);
  });

  it('leases of 0.1.0 are read from the home directory, with their backup', async () => {
    const lease = await read('home/license_lease.json');
    expect(await read('home/license_lease.json.bak')).toBe(lease);
    const keyset = importKeyset(JSON.parse(await read('home/license_public_key.json')));
    if (!keyset.ok) throw new Error(keyset.detail);
    const verified = verifyLease(lease, keyset.keys);
    if (!verified.ok) throw new Error(verified.detail);
    expect(leaseStatus(verified.claims, NOW).state).toBe('valid');
  });
});

describe('files of 0.1.0', () => {
  const env = (): Record<string, string> => ({ SERVICE_LOCAL_HOME: join(directory, 'home') });
  const run = (...words: string[]): Promise<Result> =>
    inProcess([...words, '--json'], { cwd: directory, env: env() });

  it('result files of 0.1.0 have the checksums in their summary', async () => {
    const { hashes } = JSON.parse(await read('results/summary.json')) as Summary;
    expect({
      events: sha256(await read('results/events.ndjson')),
      trades: sha256(await read('results/trades.csv')),
      equity: sha256(await read('results/equity.csv')),
    }).toMatchObject(hashes);
  });

  it.runIf(isAtLength)('a backtest of a bot of 0.1.0 has the same trades as before', async () => {
    const before = JSON.parse(await read('results/summary.json')) as Summary;
    const words = ['backtest', 'bot.json', '--out', join(directory, 'again')];
    const again = await run(...words);
    expect(again).toMatchObject({ code: 0 });
    const { hashes, lock } = JSON.parse(again.stdout) as Summary;
    expect(hashes.trades).toBe(before.hashes.trades);
    expect(withoutEngine(lock)).toEqual(withoutEngine(before.lock));
    expectLocked(await run(...words, '--verify-lock'));
  });

  it('the catalogue and the settings of 0.1.0 are readable', async () => {
    const list = await run('data', 'list');
    expect(list).toMatchObject({ code: 0 });
    expect(list.stdout).toContain('SPX');
    expect(await run('data', 'verify', 'SPX')).toMatchObject({ code: 0 });
    expect((await run('config', 'explain', 'workers')).stdout).toContain('config.yaml');
  });

  it("a runner's journal of 0.1.0 continues to the result of a backtest", async () => {
    const journal = join(directory, 'runner/runner/runner.sqlite');
    await writeFile(journal, gunzipSync(await readFile(`${journal}.gz`)), { mode: 0o600 });
    const storage = await openStorage({ file: journal });
    const { bot_id, event_seq } = await storage.read
      .selectFrom('bots')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(await verifyEvents(storage.read, bot_id)).toMatchObject({ fault: undefined });
    await storage.close();
    expect(event_seq).toBeGreaterThan(10);

    const config = JSON.parse(await read('run.json')) as object;
    await writeFile(join(directory, 'run.json'), JSON.stringify({ ...config, speed: 'max' }));
    const done = await run('run', 'run.json');
    expect(done).toMatchObject({ code: 0 });
    const before = JSON.parse(await read('results/summary.json')) as Summary;
    const { outcome, steps, state } = JSON.parse(done.stdout) as {
      readonly outcome: string;
      readonly steps: number;
      readonly state: { readonly equity: number };
    };
    expect({ outcome, steps }).toEqual({ outcome: 'finished', steps: before.window.bars });
    expect(state.equity).toBeCloseTo(before.equity.end, 6);
  });
});

/** The part of a lock that does not depend on the engine. */
function withoutEngine({ spec, seed, strategy, data }: Lock): object {
  return { spec, seed, strategy, data };
}

/** Checks that nothing but the engine has changed since the lock was written. */
function expectLocked({ code, stdout }: Result): void {
  if (code === 0) return;
  const { error } = JSON.parse(stdout) as { error: { code: string; message: string } };
  expect({ code, error }).toMatchObject({ code: 6, error: { code: 'lock_drift' } });
  expect(error.message).toMatch(/engine/);
  expect(error.message).not.toMatch(/data|spec|strategy|seed/);
}

describe.each(DATABASES)('a database of 0.1.0 on %s', (kind) => {
  const kept = made[kind];
  let database: TestDatabase;
  beforeEach(async () => {
    database = await newDatabase(kind);
    if ('file' in database.location) {
      const bytes = gunzipSync(await readFile(join(FIXTURES, 'server.sqlite.gz')));
      await writeFile(database.location.file, bytes, { mode: 0o600 });
    } else {
      await database.execute(await text('postgres.sql'));
    }
  });
  afterEach(() => database.remove());

  it('a database of 0.1.0 is migrated, and all of its hash chains are valid', async () => {
    const storage = await openStorage(database.location);
    try {
      const verdict = await verifyWholeAudit((after) => readAudit(storage.read, after, 1000));
      expect(verdict.fault).toBeUndefined();
      expect(verdict.last.seq).toBeGreaterThan(20);
      for (const { bot_id, state_hash, ...head } of Object.values(kept.heads)) {
        const replay = await verifyEvents(storage.read, bot_id);
        expect(replay).toMatchObject({ head, state_hash, fault: undefined });
      }
      for (const [name, lease_id] of Object.entries(kept.leases)) {
        const { state } = await getLease(storage.read, NOW, lease_id);
        expect(state).toBe(name === 'of-retired-key' ? 'expired' : name);
      }
      const caller = await authenticateToken(storage.read, NOW, kept.token);
      expect(caller).toMatchObject({ administrator_id: kept.administrator_id });
    } finally {
      await storage.close();
    }
  });

  it.runIf(isAtLength)(
    'is continued by a server: what was under way ends, and everything still works',
    async () => {
      const server = await serveHere(database, {
        SERVICE_LOCAL_CATALOGUE_DIR: join(directory, 'catalogue'),
        SERVICE_LOCAL_CUSTOM_CODE: 'true',
        SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: await text('license-key.pem'),
      });
      try {
        const use = await usesOf(server, database, kept);
        await endsWhatWasUnderWay(use, kept);
        await tradesAsBefore(use, kept);
        await keepsItsRefusals(use, kept);
        await administersAsBefore(use, kept);
        if (kind === 'sqlite') await renewsTheMachine(server);
        expect(server.log()).not.toMatch(/"level":"(?:error|fatal)"/);
      } finally {
        await server.stop();
      }
    },
  );
});

/** Runs a command; a last argument that is not a string is its standard input. */
type Use = (...words: (string | { readonly input: string })[]) => Promise<Result>;

/** Runs commands with a new token, since that of the fixtures expires. */
async function usesOf(server: ServerHere, { location }: TestDatabase, kept: Kept): Promise<Use> {
  const storage = await openStorage(location);
  const terms = { label: 'test', scopes: [...SCOPES], expires_in_seconds: 3600 };
  const { token } = await storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', kept.administrator_id, terms),
  );
  await storage.close();
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: token };
  return (...given) => {
    const words = given.filter((word) => typeof word === 'string');
    const input = given.find((word) => typeof word === 'object')?.input;
    const options = { env, cwd: directory, ...(input !== undefined && { input }) };
    return inProcess([...words, '--json'], options);
  };
}

async function answer<T>(use: Use, ...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await use(...words);
  expect({ words, code, stderr: code === 0 ? '' : stdout + stderr }).toEqual({
    words,
    code: 0,
    stderr: '',
  });
  return JSON.parse(stdout) as T;
}

async function endsWhatWasUnderWay(use: Use, kept: Kept): Promise<void> {
  for (const task of [kept.running, kept.queued_backtest, kept.queued_paper]) {
    await vi.waitFor(
      async () =>
        expect(await answer(use, 'tasks', 'get', task)).toMatchObject({ status: 'success' }),
      { timeout: 30_000, interval: 100 },
    );
  }
  // The session of a killed server has the same events as an uninterrupted one.
  await answer(use, 'bots', 'parity', 'paper', '--run', kept.running);
}

async function tradesAsBefore(use: Use, kept: Kept): Promise<void> {
  const version = ['--version', String(kept.locked.version)];
  const again = await answer<Summary>(use, 'bots', 'backtest', 'paper', ...version);
  expect(again.hashes.trades).toBe(kept.locked.trades);
  expectLocked(await use('bots', 'backtest', 'paper', ...version, '--verify-lock'));
  const result = await answer<Summary>(use, 'tasks', 'result', kept.locked.task_id);
  expect(result.hashes.trades).toBe(kept.locked.trades);

  const whole = await answer<Summary>(use, 'tasks', 'result', kept.running);
  const range = ['--to', made.runs_to];
  const part = await answer<Summary>(use, 'bots', 'backtest', 'paper', ...version, ...range);
  expect(whole.hashes.trades).toBe(part.hashes.trades);
}

/** Halts stay in force until a person lifts them, and failed tasks stay failed. */
async function keepsItsRefusals(use: Use, kept: Kept): Promise<void> {
  expect(await use('bots', 'paper', 'start', 'halted', '--speed', 'max')).toMatchObject({
    code: 6,
  });
  const { deployments: halted } = await answer<{ deployments: object[] }>(
    use,
    'bots',
    'deployments',
    'halted',
  );
  expect(halted).toMatchObject([{ status: 'halted', task_id: kept.halted }]);
  await answer(use, 'bots', 'resume', 'halted', '--reason', 'a new version');
  await answer(use, 'bots', 'paper', 'start', 'halted', '--speed', 'max');
  const { deployments: broken } = await answer<{ deployments: { status: string }[] }>(
    use,
    'bots',
    'deployments',
    'broken',
  );
  expect(broken.map(({ status }) => status)).toEqual(['failed', 'failed']);
  expect(await answer(use, 'tasks', 'get', kept.stopped)).toMatchObject({ status: 'success' });
  expect(await answer(use, 'bots', 'backtest', 'own')).toMatchObject({ bot: { slug: 'own' } });
}

/** Logins work, keys and leases are unchanged, and new entries continue each log. */
async function administersAsBefore(use: Use, kept: Kept): Promise<void> {
  const code = codeAt(made.totp_secret, Date.now());
  const login = ['login', '--name', 'ada', '--password-stdin', '--code', code];
  expect(await use(...login, { input: `${made.password}\n` })).toMatchObject({ code: 0 });

  const keys = await answer<object>(use, 'identity', 'keys', 'list');
  expect(Object.values(keys).flat()).toContainEqual(
    expect.objectContaining({ public_key_id: kept.retired_key, status: 'retired' }),
  );
  await answer(use, 'identity', 'leases', 'issue', '--deployment', 'osaka');
  expect(await use('identity', 'leases', 'issue', '--deployment', 'kyoto')).toMatchObject({
    code: 4,
  });
  await answer(use, 'identity', 'audit', 'verify');

  const chat = await answer<{ answer: string }>(
    use,
    'bots',
    'chat',
    'research',
    'What is the Sharpe ratio?',
  );
  expect(chat.answer).toMatch(/-?\d\.\d+/);
  await answer(use, 'bots', 'agents', 'run', 'research', 'reporter');
  expect(await use('knowledge', 'search', 'drawdown')).toMatchObject({
    stdout: expect.stringContaining('notes/risk.md') as string,
  });
  expect(await use('risk', 'thresholds', 'list')).toMatchObject({
    stdout: expect.stringContaining('5000000') as string,
  });
  for (const verb of [['overrides', 'list'], ['validation-report', 'list'], ['versions']]) {
    await answer(use, 'bots', ...verb, 'paper');
  }
  for (const slug of Object.keys(kept.heads)) await answer(use, 'bots', 'events', 'verify', slug);
}

/** A machine of 0.1.0 renews with the key with which it enrolled. */
async function renewsTheMachine(server: ServerHere): Promise<void> {
  const home = join(directory, 'home');
  const env = { SERVICE_LOCAL_HOME: home, SERVICE_LOCAL_SERVER_URL: server.url };
  const before = await read('home/license_lease.json');
  const renewed = await inProcess(['license', 'renew', '--now', '--json'], { env });
  expect(renewed).toMatchObject({ code: 0 });
  expect(await read('home/license_lease.json')).not.toBe(before);
  const status = await inProcess(['license', 'status', '--json'], { env });
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'valid' });
}
