/** Questions as people ask them: each is answered rightly or refused, and no word is ignored. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ChatTurn } from '../../src/api/research.ts';
import { formatMoney } from '../../src/base/format.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { parseCsv } from '../../src/research/parse-csv.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { inProcess } from '../cli/in-process.ts';
import { sp500 } from '../engine/market.ts';
import { listen, type Listening } from '../server/listening.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';

let server: TestApp;
let runner: TaskRunner;
let listening: Listening;
let env: Record<string, string>;
let trades: readonly Trade[];

interface Trade {
  readonly pnl: number;
  readonly return: number;
  readonly exit: string;
}

beforeAll(async () => {
  server = await newTestApp();
  const { tasks, log } = server.services;
  const kind = { symbol: 'SPX', timeframe: '1d', hasVolume: true } as const;
  const origin = { origin: 'sp500-daily.csv', importedAt: '2026-01-02T03:04:05Z' };
  await importBars(tasks.catalogueDir, sp500(), { ...kind, ...origin });
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 1, timeoutMs: 20_000, log });
  Object.assign(tasks, { wake: () => runner.wake() });
  listening = await listen(server.app);
  const bearer = await server.bearer('read', 'write');
  env = {
    SERVICE_LOCAL_SERVER_URL: listening.url,
    SERVICE_LOCAL_TOKEN: bearer.replace('Bearer ', ''),
  };
  const example = join(import.meta.dirname, '../../examples/research.yaml');
  const headers = { authorization: bearer };
  const document = parse(readFileSync(example, 'utf8')) as object;
  await server.send('POST', '/bots', { headers, body: { document } });
  const run = await cli('bots', 'backtest', 'research', '--json');
  const { run_id } = JSON.parse(run) as { run_id: string };
  const file = await server.send('GET', `/tasks/${run_id}/files/trades.csv`, { headers });
  trades = parseCsv(file.body as string)
    .filter(({ status }) => status === 'closed')
    .map((cells) => ({
      pnl: Number(cells['pnl']),
      return: Number(cells['return']),
      exit: cells['exit_time']!.slice(0, 10),
    }));
});

afterAll(async () => {
  listening.close();
  await runner.stop();
  await server.close();
});

async function cli(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await inProcess(words, { env });
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

async function ask(prompt: string): Promise<Pick<ChatTurn, 'answer' | 'citations'>> {
  return JSON.parse(await cli('bots', 'chat', 'research', prompt, '--json')) as ChatTurn;
}

/** Trades as the answer lists them, by their profits. */
const profitsIn = (answer: string): string[] =>
  [...answer.matchAll(/^- (?:long|short) .*: (−?[\d,.]+) \(/gm)].map(([, money]) => money!);

const by = (figure: 'pnl' | 'return', count: number): string[] =>
  trades
    .toSorted((a, b) => b[figure] - a[figure])
    .slice(0, count)
    .map(({ pnl }) => formatMoney(pnl));

const worst = (count: number): string[] =>
  trades
    .toSorted((a, b) => a.pnl - b.pnl)
    .slice(0, count)
    .map(({ pnl }) => formatMoney(pnl));

const losers = (): number => trades.filter(({ pnl }) => pnl < 0).length;
const winners = (): number => trades.filter(({ pnl }) => pnl > 0).length;

describe('questions about counts', () => {
  it.each([
    ['How many trades were losers?', () => `${losers()} of ${trades.length} closed trades`],
    ['How many losers were there?', () => `${losers()} of ${trades.length} closed trades`],
    ['How many trades lost?', () => `${losers()} of ${trades.length} closed trades`],
    ['What share of the trades lost?', () => `${losers()} of ${trades.length} closed trades`],
    ['Number of losing trades', () => `${losers()} of ${trades.length} closed trades`],
    ['How many trades were winners?', () => `${winners()} of ${trades.length} closed trades`],
    ['How many trades made a profit?', () => `${winners()} of ${trades.length} closed trades`],
    ['How many trades were there?', () => `Closed trades: ${trades.length}`],
  ])('counts the trades asked for by "%s"', async (prompt, says) => {
    expect((await ask(prompt)).answer).toContain(says());
  });
});

describe('ranked trades, by money unless the question says by return', () => {
  it.each([
    ['Top 5 trades by profit', () => by('pnl', 5)],
    ['Top 5 trades', () => by('pnl', 5)],
    ['What were the five best trades?', () => by('pnl', 5)],
    ['Top 5 trades by return', () => by('return', 5)],
    ['What was the most profitable trade?', () => by('pnl', 1)],
    ['What was the second best trade?', () => by('pnl', 2).slice(1)],
    ['Top 3 losing trades', () => worst(3)],
    ['What were the three worst trades?', () => worst(3)],
    ['Which trade lost the most money?', () => worst(1)],
    ['What was the biggest loss?', () => worst(1)],
    ['Show the last 3 trades', () => last(3)],
    ['What were the last trades?', () => last(5)],
  ])('lists the trades asked for by "%s"', async (prompt, expected) => {
    expect(profitsIn((await ask(prompt)).answer)).toEqual(expected());
  });

  const last = (count: number): string[] =>
    trades
      .toSorted((a, b) => (a.exit < b.exit ? -1 : 1))
      .slice(-count)
      .map(({ pnl }) => formatMoney(pnl));

  it('lists the requested number of drawdowns', async () => {
    const { answer } = await ask('Top 3 drawdowns');
    expect(answer.match(/^- −/gm)).toHaveLength(3);
  });
});

/** Questions that the records cannot answer, and the word that shows it. */
const UNKNOWN: readonly (readonly [prompt: string, word: string])[] = [
  ['What would the Sharpe be in bitcoin?', 'bitcoin'],
  ['What would the Sharpe be?', 'would'],
  ['What if fees were doubled?', 'doubled'],
  ['What are the fees if they are halved?', 'if'],
  ['What would a 50/200 crossover have returned?', '200'],
  ['What is the Sharpe ratio of AAPL?', 'aapl'],
  ['Sharpe ratio with daily rebalancing', 'rebalancing'],
  ['What is the Sharpe ratio excluding the worst trade?', 'excluding'],
  ['What is the return without fees?', 'without'],
  ['What is the return before fees?', 'before'],
  ['What is the return after tax?', 'tax'],
  ['What is the return adjusted for inflation?', 'inflation'],
  ['What is the maximum drawdown in dollars?', 'dollars'],
  ['What is the minimum drawdown?', 'minimum'],
  ['What was the drawdown during the financial crisis?', 'crisis'],
  ['What was the return since the election?', 'election'],
  ['Return on Mondays', 'mondays'],
  ['What is the win rate of long trades?', 'long'],
  ['What is the win rate on Fridays?', 'fridays'],
  ['How many short trades were there?', 'short'],
  ['How many trades were not losers?', 'not'],
  ['How many trades never lost?', 'never'],
  ['How many trades lost more than 1000?', '1000'],
  ['How many trades lasted more than ten days?', 'more'],
  ['How many trades were losers in a row?', 'row'],
  ['How many consecutive losses?', 'consecutive'],
  ['What is the longest losing streak?', 'streak'],
  ['How many trades per month?', 'month'],
  ['How many trades were there in the best year?', 'year'],
  ['How many trades were stopped out?', 'stopped'],
  ['How many years were negative?', 'negative'],
  ['What was the smallest loss?', 'smallest'],
  ['What was the largest trade?', 'largest'],
  ['Top 5 trades by quantity', 'quantity'],
  ['Top 5 trades by holding time', 'holding'],
  ['What was the first trade?', 'first'],
  ['Show all trades', 'all'],
  ['List the trades with a loss over 1000', '1000'],
  ['What were the best 3 days?', '3'],
  ['What were the 3 best years?', '3'],
  ['When was the best day?', 'when'],
  ['Why was the Sharpe ratio low?', 'why'],
  ['Why did the worst trade lose?', 'why'],
  ['Is the Sharpe ratio significant?', 'significant'],
  ['Is the Sharpe ratio better than 1?', '1'],
  ['What is the Sharpe ratio of version 1 and of version 2?', '2'],
  ['What is the rolling Sharpe ratio?', 'rolling'],
  ['What is the Sharpe ratio with a risk free rate of 2%?', '2'],
  ['What is the average loss on short positions?', 'short'],
  ['What was the median loss?', 'loss'],
  ['What is the fee of the worst trade?', 'fee'],
  ['What are the fees per trade?', 'fees'],
  ['How much slippage did short trades have?', 'short'],
  ['How many orders were filled late?', 'late'],
  ['Which orders were canceled?', 'canceled'],
  ['What are the parameters of version 1?', '1'],
  ['Which risk limits did version 1 have?', '1'],
  ['What is the exposure in bear markets?', 'bear'],
  ['What is the correlation with gold?', 'correlation'],
  ['What is the beta?', 'beta'],
  ['What is the turnover of other bots?', 'other'],
  ['How profitable would it be with leverage?', 'leverage'],
  ['What is the volatility of the volatility index VIX?', 'vix'],
  ['Best trade except the best one', 'except'],
];

describe('a question with an unknown word', () => {
  it.each(UNKNOWN)('refuses "%s" and names the word "%s"', async (prompt, word) => {
    const { answer, citations } = await ask(prompt);
    const [line] = answer.split('\n');
    expect(line).toMatch(/^I do not know this question\. I did not understand /);
    expect(line).toContain(JSON.stringify(word));
    expect(citations).toEqual([]);
  });
});

describe('a question about part of a run', () => {
  it.each([
    'What is the Sharpe ratio in 2008?',
    'How many trades were there in 2008?',
    'What was the best trade of 2008?',
    'How many losing trades from 2010 to 2012?',
    'What were the fees in 2010?',
  ])('refuses "%s" for lack of a figure', async (prompt) => {
    const { answer, citations } = await ask(prompt);
    expect(answer).toMatch(/^I cannot tell: of part of a run I work out the return and the max/);
    expect(citations).toEqual([]);
  });
});

it('answers the first of several questions, and names the others', async () => {
  const { answer } = await ask('What is the Sharpe ratio, and what were the fees?');
  expect(answer).toMatch(/^Sharpe ratio: /);
  expect(answer).toContain('Ask apart, too: How much were the fees?');
});
