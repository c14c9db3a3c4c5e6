import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SCRATCH } from '../scratch.ts';
import { startTestServer } from '../trading/host/pod/test-server.ts';
import { inProcess } from './in-process.ts';
import { BASIC_ENV, BIN } from './service-local.ts';
import { isAtLength } from '../length.ts';

const DATA = resolve(import.meta.dirname, '../../examples/data/sp500-daily.csv');

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(SCRATCH, 'service-local-run-cli-'));
  write('bot.json', {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'Replayed', slug: 'replayed' },
    spec: {
      kind: 'trading',
      universe: { symbols: ['SPX'], currency: 'USD' },
      data: { source: DATA, timeframe: '1d', from: '2019-01-01' },
      strategy: { name: 'sma_crossover', params: { fast: 3, slow: 9 } },
    },
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(name: string, value: object): string {
  const file = join(directory, name);
  writeFileSync(file, JSON.stringify(value));
  return file;
}

const config = (more: object): string =>
  write('run.json', {
    apiVersion: 'run/v1',
    kind: 'Run',
    bot: './bot.json',
    deployment_id: 'tried-by-hand',
    state_dir: './state',
    ...more,
  });

const run = (...words: string[]) => inProcess(['run', ...words], { cwd: directory });

test.runIf(isAtLength)(
  'a run over replayed data has the result of a backtest over the same data',
  async () => {
    const file = config({ speed: 'max' });
    const { code, stdout } = await run(file, '--json');
    const result = JSON.parse(stdout) as { state: { equity: number; cash: number }; steps: number };
    expect({ code, result }).toMatchObject({
      code: 0,
      result: { outcome: 'finished', verified: true, deployment_id: 'tried-by-hand', orders: [] },
    });
    const backtest = await inProcess(
      ['backtest', join(directory, 'bot.json'), '--out', join(directory, 'out'), '--json'],
      { cwd: directory },
    );
    const { equity } = JSON.parse(backtest.stdout) as { equity: { end: number } };
    expect(result.state.equity).toBeCloseTo(equity.end, 8);

    // The second start resumes from the log and has nothing left to do.
    expect(JSON.parse((await run(file, '--json')).stdout)).toEqual(result);
    const { stdout: shown } = await run(file);
    expect(shown).toMatch(
      /outcome +finished\norders verified +yes\nbars +\d+\nequity +\d+\.\d\d\n/,
    );
  },
);

test('reports all problems of a configuration at once', async () => {
  const file = config({
    bot: 1,
    speed: 0,
    venue: { type: 'exchange', credentials_dir: 'x', apiKey: 'canary' },
    control: { url: 'https://user:canary@server.example', token_file: 'token' },
  });
  const { code, stdout } = await run(file, '--json');
  const { error } = JSON.parse(stdout) as {
    error: { code: string; problems: { pointer: string; file: string }[] };
  };
  expect({ code, error }).toMatchObject({ code: 2, error: { code: 'invalid_setting' } });
  expect(error.problems.map(({ pointer }) => pointer)).toEqual([
    '/bot',
    '/venue',
    '/control/url',
    '/speed',
  ]);
  expect(new Set(error.problems.map((problem) => problem.file))).toEqual(new Set([file]));
  expect(stdout).not.toContain('canary');

  const exchange = config({ venue: { type: 'exchange', credentials_dir: 'x' } });
  const { stderr } = await run(exchange);
  expect(stderr).toContain('exchange: is missing: the venue type exchange needs it');
  expect(stderr).toContain(
    'control: is missing: a deployment at an exchange must have a server that can halt it',
  );
  expect((await run('none.yaml')).code).toBe(3);
});

test.runIf(isAtLength)(
  'SIGTERM stops a run gracefully, a second process is rejected, and the run can be resumed',
  async () => {
    const file = config({ speed: 86_400 * 100 });
    const child = spawn(process.execPath, [BIN, 'run', file, '--log-json', '--json'], {
      env: { ...BASIC_ENV, HOME: directory, SERVICE_LOCAL_HOME: join(directory, 'home') },
    });
    const stdout = text(child.stdout);
    const ended = once(child, 'exit');
    let log = '';
    for await (const chunk of child.stderr) {
      log += String(chunk);
      if (log.includes('resumed')) break;
    }
    const second = await run(file);
    expect(second).toMatchObject({ code: 6, stdout: '' });
    expect(second.stderr).toContain('another process uses the log');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    const { outcome, steps } = JSON.parse(await stdout) as { outcome: string; steps: number };
    expect(outcome).toBe('stopped');
    for (const line of log.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();

    const again = await run(config({ speed: 'max' }));
    expect(again.stderr).toContain(`resumed: ${steps} steps`);
    expect(again.stdout).toContain('finished');
  },
);

test.runIf(isAtLength)(
  'a second signal ends the run immediately and warns of orders that may be open',
  async () => {
    const server = await startTestServer('token');
    writeFileSync(join(directory, 'token'), 'token');
    const file = config({
      speed: 86_400 * 100,
      control: { url: server.url, token_file: './token' },
    });
    const child = spawn(process.execPath, [BIN, 'run', file], {
      env: { ...BASIC_ENV, HOME: directory, SERVICE_LOCAL_HOME: join(directory, 'home') },
    });
    const ended = once(child, 'exit');
    let log = '';
    let signals: NodeJS.Timeout | undefined;
    child.stderr.on('data', (chunk) => {
      log += String(chunk);
      if (signals !== undefined || !log.includes('resumed')) return;
      // The runner cannot report its end, and retries for some time.
      server.isAway = true;
      child.kill('SIGTERM');
      // Signals soon after the first count as the same key press.
      signals = setInterval(() => child.kill('SIGTERM'), 100);
    });
    expect(await ended).toEqual([130, null]);
    clearInterval(signals);
    expect(log).toContain('stopped at once; orders that may be open: none');
    await server.close();
  },
);
