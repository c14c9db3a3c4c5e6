/** Questions about the exits of trades, asked about a strategy with a target and a stop. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { backtest } from '../../src/bots/library.ts';
import { answerQuestion } from '../../src/research/analyst/analyst.ts';
import type { Ask } from '../../src/research/call-api.ts';

const BOT = join(import.meta.dirname, '../../examples/custom-strategy.yaml');

let home: string;
let files: Readonly<Record<string, string>>;
/** Number and profits of the trades whose last order was of a kind, from the events. */
let exits: Readonly<Record<string, readonly number[]>>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'service-local-exits-'));
  const out = join(home, 'out');
  await backtest(BOT, { home, out });
  const names = ['summary.json', 'trades.csv', 'events.ndjson', 'equity.csv'];
  const texts = await Promise.all(names.map((name) => readFile(join(out, name), 'utf8')));
  files = Object.fromEntries(names.map((name, i) => [name, texts[i]!]));
  const events = files['events.ndjson']!.trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  const typeOf = new Map(
    events.map(({ order, kind, type }) => [kind === 'order.submitted' && order, type]),
  );
  const closing = events.filter(({ kind, position }) => kind === 'order.filled' && position === 0);
  const profits = files['trades.csv']!.split('\n')
    .map((line) => line.split(','))
    .filter((cells) => cells.at(-1) === 'closed')
    .map((cells) => Number(cells[9]));
  assert.equal(closing.length, profits.length);
  exits = Object.groupBy(profits, (_, i) => String(typeOf.get(closing[i]!['order']))) as never;
}, 60_000);
afterAll(() => rm(home, { recursive: true }));

async function ask(prompt: string): Promise<string> {
  const task = {
    task_id: 't',
    bot_id: 'b',
    version: 1,
    kind: 'backtest',
    status: 'success',
    input: {},
  };
  const spec = { kind: 'research', universe: { symbols: ['SPX'] }, strategy: {} };
  const answers: Readonly<Record<string, unknown>> = {
    '/bots/b': { id: 'b', slug: 'b', name: 'B', current_version: 1, document: { spec } },
    '/tasks': { items: [task] },
    '/tasks/t/result': JSON.parse(files['summary.json']!),
    ...Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`/tasks/t/files/${name}`, text]),
    ),
  };
  const api: Ask = async (_, path) => ({ status: 200, json: answers[path.split('?')[0]!] });
  return (await answerQuestion(api, 'b', prompt, new AbortController().signal)).answer;
}

const money = (value: number): string =>
  value
    .toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
    .replace('-', '−');

it('counts the trades that ended by a stop and at the target', async () => {
  const [stops, targets] = [exits['stop']!, exits['limit']!];
  expect(stops.length).toBeGreaterThan(1);
  expect(targets.length).toBeGreaterThan(1);
  const wanted = {
    'How many trades ended by stop?': `: ${stops.length} of ${stops.length + targets.length} `,
    'How many trades were stopped out?': `: ${stops.length} of `,
    'How many trades hit the stop loss?': `: ${stops.length} of `,
    'How many trades ended at the target?': `: ${targets.length} of `,
    'number of trades that reached their profit target': `: ${targets.length} of `,
    'What share of trades hit the target?': `(${targets.length} of `,
    'How many trades ended by a trailing stop?': ': 0 of ',
    'How many stopped out trades lost money?': `: ${stops.filter((one) => one < 0).length} of ${stops.length} `,
    'Trades by exit reason': `- Take profit: ${targets.length}`,
  };
  for (const [prompt, text] of Object.entries(wanted)) {
    expect([prompt, await ask(prompt)]).toEqual([prompt, expect.stringContaining(text)]);
  }
});

it('averages and sums the trades of an exit', async () => {
  const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0);
  const [stops, targets] = [exits['stop']!, exits['limit']!];
  const wanted = {
    'average profit of trades that hit the target': `: ${money(sum(targets) / targets.length)}`,
    'total profit of stopped out trades': `: ${money(sum(stops))}`,
    'profit by exit reason': `- Stop loss: ${money(sum(stops))}`,
  };
  for (const [prompt, text] of Object.entries(wanted)) {
    expect([prompt, await ask(prompt)]).toEqual([prompt, expect.stringContaining(text)]);
  }
});
