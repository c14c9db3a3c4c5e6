import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { BotDetail } from '../../src/api/bots.ts';
import type { BotEvent } from '../../src/api/bot-state.ts';
import { exampleDocument } from '../../src/api/bots.ts';
import { appendEvents } from '../../src/events/append.ts';
import { readHostedFiles } from '../../src/cli/bot-files.ts';
import { findBot, putBot } from '../../src/cli/bots.ts';
import { createClient } from '../../src/client/client.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import { BASIC_ENV, BIN, type Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

let world: World;
let server: ServerHere;
let directory: string;
let token: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-bots-'));
  token = await tokenFor('read', 'write');
  server = await serveHere(world.database);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const tokenFor = async (...scopes: Scope[]): Promise<string> =>
  (await world.newPerson()).token(...scopes);

interface RunOptions {
  readonly person?: ReturnType<typeof createTerminal>;
  readonly token?: string;
}

const bots = (words: readonly string[], options: RunOptions = {}): Promise<Result> => {
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: options.token ?? token };
  return inProcess(['bots', ...words], { env, ...options });
};

const withoutNotes = (text: string): string => text.replaceAll(/^note: .*\n/gm, '');

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await bots([...words, '--json']);
  expect({ code, stderr: withoutNotes(stderr) }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

/** Output of a verb that must succeed. */
async function print(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await bots(words);
  expect({ code, stderr: withoutNotes(stderr) }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** Writes a bot file. @returns its path */
async function fileOf(slug: string, fast: number): Promise<string> {
  const path = join(directory, `${slug}-${fast}.yaml`);
  await writeFile(path, textOf(slug, fast));
  return path;
}

function textOf(slug: string, fast: number): string {
  return `# of ${slug}\n${JSON.stringify(exampleDocument(slug, fast), null, 2)}\n`;
}

/** Creates a bot on the server, at version 1. */
async function newBot(slug: string): Promise<BotDetail> {
  return json<BotDetail>('create', '-f', await fileOf(slug, 10));
}

test('creates a bot once, and shows and lists it', async () => {
  const path = await fileOf('first', 10);
  const made = await bots(['create', '-f', path]);
  expect(made.code).toBe(0);
  expect(made.stderr).toMatch(
    /^note: .*: before it can trade on paper or in production, spec\.risk needs a value .* for each of max_order_value, /,
  );
  expect(made.stdout).toMatch(
    /^slug +name +kind +status +version +id\nfirst +SMA crossover +trading +draft +1 +[\w-]{36}\n$/,
  );
  const again = await bots(['create', '-f', path]);
  expect(again).toMatchObject({ code: 6, stdout: '' });
  expect(again.stderr).toMatch(/^error conflict: a bot with the slug first already exists/);

  const bot = await json<BotDetail>('get', 'first');
  expect(bot).toMatchObject({ slug: 'first', document: exampleDocument('first', 10) });
  expect(await print('get', bot.id)).toContain(`hash ${bot.version_hash}\n`);
  expect(await print('get', bot.id)).toContain('\n    params:\n      fast: 10\n');

  await newBot('second');
  const slugs = async (...words: string[]): Promise<string[]> =>
    (await json<{ bots: { slug: string }[] }>('list', ...words)).bots.map(({ slug }) => slug);
  expect(await slugs('--query', 'SECO')).toEqual(['second']);
  expect(await slugs('--kind', 'trading', '--status', 'draft')).toEqual(
    expect.arrayContaining(['first', 'second']),
  );
  expect(await print('list', '--kind', 'research')).toBe('No entries.\n');
});

describe('apply', () => {
  test('creates, updates or skips each bot, and prints which', async () => {
    const [one, other] = [await fileOf('one', 10), await fileOf('other', 10)];
    await newBot('other');
    expect(await print('apply', '-f', one, '-f', other)).toBe(
      `${one}: one created, version 1\n${other}: other unchanged, version 1\n`,
    );
    const changed = await fileOf('one', 12);
    const { applied } = await json<{ applied: object[] }>('apply', '-f', changed);
    expect(applied).toMatchObject([
      { change: 'updated', bot: { slug: 'one', current_version: 2 } },
    ]);
    expect(await print('apply', '-f', changed)).toBe(`${changed}: one unchanged, version 2\n`);
    await print('delete', 'one', '--yes');
    expect(await print('apply', '-f', changed)).toBe(`${changed}: one activated, version 2\n`);
  });

  test('sends nothing if a file is invalid, and reports the problems of all files', async () => {
    const good = await fileOf('good', 10);
    const [typo, mine] = [join(directory, 'typo.yaml'), join(directory, 'mine.yaml')];
    await writeFile(typo, textOf('typo', 10).replace('"fast"', '"fsat"'));
    await writeFile(mine, textOf('mine', 10).replace('catalog://SPX', './spx.csv'));
    const { code, stdout, stderr } = await bots(['apply', '-f', good, '-f', typo, '-f', mine]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(`error invalid_spec: ${typo}, ${mine}: 2 problems\n`);
    expect(stderr).toContain(`${typo}:24:9 /spec/strategy/params/fsat unknown_param`);
    expect(stderr).toContain('(did you mean fast?)\n');
    expect(stderr).toContain(`${mine}:18:17 /spec/data/source data_not_hosted`);
    expect(await bots(['get', 'good'])).toMatchObject({ code: 1 });
  });

  test('reports the bots that were applied before the server rejected a file', async () => {
    await newBot('kept');
    const [one, kept] = [await fileOf('before', 10), join(directory, 'kept.yaml')];
    await writeFile(kept, textOf('kept', 10).replace('"trading"', '"research"'));
    const { code, stdout, stderr } = await bots(['apply', '-f', one, '-f', kept]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: `${one}: before created, version 1\n` });
    expect(stderr).toContain(`error invalid_spec: ${kept}: 1 problem\n`);
    expect(stderr).toContain(`  ${kept}:10:13 /spec/kind `);
  });

  test('rejects two files with the same slug', async () => {
    const files = [await fileOf('twice', 10), await fileOf('twice', 11)];
    const { code, stderr } = await bots(['apply', '-f', files[0]!, '-f', files[1]!]);
    expect(code).toBe(2);
    expect(stderr).toContain('another file has the same slug, twice');
  });
});

describe('update', () => {
  test('creates a version, which can have another slug', async () => {
    const { id } = await newBot('old-name');
    const path = await fileOf('new-name', 10);
    expect(await print('update', 'old-name', '-f', path)).toBe('new-name: updated, version 2\n');
    expect(await json('get', 'new-name')).toMatchObject({ id, current_version: 2 });
    expect(await bots(['update', 'old-name', '-f', path])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no bot "old-name"') as string,
    });
  });

  test('does not overwrite a concurrent change', async () => {
    await newBot('shared');
    const client = createClient({ url: server.url, authorize: () => `Bearer ${token}` });
    const found = await findBot(client, 'shared');
    await print('update', 'shared', '-f', await fileOf('shared', 11));
    const [mine] = await readHostedFiles([await fileOf('shared', 12)]);
    await expect(putBot(client, mine!, found)).rejects.toMatchObject({
      code: 'stale',
      exitCode: 6,
    });
  });
});

describe('delete', () => {
  const answering = (typed: string) =>
    createTerminal([['Type asked to archive it:', `${typed}\r`]]);
  beforeAll(async () => {
    vi.stubEnv('TERM', 'xterm');
    await newBot('asked');
  });
  afterAll(() => void vi.unstubAllEnvs());

  test('archives a bot after its slug was typed', async () => {
    expect(await bots(['delete', 'asked'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--yes is required when prompting is not possible') as string,
    });
    const wrong = await bots(['delete', 'asked'], { person: answering('askde') });
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'askde' is not asked\n→ Nothing was archived.") as string,
    });
    expect(await json('get', 'asked')).toMatchObject({ status: 'draft' });
    const right = await bots(['delete', 'asked'], { person: answering('asked') });
    expect(right).toMatchObject({ code: 0, stdout: 'asked is archived.\n' });
    expect(await json('get', 'asked')).toMatchObject({ status: 'archived' });
    expect(await json('delete', 'asked', '--yes')).toMatchObject({ status: 'archived' });
  });
});

describe('a bot with a history', () => {
  let bot: BotDetail;
  beforeAll(async () => {
    bot = await newBot('history');
    for (const fast of [11, 12]) {
      await print('update', 'history', '-f', await fileOf('history', fast));
    }
  });

  test('has versions, which are listed newest first and compared', async () => {
    const { versions } = await json<{ versions: { version: number; hash: string }[] }>(
      'versions',
      'history',
    );
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
    expect(versions[2]!.hash).toBe(bot.version_hash);
    expect(await print('versions', 'history')).toMatch(/^version +created +by +hash\n3 /);
    const head = 'pointer +change +from +to\n/spec/strategy/params/fast +changed +';
    expect(await print('diff', 'history')).toMatch(new RegExp(`^${head}11 +12\n$`));
    expect(await print('diff', 'history', '--from', '3', '--to', '1')).toMatch(
      new RegExp(`^${head}12 +10\n$`),
    );
    expect(await json('diff', 'history', '--from', '2', '--to', '2')).toEqual({
      changes: [],
      files: [],
    });
    const first = await bots(['diff', 'history', '--to', '1']);
    expect(first).toMatchObject({ code: 2 });
    expect(await bots(['diff', 'history', '--to', '9'])).toMatchObject({ code: 1, stdout: '' });
  });

  test('has files, which are compared without a server', async () => {
    const files = [await fileOf('history', 10), await fileOf('history', 12)];
    const { code, stdout } = await inProcess(['bots', 'diff', ...files, '--json'], {
      env: { SERVICE_LOCAL_HOME: directory },
    });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      changes: [{ pointer: '/spec/strategy/params/fast', kind: 'changed', from: 10, to: 12 }],
    });
    expect(await print('diff', files[0]!, files[0]!)).toBe('No differences.\n');
  });

  test('has a current and a past state, and rebuilding it from events gives the same', async () => {
    const now = await json<{ state_hash: string; seq: number }>('snapshot', 'history');
    expect(now).toMatchObject({ seq: 4, head_seq: 4, state: { slug: 'history', version: 3 } });
    const then = await json<{ state_hash: string }>('snapshot', 'history', '--at-seq', '2');
    expect(then).toMatchObject({ seq: 2, state: { version: 1, versions: [bot.version_hash] } });
    expect(await json('snapshot', 'history', '--at', bot.created_at)).toEqual(then);
    expect(await print('snapshot', 'history')).toMatch(
      new RegExp(`\nversion 3 +\\w{64}\n\nAfter event 4 of 4; state hash ${now.state_hash}\n$`),
    );
    expect(await json('replay', 'history')).toMatchObject({
      seq: 4,
      verified: true,
      fault: null,
      state_hash: now.state_hash,
    });
    expect(await print('replay', 'history', '--until-seq', '2')).toContain(
      `After event 2; state hash ${then.state_hash}\n`,
    );
    expect(await json('replay', 'history', '--until', bot.created_at)).toMatchObject({
      state_hash: then.state_hash,
    });
  });

  test('has events, which can be filtered by sequence number and kind', async () => {
    expect(await print('events', 'history')).toMatch(
      /^seq +time +version +kind +payload\n1 +20\S+Z +v1 +bot\.created +\{"slug":"history".*\n2 /,
    );
    const seqs = async (...words: string[]): Promise<number[]> =>
      (await json<{ events: BotEvent[] }>('events', 'history', ...words)).events.map(
        ({ seq }) => seq,
      );
    expect(await seqs()).toEqual([1, 2, 3, 4]);
    expect(await seqs('--after-seq', '3')).toEqual([4]);
    expect(await seqs('--kind', 'bot.created', '--kind', 'bot.archived')).toEqual([1]);
    expect(await print('events', 'history', '--after-seq', '4')).toBe('No entries.\n');
    const misspelled = await bots(['events', 'history', '--kind', 'version.creatd']);
    expect(misspelled).toMatchObject({
      code: 0,
      stdout: 'No entries.\n',
      stderr: "None of the last 4 events is a 'version.creatd'; did you mean 'version.created'?\n",
    });
  });

  test('has a hash chain, which reveals a tampered event', async () => {
    const { hash } = (await json<{ events: BotEvent[] }>('events', 'history')).events.at(-1)!;
    expect(await print('events', 'verify', 'history')).toBe(
      `Events verified: 4\nHead: 4:${hash}\n`,
    );
    const change = (from: string, to: string): Promise<void> =>
      world.database.execute(
        `update bot_events set kind = '${to}' where bot_id = '${bot.id}' and kind = '${from}' and seq = 3`,
      );
    await change('version.created', 'bot.archived');
    const verified = await bots(['events', 'verify', 'history']);
    const replayed = await bots(['replay', 'history', '--json']);
    await change('bot.archived', 'version.created');
    expect(verified).toEqual({
      code: 1,
      stdout: 'Events verified: 2\n',
      stderr:
        'error events_tampered: event 3 of history has been altered\n' +
        '→ Find out who can write to the database, and restore it from a backup.\n',
    });
    expect(replayed.code).toBe(1);
    expect(JSON.parse(replayed.stdout)).toMatchObject({
      seq: 2,
      verified: false,
      fault: { seq: 3, fault: 'altered' },
    });
  });
});

