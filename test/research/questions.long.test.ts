/** Questions as traders ask them: each is answered with the right figure or refused. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ChatTurn } from '../../src/api/research.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { sp500 } from '../engine/market.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { helpersFor, type RunFiles, type Stated } from './questions-figures.ts';

interface Group {
  readonly bot?: string;
  readonly is: string | readonly string[];
  readonly ask: readonly string[];
  readonly after?: readonly string[];
}

type Kinds<T> = Readonly<Record<string, readonly T[]>>;

const { answered, refused } = parse(
  readFileSync(join(import.meta.dirname, 'questions.yaml'), 'utf8'),
) as { readonly answered: Kinds<Group>; readonly refused: Kinds<string> };

const groups = Object.values(answered).flat();
const refusals = Object.values(refused).flat();

let server: TestApp;
let runner: TaskRunner;
let bearer: string;
/** Ids of the runs, by bot and version. */
const runs = new Map<string, readonly string[]>();

const EXAMPLES = join(import.meta.dirname, '../../examples');
const exampleOf = (name: string) =>
  parse(readFileSync(join(EXAMPLES, name), 'utf8')) as {
    metadata: object;
    spec: { strategy: object };
  };

async function ok<T>(method: string, path: string, body?: unknown, headers = {}): Promise<T> {
  // Questions are limited to one every two seconds.
  server.now += 2000;
  const answer = await server.send(method, path, {
    headers: { authorization: bearer, ...headers },
    ...(body !== undefined && { body }),
  });
  assert(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body as T;
}

async function backtest(bot: string, body: object = {}): Promise<string> {
  const { task_id } = await ok<{ task_id: string }>('POST', `/bots/${bot}/backtest`, body);
  await ok('GET', `/tasks/${task_id}/events`);
  return task_id;
}

beforeAll(async () => {
  server = await newTestApp();
  bearer = await server.bearer('read', 'write');
  const { tasks, log } = server.services;
  const origin = { origin: 'examples', importedAt: '2026-01-02T03:04:05Z' };
  await importBars(tasks.catalogueDir, sp500(), {
    symbol: 'SPX',
    timeframe: '1d',
    hasVolume: true,
    ...origin,
  });
  for (const symbol of ['IBM', 'MSFT']) {
    const text = readFileSync(
      join(EXAMPLES, `data/stocks-monthly/${symbol.toLowerCase()}.csv`),
      'utf8',
    );
    const rows = text
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(','));
    const bars = barsFromRows(
      rows.map(([date, close]) => [Date.parse(date!), +close!, +close!, +close!, +close!, 0]),
    );
    await importBars(tasks.catalogueDir, bars, {
      symbol,
      timeframe: '1mo',
      hasVolume: false,
      ...origin,
    });
  }
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 1, timeoutMs: 20_000, log });
  Object.assign(tasks, { wake: () => runner.wake() });
  const research = exampleOf('research.yaml');
  const pairs = exampleOf('pairs-reversion.yaml');
  await ok('POST', '/bots', { document: research });
  const sources = { IBM: 'catalog://IBM', MSFT: 'catalog://MSFT' };
  const spec = { ...pairs.spec, kind: 'research', data: { sources, timeframe: '1mo' } };
  await ok('POST', '/bots', {
    document: { ...pairs, spec, metadata: { name: 'Pairs', slug: 'pairs' } },
  });
  const metadata = { name: 'Two versions', slug: 'versions' };
  await ok('POST', '/bots', { document: { ...research, metadata } });
  runs.set('research', [await backtest('research')]);
  runs.set('pairs', [await backtest('pairs')]);
  const first = await backtest('versions');
  const strategy = { name: 'sma_crossover', params: { fast: 20, slow: 50 } };
  const changed = { ...research, metadata, spec: { ...research.spec, strategy } };
  await ok('PUT', '/bots/versions', { document: changed }, { 'if-match': '*' });
  runs.set('versions', [first, await backtest('versions')]);
});

afterAll(async () => {
  await runner.stop();
  await server.close();
});

const filesOf = async (run: string): Promise<RunFiles> => ({
  summary: await ok('GET', `/tasks/${run}/result`),
  trades: await ok('GET', `/tasks/${run}/files/trades.csv`),
  equity: await ok('GET', `/tasks/${run}/files/equity.csv`),
  events: await ok('GET', `/tasks/${run}/files/events.ndjson`),
});

