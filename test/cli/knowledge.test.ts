import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newWorld, type World } from '../identity/people.ts';
import { SCRATCH } from '../scratch.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let token: string;
let cwd: string;

beforeAll(async () => {
  world = await newWorld('postgres');
  world.now = Date.now();
  token = await (await world.newPerson()).token('read', 'write');
  cwd = await mkdtemp(join(SCRATCH, 'knowledge-'));
  const knowledgeFile = join(cwd, 'knowledge.yaml');
  const instance = { name: 'tokyo', url: 'http://127.0.0.1:9', token_env: 'TOKYO_TOKEN' };
  await writeFile(knowledgeFile, JSON.stringify({ instances: [instance] }));
  server = await serveHere(world.database, {
    SERVICE_LOCAL_KNOWLEDGE_FILE: knowledgeFile,
    SERVICE_LOCAL_LICENSE_ENFORCEMENT_ENABLED: 'false',
    SERVICE_LOCAL_LICENSE_REGISTRY_ENFORCED: 'false',
  });
});

beforeEach(async () => {
  await rm(join(cwd, 'notes'), { recursive: true, force: true });
  await mkdir(join(cwd, 'notes'));
});

afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(cwd, { recursive: true });
});

const knowledge = (...words: string[]): Promise<Result> =>
  inProcess(['knowledge', ...words], { cwd, env: { ...server.env, SERVICE_LOCAL_TOKEN: token } });

const write = (name: string, text: string | Uint8Array): Promise<void> =>
  writeFile(join(cwd, name), text);

const resultWith = (stderr: string, code = 0) => ({
  code,
  stderr: expect.stringMatching(stderr) as string,
});

test('adds, lists, finds, shows and removes files', async () => {
  await write('notes/risk.md', '\uFEFF# Risk\n\n## Drawdown\n\nA drawdown of 20 % halts.\n');
  await write('notes/venue.txt', 'A slow venue is a risk.\n');
  const { stdout } = await knowledge('add', 'notes/risk.md', './notes/venue.txt');
  expect(stdout).toMatch(/name {2,}title {2,}revision/);
  const listed = await knowledge('list', '--json');
  expect(JSON.parse(listed.stdout)).toMatchObject({
    documents: [
      { name: 'notes/risk.md', title: 'Risk', revision: 1 },
      { name: 'notes/venue.txt', title: 'notes/venue.txt' },
    ],
  });
  expect((await knowledge('search', 'DRAWDOWN', 'halts')).stdout).toBe(
    'notes/risk.md:3-5  Risk › Drawdown\n  ## Drawdown\n  \n  A drawdown of 20 % halts.\n\n',
  );
  const lines = await knowledge('show', 'notes/risk.md', '--lines', '5-5');
  expect(lines.stdout).toBe('A drawdown of 20 % halts.\n');
  expect((await knowledge('remove', 'notes/risk.md')).stdout).toBe('notes/risk.md is removed.\n');
  expect((await knowledge('search', 'drawdown')).stdout).toBe('No passages found.\n');
  expect(await knowledge('show', 'notes/risk.md')).toMatchObject(
    resultWith('there is no document "notes/risk.md"', 1),
  );
});

test('another text under the same name needs --replace, and former revisions are kept', async () => {
  await write('notes/a.md', 'One.');
  await write('notes/b.md', 'Two.');
  await knowledge('add', 'notes/b.md');
  await write('notes/b.md', 'Three.');
  const refused = await knowledge('add', 'notes/a.md', 'notes/b.md');
  expect(refused).toMatchObject(resultWith('notes/b.md and all files after it were not added', 6));
  expect(refused.stdout).toMatch('notes/a.md');
  const replaced = await knowledge('add', 'notes/b.md', '--replace', '--json');
  expect(JSON.parse(replaced.stdout)).toMatchObject({ documents: [{ revision: 2 }] });
});

test.each([
  ['is no text', Buffer.from([0xff, 0xfe, 0]), 'notes/x.md is not UTF-8 text'],
  ['has a NUL', 'a\0b', 'notes/x.md is not UTF-8 text'],
  ['is too large', 'a'.repeat(5 * 1024 * 1024 + 1), 'notes/x.md is over 5120 KiB'],
])('refuses a file that %s, and sends none of the files before it', async (_, text, why) => {
  await write('notes/first.md', 'First.');
  await write('notes/x.md', text);
  expect(await knowledge('add', 'notes/first.md', 'notes/x.md')).toMatchObject(resultWith(why, 3));
  expect((await knowledge('search', 'first')).stdout).toBe('No passages found.\n');
});

test('removes control characters in documents from terminal output', async () => {
  const evil = 'evil \u001B[31m\u001B]0;title\u0007 \u009B2J\r text';
  await write('notes/evil.md', `# ${evil}\n\n${evil}\n`);
  await knowledge('add', 'notes/evil.md');
  for (const words of [['list'], ['search', 'evil'], ['show', 'notes/evil.md']]) {
    const { stdout } = await knowledge(...words);
    expect(stdout).toMatch('evil');
    expect(stdout).not.toMatch(/[^\P{Cc}\n\t]/u);
  }
});

test('a federated search reports the sources that did not answer', async () => {
  const { code, stdout } = await knowledge('search', 'nowhere', '--federated');
  expect({ code, lines: stdout.replace(/\d+ ms/, '… ms').split('\n') }).toEqual({
    code: 0,
    lines: [
      'No passages found.',
      'tokyo refused after … ms: there is no token for tokyo: TOKYO_TOKEN is not set in the environment of this server',
      '',
    ],
  });
});