test('prints the lines that strategies logged, each with the time of its bar, by session', async () => {
  const { id } = await newBot('logged');
  expect(await bots(['log', 'logged'])).toMatchObject({
    stdout: '',
    stderr: 'No logged lines were found.\n',
  });
  for (const [verb, ...more] of [['log'], ['events'], ['events', '--follow']] as const) {
    const unknown = await bots([verb, 'logged', '--run', 'nope', ...more]);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toMatch(/^error not_found: there is no task "nope"\n/);
  }
  const time = '2026-01-02T00:00:00Z';
  const eventOf = (run_id: string, ...lines: string[]) => ({
    kind: 'strategy.log',
    version: 1,
    occurred_at: Date.parse(time),
    run_id,
    payload: { lines },
  });
  const events = [eventOf('a', 'one', 'two'), eventOf('a', 'three'), eventOf('b', 'four')];
  await world.identity.storage.write((tx) => appendEvents(tx, id, world.now, events));
  expect(await print('log', 'logged')).toBe(
    `session a, version 1\n${time} one\n${time} two\n${time} three\n\nsession b, version 1\n${time} four\n`,
  );
});

test.runIf(isAtLength)(
  'follows events through a restart of the server, one JSON object per line',
  async () => {
    await newBot('followed');
    const env = { ...BASIC_ENV, ...server.env, SERVICE_LOCAL_TOKEN: token };
    const words = ['bots', 'events', 'followed', '--follow', '--json', '--kind', 'version.created'];
    const child = spawn(process.execPath, [BIN, ...words], { env });
    const ended = new Promise<NodeJS.Signals | null>((resolve) =>
      child.on('close', (_code, signal) => resolve(signal)),
    );
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const lost = createInterface(child.stderr)[Symbol.asyncIterator]();
    const next = async (): Promise<number> =>
      (JSON.parse((await lines.next()).value as string) as BotEvent).seq;
    expect(await next()).toBe(2);
    await print('update', 'followed', '-f', await fileOf('followed', 11));
    expect(await next()).toBe(3);
    await server.stop();
    expect((await lost.next()).value).toMatch(/connection refused; retrying until/);
    server = await serveHere(world.database, {
      SERVICE_LOCAL_SERVER_PORT: new URL(server.url).port,
    });
    await print('delete', 'followed', '--yes');
    await print('update', 'followed', '-f', await fileOf('followed', 12));
    expect(await next()).toBe(6);
    child.kill('SIGINT');
    expect(await ended).toBe('SIGINT');
  },
);

