import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import { BIN } from '../cli/service-local.ts';

const STEPS = 400_000;

let directory: string;
let bot: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-interrupted-'));
  const lines = Array.from(
    { length: STEPS },
    (_, at) => `${(1e9 + at * 60) * 1000},${100 + (at % 7)}`,
  );
  writeFileSync(join(directory, 'bars.csv'), `time,close\n${lines.join('\n')}\n`);
  bot = join(directory, 'bot.json');
  const spec = {
    kind: 'trading',
    universe: { symbols: ['X'], currency: 'USD' },
    data: { source: './bars.csv', timeframe: '1m' },
    strategy: { name: 'buy_and_hold' },
  };
  const metadata = { name: 'Long', slug: 'long' };
  writeFileSync(bot, JSON.stringify({ apiVersion: 'bots/v1', kind: 'Bot', metadata, spec }));
});
afterAll(() => rmSync(directory, { recursive: true }));

/**
 * Runs a backtest that receives SIGINT during this kind of request to its thread. The thread sends it,
 * since the main thread may be busy until the request is complete.
 */
async function interruptedWhile(kind: 'load' | 'write', out: string) {
  const preload = `data:text/javascript,${encodeURIComponent(`
    import { isMainThread, parentPort, Worker } from 'node:worker_threads';
    if (isMainThread) {
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (request) {
        postMessage.call(this, { ...request, reports: true });
      };
    } else {
      const { postMessage } = parentPort;
      const begun = [];
      parentPort.postMessage = function (answer) {
        // The first report of a request has a progress of zero.
        if (answer.done === 0) begun.push(begun.length === 0 ? 'load' : 'write');
        if (answer.done === 0 && begun.at(-1) === ${JSON.stringify(kind)}) {
          process.kill(process.pid, 'SIGINT');
        }
        postMessage.call(this, answer);
      };
    }
  `)}`;
  const args = ['--import', preload, BIN, 'backtest', bot, '--equity', 'csv', '--out', out];
  const child = spawn(process.execPath, args, {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  // A shell reports a process that a signal has ended in this way.
  return { code: code ?? 128 + constants.signals[signal!], stderr };
}

it('a backtest that is interrupted while it reads a long file leaves no file', async () => {
  const out = join(directory, 'reading');
  expect(await interruptedWhile('load', out)).toMatchObject({ code: 130 });
  expect(existsSync(out)).toBe(false);
  expect(readdirSync(directory).filter((name) => name.includes('tmp'))).toEqual([]);
});

it('a backtest that is interrupted while it writes long tables completes them and no temporary file is left', async () => {
  const out = join(directory, 'writing');
  const { code, stderr } = await interruptedWhile('write', out);
  expect([code, stderr]).toEqual([130, expect.stringMatching(/are complete$/m)]);
  const summary = JSON.parse(readFileSync(join(out, 'summary.json'), 'utf8')) as Summary;
  expect(readdirSync(out).toSorted()).toEqual(summary.files);
  expect(summary.files).toContain('equity.csv');
});