/** Evaluates `is` for the newest run of the bot. */
async function figureOf(bot: string, is: string): Promise<unknown> {
  const all = await Promise.all(runs.get(bot)!.map(filesOf));
  const changes: object[] = [];
  const summaryWith = (results: readonly object[]) => ({
    ...helpersFor(all.at(-1)!),
    run: (version: number) => all[version - 1]!.summary,
    whatIf: (change: object) => (changes.push(change), results[changes.length - 1] ?? NOTHING),
    withFees: (rate: string) => {
      changes.push({ patch: { spec: { engine: { fees: { model: 'percent', rate } } } } });
      return results[changes.length - 1] ?? NOTHING;
    },
  });
  const plain = runInNewContext(`(${is})`, summaryWith([])) as unknown;
  if (changes.length === 0) return plain;
  const [change] = changes.splice(0);
  const files = await filesOf(await backtest(bot, change));
  const changed = { ...files.summary, in: helpersFor(files) };
  return runInNewContext(`(${is})`, summaryWith([changed])) as unknown;
}

const NOTHING = new Proxy({}, { get: (): unknown => new Proxy({}, { get: () => () => 0 }) });

const known = new Map<string, Promise<unknown>>();

async function ask(bot: string, prompt: string, after: readonly string[] = []): Promise<ChatTurn> {
  let session: string | undefined;
  for (const earlier of after) {
    const turn = await ok<ChatTurn>('POST', `/bots/${bot}/chat`, {
      prompt: earlier,
      session_id: session,
    });
    session = turn.session_id;
  }
  return ok('POST', `/bots/${bot}/chat`, {
    prompt,
    ...(session !== undefined && { session_id: session }),
  });
}

const isRefused = ({ answer, citations }: ChatTurn): boolean =>
  /^I (?:do not know this question|cannot answer this|report the records|only answer)/.test(
    answer,
  ) && citations.length === 0;

/** Whether an answer has the figures in their order, none as a part of another number. */
function contains(answer: string, expected: unknown): boolean {
  if (typeof expected === 'string') return contains(answer, [expected]);
  if (Array.isArray(expected)) {
    let rest = answer;
    return (expected as string[]).every((figure) => {
      const place = new RegExp(
        `(?<![\\d.,−])${figure.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\d]|[.,]\\d)`,
      ).exec(rest);
      if (place !== null) rest = rest.slice(place.index + figure.length);
      return place !== null;
    });
  }
  const { stated, listed } = expected as Partial<Stated & { listed: readonly string[] }>;
  if (stated !== undefined) return new RegExp(`^[^\\n]*?: ${stated}(?![\\d]|[.,]\\d)`).test(answer);
  const profits = [...answer.matchAll(/^- (?:long|short) .*: (−?[\d,.]+) \(/gm)].map(
    ([, money]) => money,
  );
  return JSON.stringify(profits) === JSON.stringify(listed);
}

const asked = groups.flatMap(({ bot = 'research', is, ask: prompts, after }) =>
  prompts.map((prompt) => ({
    bot,
    is: Array.isArray(is) ? JSON.stringify(is) : String(is),
    prompt,
    after,
  })),
);

it('answers at least 95 % of the questions rightly, and none wrongly', async () => {
  const wrong: string[] = [];
  const unanswered: string[] = [];
  for (const { bot, is, prompt, after } of asked) {
    const key = `${bot} ${is}`;
    if (!known.has(key)) known.set(key, figureOf(bot, is));
    const expected = await known.get(key)!;
    const turn = await ask(bot, prompt, after);
    if (isRefused(turn)) unanswered.push(`${prompt}\n${turn.answer}`);
    else if (!contains(turn.answer, expected))
      wrong.push(`${prompt}\nexpected ${JSON.stringify(expected)}\n${turn.answer}`);
  }
  expect(wrong).toEqual([]);
  expect(unanswered.length).toBeLessThan(0.05 * asked.length);
}, 300_000);

it.each(refusals)('refuses "%s"', async (prompt) => {
  const turn = await ask('research', prompt);
  expect([prompt, turn.answer, isRefused(turn)]).toEqual([prompt, turn.answer, true]);
});