test('reports a missing scope and an unknown bot', async () => {
  const reader = await tokenFor('read');
  const path = await fileOf('unallowed', 10);
  expect(await bots(['create', '-f', path], { token: reader })).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(
      /the token lacks the scope write\n→ Log in with `service-local login --scopes read,write`\. .*SERVICE_LOCAL_TOKEN/,
    ) as string,
  });
  const halter = await tokenFor('halt');
  expect(await bots(['list'], { token: halter })).toMatchObject({ code: 4, stdout: '' });
  for (const verb of ['get', 'versions', 'snapshot', 'events', 'replay', 'diff', 'delete']) {
    const { code, stdout, stderr } = await bots([verb, 'nobody']);
    expect({ verb, code, stdout }).toEqual({ verb, code: 1, stdout: '' });
    expect(stderr).toMatch(/^error not_found: there is no bot "nobody"\n→ See `service-local bots/);
  }
  const followed = await bots(['events', 'nobody', '--follow', '--json']);
  expect(followed.stdout).toMatch(/^\{"error":\{"code":"not_found",.*\}\n$/);
});

test.each([
  ['create', "required option '-f, --file <file>' not specified"],
  ['list --status paused', 'draft, active, archived'],
  ['snapshot a --at-seq 1 --at 2026-01-02T03:04:05Z', '--at-seq and --at exclude each other'],
  ['snapshot a --at yesterday', "--at: 'yesterday' is not a time"],
  [
    'replay a --until-seq 1 --until 2026-01-02T03:04:05Z',
    '--until-seq, --until and --run exclude each other',
  ],
  ['diff a.yaml b.yaml --from 1', 'cannot be used with files'],
])('rejects bots %s', async (words, message) => {
  const { code, stdout, stderr } = await bots(words.split(' '));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
