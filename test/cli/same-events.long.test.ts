import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Summary } from '../../src/backtest/summary.ts';
import { EXAMPLES } from '../bots/example-bots.ts';
import { newWorld, type World } from '../identity/people.ts';
import { SCRATCH } from '../scratch.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { startTestServer } from '../trading/host/pod/test-server.ts';
import { inProcess } from './in-process.ts';

interface BotFile {
  readonly metadata: { readonly slug: string };
  readonly spec: Readonly<Record<string, object>>;
}

let world: World;
let server: ServerHere;
let directory: string;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  directory = mkdtempSync(join(SCRATCH, 'service-local-same-events-'));
  world = await newWorld('sqlite');
  world.now = Date.now();
  const catalogue = { SERVICE_LOCAL_CATALOGUE_DIR: join(directory, 'catalogue') };
  server = await serveHere(world.database, { ...catalogue, SERVICE_LOCAL_CUSTOM_CODE: 'true' });
  const token = await (await world.newPerson()).token('read', 'write', 'trade');
  env = { ...server.env, ...catalogue, SERVICE_LOCAL_TOKEN: token };
  await json('data', 'import', join(EXAMPLES, 'data/sp500-daily.csv'), '--symbol', 'SPX');
});
afterAll(async () => {
  await server.stop();
  await world.close();
  rmSync(directory, { recursive: true });
});

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await inProcess([...words, '--json'], { cwd: directory, env });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

function write(name: string, value: object): string {
  writeFileSync(join(directory, name), JSON.stringify(value));
  return join(directory, name);
}

const example = (name: string): BotFile =>
  parse(readFileSync(join(EXAMPLES, name), 'utf8')) as BotFile;

/** Writes an example as a bot that may trade: on the data of the catalogue, with limits. */
function writeBot(name: string, to: string): { readonly file: string; readonly slug: string } {
  const { metadata, spec, ...document } = example(name);
  const { data, risk } = example('paper.yaml').spec;
  const years = { from: '2010-01-01', to };
  const strategy = spec['strategy'] as { module?: string };
  if (strategy.module !== undefined) {
    copyFileSync(join(EXAMPLES, strategy.module), join(directory, basename(strategy.module)));
    strategy.module = `./${basename(strategy.module)}`;
  }
  const bot = { ...document, metadata, spec: { ...spec, data: { ...data, ...years }, risk } };
  return { file: write(name.replace('yaml', 'json'), bot), slug: metadata.slug };
}

interface Recorded {
  readonly kind: string;
  readonly payload: object;
}

const orderEvents = (events: readonly Recorded[]): string[] =>
  events
    .filter(({ kind }) => /^(?:order|account)\./.test(kind))
    .map(({ payload }) => JSON.stringify(payload));

async function backtestEvents(file: string): Promise<string[]> {
  const out = join(directory, 'backtest');
  await json<Summary>('backtest', file, '--out', out);
  return readFileSync(join(out, 'events.ndjson'), 'utf8').trimEnd().split('\n');
}

async function paperEvents(file: string, slug: string): Promise<string[]> {
  await json('bots', 'create', '-f', file);
  const { run_id } = await json<Summary>('bots', 'paper', 'start', slug, '--speed', 'max');
  const wanted = ['--run', run_id, '--after-seq', '0'];
  const { events } = await json<{ events: Recorded[] }>('bots', 'events', slug, ...wanted);
  return orderEvents(events);
}

async function runnerEvents(file: string): Promise<string[]> {
  const supervisor = await startTestServer('token');
  try {
    writeFileSync(join(directory, 'token'), 'token');
    const config = write('run.json', {
      apiVersion: 'run/v1',
      kind: 'Run',
      bot: file,
      deployment_id: 'same-events',
      state_dir: `./state-${basename(file)}`,
      speed: 'max',
      control: { url: supervisor.url, token_file: './token' },
    });
    expect(await json('run', config)).toMatchObject({ outcome: 'finished', verified: true });
    return orderEvents(supervisor.events);
  } finally {
    await supervisor.close();
  }
}

/** Describes the first event that differs; undefined if all are equal. */
function firstDifference(backtest: readonly string[], events: readonly string[]) {
  const at = backtest.findIndex((event, index) => event !== events[index]);
  if (at < 0 && backtest.length === events.length) return undefined;
  const index = at < 0 ? backtest.length : at;
  return { event: index + 1, backtest: backtest[index], other: events[index] };
}

/** Each records more than 50 events until that day. */
test.each([
  ['paper.yaml', '2013-06-30'],
  ['custom-strategy.yaml', '2011-12-31'],
  ['weekly-trend.yaml', '2013-12-31'],
])(
  'a backtest, a paper session and a production runner of %s record the same events',
  async (name, to) => {
    const { file, slug } = writeBot(name, to);
    const backtest = await backtestEvents(file);
    expect(backtest.length).toBeGreaterThan(50);
    expect(firstDifference(backtest, await paperEvents(file, slug)), 'paper').toBeUndefined();
    expect(firstDifference(backtest, await runnerEvents(file)), 'runner').toBeUndefined();
  },
);
