import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { TOTP } from 'otpauth';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Context, Io } from '../../src/cli/verb.ts';
import { verb as add } from '../../src/cli/verbs/identity/administrators/add.ts';
import { verb as createToken } from '../../src/cli/verbs/identity/tokens/create.ts';
import { appendAudit, readAudit } from '../../src/identity/audit.ts';
import { countFailures, loginSubject } from '../../src/identity/failed-tries.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { createLog } from '../../src/base/log.ts';
import { startServer, type RunningServer } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import { serviceLocal, type Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

const PASSWORD = 'correct horse battery';

interface Enrolled {
  readonly administrator_id: string;
  readonly otpauth_uri: string;
  readonly recovery_codes: readonly string[];
  readonly token: { readonly token: string; readonly token_id: string };
}

let database: TestDatabase;
let server: RunningServer;
let log: string[];
let env: Readonly<Record<string, string>>;

/** Runs the CLI in this process, where hashing passwords is cheap. */
function startServerOnNew(): void {
  beforeAll(async () => {
    database = await newDatabase('sqlite');
    const { file } = database.location as { file: string };
    log = [];
    const home = { SERVICE_LOCAL_HOME: dirname(file) };
    const settings = resolveSettings(dirname(file), { ...home, SERVICE_LOCAL_SERVER_PORT: '0' });
    server = await startServer(
      settings.values,
      home,
      createLog((line) => log.push(line), true),
    );
    env = { ...home, SERVICE_LOCAL_SERVER_URL: server.url };
  });
  afterAll(async () => {
    await server.stop();
    await database.remove();
  });
}

const run = (words: string, { token = '', input = '' } = {}): Promise<Result> =>
  inProcess(['identity', ...words.split(' ')], {
    env: { ...env, ...(token && { SERVICE_LOCAL_TOKEN: token }) },
    input,
  });
const ask = async <T>(words: string, options?: { token?: string; input?: string }): Promise<T> => {
  const { code, stdout, stderr } = await run(`${words} --json`, options);
  const told = /^(token|database:|all tokens of) .*\n/gm;
  expect({ code, stderr: stderr.replaceAll(told, '') }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
};
const enroll = (name: string): Promise<Enrolled> =>
  ask(`administrators add ${name} --password-stdin --token license,admin`, {
    input: `${PASSWORD}\n`,
  });
const logIn = (name: string, code: string, input = PASSWORD): Promise<Result> =>
  run(`tokens create --administrator ${name} --scopes license --password-stdin --code ${code}`, {
    input,
  });

describe('identity tokens create', () => {
  startServerOnNew();

  test('creates tokens that are narrowed and expire by default, and lists both limits', async () => {
    const eve = await enroll('eve');
    const { token } = eve.token;
    await ask('customers create --id acme --name Acme', { token });
    const codes = [...eve.recovery_codes];
    const create = (words: string): Promise<Result> =>
      run(
        `tokens create --administrator eve --scopes license --password-stdin --code ${codes.pop()} ${words}`,
        { input: PASSWORD },
      );
    const narrowed = await create('--label narrow --customer acme --max-ttl 1d');
    expect(narrowed).toMatchObject({ code: 0 });
    const never = await create('--label wide --expires never');
    expect(never.stderr).toMatch(/^token [\w-]{36}: license without an expiry\n$/);
    const { tokens } = await ask<{ tokens: object[] }>('tokens list', { token });
    const none = { deployment_ids: null, customer_id: null, max_ttl_seconds: null };
    expect(tokens).toMatchObject([
      { label: 'first', ...none },
      { label: 'narrow', ...none, customer_id: 'acme', max_ttl_seconds: 86_400 },
      { label: 'wide', ...none, expires_at: null },
    ]);
    const { stdout } = await run('tokens list', { token });
    expect(stdout).toMatch(/ narrow +license +customer acme, TTL 1d +20/);
    expect(stdout).toMatch(/ wide +license +— +never /);

    const confined = { token: narrowed.stdout.trim() };
    const rejected = await run('customers list', confined);
    expect(rejected).toMatchObject({ code: 4, stdout: '' });
    expect(rejected.stderr).toMatch(
      /^error not_allowed: narrowed tokens may not use this operation/,
    );
    expect(rejected.stderr).toContain('The token is for the customer acme and leases of up to 1d');
    expect(await ask('contracts list', confined)).toEqual({ contracts: [] });
  });
});

describe('identity administrators and tokens', () => {
  startServerOnNew();

  test('adds an administrator, who logs in, is disabled, and is enabled again', async () => {
    const ada = await enroll('ada');
    const [first, second, third] = ada.recovery_codes as [string, string, string];
    const { token } = ada.token;
    expect(ada.token).toMatchObject({
      created_at: expect.stringMatching(/^20\S+Z$/) as string,
      expires_at: expect.stringMatching(/^20\S+Z$/) as string,
    });

    const again = await run('administrators add ada --password-stdin', { input: PASSWORD });
    expect(again).toMatchObject({ code: 6, stdout: '' });
    expect(again.stderr).toMatch(
      /^database: .*\nerror conflict: the administrator ada already exists/,
    );

    const totp = new TOTP({ secret: new URL(ada.otpauth_uri).searchParams.get('secret')! });
    const made = await logIn('ada', totp.generate());
    expect(made.code).toBe(0);
    expect(made.stdout).toMatch(/^slt_\w{32}_[\w-]{43}\n$/);
    expect(made.stderr).toMatch(/^token [\w-]{36}: license until 20\d\d-.*Z\n$/);
    const { tokens } = await ask<{ tokens: { token_id: string; label: string }[] }>('tokens list', {
      token,
    });
    expect(tokens.map(({ label }) => label)).toEqual(['first', 'command line']);

    const wrong = await logIn('ada', second, 'this is not the password');
    expect(wrong).toMatchObject({ code: 4, stdout: '' });
    expect(wrong.stderr).toMatch(/^error not_authenticated: name, password or code is wrong/);
    expect(await logIn('ada', first)).toMatchObject({ code: 0 });
    expect(await logIn('ada', first)).toMatchObject({ code: 4 });

    const revoked = await run(`tokens revoke ${tokens[1]!.token_id}`, { token });
    expect(revoked).toMatchObject({ code: 0, stderr: '' });
    expect(await run('tokens list', { token: made.stdout.trim() })).toMatchObject({ code: 4 });

    const { file } = database.location as { file: string };
    expect(await run('administrators disable ada')).toEqual({
      code: 0,
      stdout: 'ada is disabled.\n',
      stderr: `database: ${file}\n`,
    });
    expect(await run('tokens list', { token })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('the administrator is disabled\n→ An operator can') as string,
    });
    expect(await logIn('ada', third)).toMatchObject({ code: 4 });
    const input = 'another good password';
    const reset = await ask<Enrolled>('administrators reset ada --password-stdin', { input });
    expect(reset).toMatchObject({ administrator_id: ada.administrator_id });
    expect(await run('tokens list', { token })).toMatchObject({ code: 4 });
    expect(await logIn('ada', reset.recovery_codes[0]!, input)).toMatchObject({ code: 0 });
    const list = await run('administrators list');
    expect(list.stdout).toMatch(/^ada +[\w-]{36} +20\S+Z +— +9$/m);

    for (const secret of [PASSWORD, input, token, first, ...reset.recovery_codes]) {
      expect(log.join('\n')).not.toContain(secret);
    }
    const gone = await run('administrators reset ada --password-stdin', { input });
    expect(gone.stderr).toBe(`database: ${file}\nall tokens of ada have ended\n`);
  });

  test('too many failed logins exit with 1 and the end of the lock, which a reset lifts', async () => {
    const { recovery_codes } = await enroll('bob');
    const storage = await openStorage(database.location);
    const subjects = Array.from({ length: 5 }, () => loginSubject('bob'));
    await storage.write((tx) => countFailures(tx, Date.now(), subjects, '127.0.0.1'));
    await storage.close();
    const limited = await logIn('bob', recovery_codes[0]!);
    expect(limited.code).toBe(1);
    expect(limited.stderr).toMatch(
      /^error rate_limited: 5 attempts .*\n→ Try again in (8\d\d|900) s/,
    );
    const input = PASSWORD;
    const reset = await ask<Enrolled>('administrators reset bob --password-stdin', { input });
    expect(await logIn('bob', reset.recovery_codes[0]!)).toMatchObject({ code: 0 });
  });
});

describe('identity audit', () => {
  startServerOnNew();

  let token: string;
  let noted: string;
  beforeAll(async () => {
    ({ token } = (await enroll('carol')).token);
    const storage = await openStorage(database.location);
    await storage.write(async (tx) => {
      for (let n = 0; n < 8; n++) {
        const target = `n:${n}`;
        await appendAudit(tx, Date.now(), { actor: 'operator', action: 'test', target });
      }
    });
    const { head } = await readAudit(storage.read, 0, 1);
    noted = `${head.seq}:${head.hash}`;
    await storage.close();
    await database.execute(`create table kept as select * from audit_entries;
        create table kept_head as select * from audit_head`);
  });
  const restore = (): Promise<void> =>
    database.execute(`delete from audit_entries; insert into audit_entries select * from kept;
        delete from audit_head; insert into audit_head select * from kept_head`);
  const lastSeq = (): number => Number(noted.split(':')[0]);

  test('list prints the last entries, or all entries after a given one', async () => {
    const { entries } = await ask<{ entries: { seq: number }[] }>('audit list --last 3', {
      token,
    });
    expect(entries.map(({ seq }) => seq)).toEqual([lastSeq() - 2, lastSeq() - 1, lastSeq()]);
    const all = await ask<{ entries: object[] }>('audit list --after 0', { token });
    expect(all.entries).toHaveLength(lastSeq());
    const { stdout } = await run('audit list --last 1', { token });
    expect(stdout).toMatch(
      /^seq +time +actor +action +target +details\n\d+ .* operator +test +n:7 +—\n$/,
    );
    const first = await run('audit list --after 0', { token });
    expect(first.stdout).toMatch(/^\d+ .* administrator:[\w-]{36} +name=carol$/m);
  });

  test('verify prints the head, and finds a given head again', async () => {
    const verified = await run('audit verify', { token });
    expect(verified).toEqual({
      code: 0,
      stdout: `Unchanged entries: ${lastSeq()}\nHead: ${noted}\n`,
      stderr: '',
    });
    expect(await run(`audit verify --head ${noted}`, { token })).toEqual(verified);
  });

  const OF_ENTRY = 'has been altered';
  test.each([
    ['seq', 'seq = 1000', 'is missing'],
    ['recorded_at', 'recorded_at = recorded_at - 1', OF_ENTRY],
    ['actor', `actor = 'server'`, OF_ENTRY],
    ['action', `action = 'text'`, OF_ENTRY],
    ['target', `target = 'n:9'`, OF_ENTRY],
    ['details', `details = '{"n":1}'`, OF_ENTRY],
    ['details, no JSON any more', `details = '{'`, OF_ENTRY],
    ['prev_hash', `prev_hash = hash`, 'does not follow the one before it'],
    ['hash', `hash = prev_hash`, OF_ENTRY],
  ])('verify names an entry whose %s was changed', async (_column, change, what) => {
    const seq = lastSeq() - 4;
    await database.execute(`update audit_entries set ${change} where seq = ${seq}`);
    const { code, stdout, stderr } = await run('audit verify', { token });
    await restore();
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^error audit_tampered: entry ${seq} ${what}\n`));
    expect(stdout).toBe(`Unchanged entries: ${seq - 1}\n`);
  });

  test.each([
    ['in the middle', -4, 'is missing'],
    ['at the end', 0, 'is missing'],
  ])('verify names a deleted entry %s', async (_where, offset, what) => {
    const seq = lastSeq() + offset;
    await database.execute(`delete from audit_entries where seq = ${seq}`);
    const { code, stdout, stderr } = await run('audit verify --json', { token });
    await restore();
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      verified: seq - 1,
      fault: { seq, fault: 'missing' },
    });
    expect(stderr).toMatch(new RegExp(`^error audit_tampered: entry ${seq} ${what}\n`));
  });

  test('verify detects by a former head that the whole chain was rewritten', async () => {
    const seq = lastSeq();
    await database.execute(`delete from audit_entries where seq = ${seq};
        update audit_head set seq = ${seq - 1},
          hash = (select hash from audit_entries where seq = ${seq - 1})`);
    expect(await run('audit verify', { token })).toMatchObject({ code: 0 });
    const shorter = await run(`audit verify --head ${noted}`, { token });
    const storage = await openStorage(database.location);
    const event = { actor: 'operator', action: 'test', target: 'n:forged' } as const;
    await storage.write((tx) => appendAudit(tx, Date.now(), event));
    await storage.close();
    const forged = await run(`audit verify --head ${noted}`, { token });
    await restore();
    expect(shorter.code).toBe(1);
    expect(shorter.stderr).toContain(`entry ${seq} is missing`);
    expect(forged.code).toBe(1);
    expect(forged.stderr).toMatch(
      new RegExp(`entry ${seq} differs from the entry in --head\\n→ Check that --head is correct`),
    );
  });
});

test.runIf(isAtLength)(
  'only add creates a database, and its name is printed without the password',
  async () => {
    const own = await newDatabase('sqlite');
    const { file } = own.location as { file: string };
    const administrators = (words: string, variables = {}): Promise<Result> =>
      serviceLocal(['identity', 'administrators', ...words.split(' ')], {
        env: { SERVICE_LOCAL_HOME: dirname(file), ...variables },
        input: PASSWORD,
      });
    const listed = await administrators('list');
    expect(listed).toMatchObject({ code: 1, stdout: '' });
    expect(listed.stderr).toMatch(
      /^error not_found: there is no database .*\n→ Set SERVICE_LOCAL_HOME/,
    );
    expect(existsSync(file)).toBe(false);
    const added = await administrators('add ada --password-stdin');
    expect(added).toMatchObject({ code: 0, stderr: `database: ${file} (new)\n` });
    const DATABASE_URL = 'postgres://me:secret@127.0.0.1:1/service';
    const { stderr } = await administrators('list', { DATABASE_URL });
    expect(stderr).toMatch(
      /^database: PostgreSQL 127\.0\.0\.1:1\/service\nerror storage_unavailable/,
    );
    expect(stderr).not.toContain('secret');
    await own.remove();
  },
);

test.each([
  ['tokens create --administrator ada --scopes root', "--scopes: 'root' is not a scope"],
  ['tokens create --administrator ada --scopes license', '--password-stdin is required'],
  [
    'tokens create --administrator ada --scopes license --password-stdin',
    '--code is required',
    'x',
  ],
  ['administrators add ada', '--password-stdin is required when prompting is not possible'],
  ['administrators add Ada', "'Ada' is not a valid administrator name"],
  ['administrators add ada --password-stdin', 'standard input is empty'],
  [
    'tokens create --administrator ada --scopes license --password-stdin --code 123456',
    'standard input is empty',
  ],
  ['audit list --last 2 --after 3', '--last and --after exclude each other'],
  ['audit verify --head 12', "--head: '12' is not the head of a log"],
])('rejects identity %s', async (words, message, input = '') => {
  const { code, stdout, stderr } = await inProcess(['identity', ...words.split(' ')], { input });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});

test('without a token, the verbs print how to create one', async () => {
  const { code, stderr } = await inProcess(['identity', 'audit', 'verify']);
  expect(code).toBe(4);
  expect(stderr).toMatch(/SERVICE_LOCAL_TOKEN is not set, .*\n→ Log in with `service-local login/);
});

describe('on a terminal', () => {
  const contextOf = (home: string, person: ReturnType<typeof createTerminal>): Context => {
    const io = { stdin: person.stdin, stderr: person.stderr, env: { TERM: 'xterm' } };
    const context: Partial<Context> = {
      io: io as unknown as Io,
      interactive: true,
      message: () => {},
      settings: { home, server_url: 'http://127.0.0.1:9' } as Context['settings'],
    };
    return context as Context;
  };
  beforeAll(() => void vi.stubEnv('TERM', 'xterm'));
  afterAll(() => void vi.unstubAllEnvs());

  test('add shows a QR code and stores nothing before a correct code of the app', async () => {
    const own = await newDatabase('sqlite');
    const home = (own.location as { file: string }).file.replace('/server.sqlite', '');
    const storage = await openStorage(own.location);
    const kept = async (): Promise<number> =>
      (await storage.read.selectFrom('administrators').select('name').execute()).length;
    let keptBefore: Promise<number> | undefined;
    const codeOn = (shown: string): string => {
      keptBefore = kept();
      const [, secret] = /or enter this key: ([A-Z2-7]{32})/.exec(shown)!;
      return `${new TOTP({ secret: secret! }).generate()}\r`;
    };
    const person = createTerminal([
      ['New password of ada:', 'too short\r'],
      ['12 to 256 characters, not 9; enter the password again', ''],
      ['New password of ada:', `${PASSWORD}\r`],
      ['Repeat the password:', 'correct horse batterx\r'],
      ['the passwords differ; enter the password again', ''],
      ['New password of ada:', `${PASSWORD}\r`],
      ['Repeat the password:', `${PASSWORD}\r`],
      ['Code that the app shows:', '12345\r'],
      ['That code is wrong', ''],
      ['Code that the app shows:', codeOn],
    ]);
    const options = { passwordStdin: false, token: ['license' as const] };
    const { data } = await add.run(contextOf(home, person), { name: 'ada' }, options);
    expect(person.asked()).toBe(10);
    expect(await keptBefore).toBe(0);
    expect(await kept()).toBe(1);
    const enrolled = data as Enrolled;
    expect(enrolled.recovery_codes).toHaveLength(10);
    expect(enrolled.token.token).toMatch(/^slt_/);
    expect(person.shown()).toContain('\u001B[97;40m█▀▀▀▀▀▀▀█');
    const typed = [PASSWORD, enrolled.token.token, ...enrolled.recovery_codes];
    for (const secret of typed) expect(person.shown()).not.toContain(secret);
    const row = await storage.read.selectFrom('administrators').selectAll().executeTakeFirst();
    // The code that confirmed the app cannot be used again.
    expect(row!.totp_last_step).toBeGreaterThan(Math.floor(Date.now() / 30_000) - 4);
    await storage.close();
    await own.remove();
  });

  test('tokens create prompts for password and code', async () => {
    const person = createTerminal([
      ['Password of ada:', `${PASSWORD}\r`],
      ['Code of the app, or a recovery code:', '123456\r'],
    ]);
    const made = createToken.run(
      contextOf('/nowhere', person),
      {},
      {
        administrator: 'ada',
        scopes: ['license'],
        label: 'x',
        expires: undefined,
        deployment: [],
        customer: undefined,
        maxTtl: undefined,
        passwordStdin: false,
        code: undefined,
      },
    );
    await expect(made).rejects.toMatchObject({ code: 'server_unreachable' });
    expect(person.asked()).toBe(2);
    expect(person.shown()).not.toContain(PASSWORD);
  });
});
