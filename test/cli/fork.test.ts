import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BotFork } from '../../src/api/fork.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { tradingDocument } from '../fleet/parity/play.ts';
import { allowedToTrade, documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

let world: World;
let server: ServerHere;
let directory: string;
let token: string;
let run_id: string;
/** Sequence number of the event with the 150th bars. */
let at: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-fork-'));
  await fillCatalogue(join(directory, 'catalogue'), 1);
  token = await tokenFor('read', 'write', 'trade');
  server = await serveHere(world.database, {
    SERVICE_LOCAL_CATALOGUE_DIR: join(directory, 'catalogue'),
    SERVICE_LOCAL_CUSTOM_CODE: 'true',
  });
  await create('sma', tradingDocument('sma', 10));
  run_id = await play('sma', '-p', 'fast=12');
  at = await eventOfBars(150);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const tokenFor = async (...scopes: Scope[]): Promise<string> =>
  (await world.newPerson()).token(...scopes);

const bots = (words: readonly string[], secret = token): Promise<Result> =>
  inProcess(['bots', ...words], {
    cwd: directory,
    env: { ...server.env, SERVICE_LOCAL_TOKEN: secret },
  });

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await bots([...words, '--json']);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

async function create(name: string, document: object): Promise<void> {
  const file = join(directory, `${name}.json`);
  await writeFile(file, JSON.stringify(document));
  await json('create', '-f', file);
}

async function play(bot: string, ...words: string[]): Promise<string> {
  return (await json<Summary>('paper', 'start', bot, '--speed', 'max', ...words)).run_id;
}

async function seqsOf(kind: string, run = run_id, bot = 'sma'): Promise<number[]> {
  const words = ['events', bot, '--run', run, '--kind', kind, '--after-seq', '0'];
  const { events } = await json<{ events: { seq: number }[] }>(...words);
  return events.map(({ seq }) => seq);
}

const eventOfBars = async (count: number, run = run_id, bot = 'sma'): Promise<string> =>
  String((await seqsOf('data.bars', run, bot))[count - 1]);

const eventsOf = async (): Promise<unknown> => json('events', 'sma', '--after-seq', '0');

test('a fork without a change reproduces the session, and changes no event of the bot', async () => {
  const before = await eventsOf();
  const words = ['fork', 'sma', '--run', run_id, '--at', at, '--set', 'params.fast=12'];
  const { schema, running, comparison } = await json<BotFork>(...words);
  expect({ schema, running }).toEqual({ schema: 'service-local/fork/v1', running: false });
  const { first_difference, curves, figures, steps, failure } = comparison!;
  expect({ first_difference, failure }).toEqual({ first_difference: null, failure: null });
  expect(steps).toEqual({ before: 150, after: 150 });
  expect(curves.growth[1]).toEqual(curves.growth[0]);
  for (const { values } of figures) expect(values[1]).toBe(values[0]);
  expect(await eventsOf()).toEqual(before);
  expect((await bots(words)).stdout).toContain('All order events are equal');
});

test('a fork shares the verified past, and shows another future in the terminal and as a page', async () => {
  const words = ['fork', 'sma', '--at', at, '--set', 'params.fast=4'];
  const { comparison } = await json<BotFork>(...words);
  const { at: moment, params, curves, first_difference, after } = comparison!;
  expect(params).toEqual([
    { name: 'fast', session: 12, fork: 4 },
    { name: 'slow', session: 30, fork: 30 },
  ]);
  const forkAt = Date.parse(moment.time);
  const [session, fork] = curves.growth as [number[], number[]];
  const next = curves.time.findIndex((seconds) => seconds * 1000 > forkAt);
  expect(next).toBe(150);
  expect(fork.slice(0, next)).toEqual(session.slice(0, next));
  expect(fork).not.toEqual(session);
  const { session: one, fork: other } = first_difference!;
  for (const event of [one, other]) {
    expect(Date.parse(String(event!['time']))).toBeGreaterThan(forkAt);
  }
  const total = after.find(({ figure }) => figure === 'total_return')!;
  expect(total.values[1]).toBeCloseTo((1 + fork.at(-1)!) / (1 + fork[next - 1]!) - 1, 5);

  const shown = await bots([...words, '--html', 'fork.html']);
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toContain('parameter fast: 12 in the session, 4 in the fork');
  expect(shown.stdout).toMatch(/After the change\n +session +fork\n/);
  expect(shown.stdout).toContain(`page: ${directory}/fork.html`);
  const page = await readFile(join(directory, 'fork.html'), 'utf8');
  expect(page).toContain('fast: 12 in the session, 4 in the fork');
  expect(page).toMatch(/followed by\s+150 bars, with\s+4 order events/);
  expect(page).toContain('Whole session: trades');
  expect(page).toContain(`"arrowAt":${forkAt / 1000}`);
});

test('a fork verifies the newest recorded state before it', async () => {
  const bars = await seqsOf('data.bars');
  // A session records its state after at most 256 bars.
  const states = (await seqsOf('session.state')).filter((seq) => seq < bars.at(-1)!);
  const state = states.at(-1)!;
  expect(state).toBeGreaterThan(bars[0]!);
  const fork = await json<BotFork>('fork', 'sma', '--at', `${state}`, '--set', 'params.fast=4');
  expect(fork.comparison!.at.verified_seq).toBe(state);
});

test.runIf(isAtLength)(
  'a paper session and its fork end before the holdout, and add nothing to the ledger',
  async () => {
    const document = tradingDocument('held', 10) as { spec: { data: object } };
    const data = { ...document.spec.data, holdout: '30d' };
    await create('held', { ...document, spec: { ...document.spec, data } });
    const end = Date.parse('2000-09-27T00:00:00Z');
    for (const days of [[], ['--to', '2000-10-20']]) {
      const run = await play('held', ...days);
      expect(await seqsOf('data.bars', run, 'held')).toHaveLength(270);
      const moment = await eventOfBars(100, run, 'held');
      const words = ['fork', 'held', '--run', run, '--at', moment, '--set', 'params.fast=4'];
      const { comparison } = await json<BotFork>(...words);
      expect(comparison!.curves.time.every((seconds) => seconds * 1000 < end)).toBe(true);
    }
    const within = await bots(['paper', 'start', 'held', '--speed', 'max', '--from', '2000-10-01']);
    expect(within).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('leaves SPX no bars'),
    });
    const env = { ...server.env, SERVICE_LOCAL_TOKEN: token };
    const { stdout } = await inProcess(['runs', 'trials', '--server', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({ groups: [] });
  },
);

test.runIf(isAtLength)('a custom strategy is forked in its process', async () => {
  const module = 'own.mjs';
  await writeFile(
    join(directory, module),
    `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: 'own', description: 'Of a test.',
  params: { every: integer({ default: 9, min: 2 }) },
  create({ params, instruments: [asset], broker }) {
    let bars = 0;
    return { onBar() { bars += 1; if (bars % params.every === 0) broker.target(asset, bars % 2); } };
  },
});`,
  );
  const document = allowedToTrade(documentOn('own', 'SPX', '1d')) as { spec: object };
  const spec = { ...document.spec, strategy: { module: `./${module}`, params: { every: 9 } } };
  await create('own', { ...document, spec });
  const run = await play('own');
  const moment = await eventOfBars(100, run, 'own');
  const other = await json<BotFork>('fork', 'own', '--at', moment, '--set', 'params.every=4');
  // The strategy counted the bars before the fork: 104 is the first of its turns.
  expect(other.comparison!.first_difference!.fork!['time']).toBe('2000-04-13T00:00:00.000Z');
});

test.runIf(isAtLength)('forks that are impossible are rejected with the reason', async () => {
  const failed = async (code: number, text: string, ...words: string[]): Promise<void> => {
    const { code: got, stderr } = await bots(['fork', 'sma', ...words]);
    expect({ got, stderr }).toEqual({ got: code, stderr: expect.stringContaining(text) });
  };
  const fast = ['--set', 'params.fast=4'];
  await failed(6, 'the first bars of the session are event', '--at', '1', ...fast);
  await failed(6, `see \`service-local bots events sma --run ${run_id}\`.`, '--at', '1', ...fast);
  await failed(6, 'the session ends at event', '--at', '99999', ...fast);
  await failed(6, 'so none follow event', '--at', await eventOfBars(300), ...fast);
  await failed(3, 'unknown parameter', '--at', at, '--set', 'params.fsat=4');
  await failed(3, 'must be a whole number', '--at', at, '--set', 'params.fast=4.5');
  await failed(3, 'fast must be below slow', '--at', at, '--set', 'params.fast=40');
  await failed(2, 'is not params.name=value', '--at', at, '--set', 'risk.max_order_value=4');
  await failed(2, '--at', ...fast);
  await failed(1, 'not_found', '--at', at, '--run', 'none', ...fast);
  expect(await bots(['fork', 'sma', '--at', at], await tokenFor('halt'))).toMatchObject({
    code: 4,
  });

  await world.database.execute(
    `update bot_events set payload = payload || ' ' where run_id = '${run_id}' and kind = 'order.submitted'`,
  );
  await failed(1, 'events_tampered', '--at', at, ...fast);
});
