import { appendFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MINUTE } from '../../src/base/durations.ts';
import { useFiles } from '../market/files.ts';
import { isAtLength } from '../length.ts';
import { startExchange, type LocalExchange } from '../trading/local-exchange.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

const START = Date.UTC(2024, 0, 1);
const BTC = 'BTC/USDT';
const PAGE = 1000;
const files = useFiles();
let exchange: LocalExchange;
let home: string;
let tests = 0;

const at = (minute: number): number => START + minute * MINUTE;
const iso = (minute: number): string => new Date(at(minute)).toISOString().replace('.000Z', 'Z');

/** Adds the bars of these minutes and sets the clock of the exchange to the middle of the last one. */
function trade(minutes: readonly number[]): void {
  for (const minute of minutes) {
    const close = 100 + (minute % 7);
    exchange.keep(BTC, at(minute), ['100', '110', '90', `${close}.5`, '1.25']);
  }
  exchange.stopClockAt(at(minutes.at(-1)!) + MINUTE / 2);
}

const minutes = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);

const data = (...args: readonly string[]): Promise<Result> =>
  inProcess(['data', ...args, '--catalogue-dir', `${home}/catalogue`], {
    env: { SERVICE_LOCAL_EXCHANGES_FILE: `${home}/exchanges.yaml` },
  });

const SOURCE = ['--exchange', 'local', '--symbol', BTC, '--timeframe', '1m'] as const;

const download = (...more: readonly string[]): Promise<Result> =>
  data('download', ...SOURCE, '--from', '2024-01-01', '--as', 'btc-1m', ...more);

/** First instants of the pages that were requested since the last call. */
function requested(): number[] {
  const pages = exchange.requests
    .splice(0)
    .filter(({ call }) => call === 'GET /klines')
    .map(({ query }) => Number(new URLSearchParams(query).get('startTime')));
  return pages.map((since) => (since - START) / MINUTE);
}

beforeEach(async () => {
  exchange = await startExchange({ symbols: [BTC] });
  tests += 1;
  home = files.path(`home-${tests}`);
  await mkdir(home);
  // YAML includes JSON.
  await writeFile(`${home}/exchanges.yaml`, JSON.stringify({ local: exchange.definition }));
});

afterEach(() => exchange.close());

test('downloads closed bars page by page, and adds newer ones later', async () => {
  trade(minutes(0, PAGE + 500));
  const first = await download();
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toBe(
    `catalog://btc-1m: 1,499 bars of 1m, 2024-01-01 to ${iso(1498)}\nbars downloaded: 1,499\n`,
  );
  expect(requested()).toEqual([0, PAGE - 1 + 1 / MINUTE]);

  trade(minutes(1499, 1505));
  const second = await download('--json');
  expect(JSON.parse(second.stdout)).toMatchObject({
    origin: 'local BTC/USDT 1m from 2024-01-01',
    rows: 1504,
    added: 5,
    duplicates: 0,
    gaps: { count: 0, missing: 0 },
  });
  expect(requested()).toEqual([1498 + 1 / MINUTE]);
  expect((await data('verify')).stdout).toMatch(/^btc-1m +intact$/m);
  expect(JSON.parse((await download('--json')).stdout)).toMatchObject({ rows: 1504, added: 0 });
});

test('continues after a failure, and after a process that was killed while it wrote', async () => {
  trade(minutes(0, PAGE + 500));
  const body = { code: -1100, msg: 'Illegal characters found in a parameter.' };
  const action = { kind: 'status', status: 400, body } as const;
  exchange.faults.add({ on: 'GET /klines', action, skip: 1, count: 1 });
  const failed = await download();
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toMatch(/^error exchange_unavailable: local does not answer: BadRequest/);
  requested();
  await appendFile(`${home}/catalogue/.download-btc-1m/bars.csv`, '2024-01-01T16:40:00.000Z,1');
  expect((await data('list')).stdout).not.toContain('btc-1m');

  const continued = await download('--json');
  expect(JSON.parse(continued.stdout)).toMatchObject({ rows: 1499, added: 1499 });
  expect(requested()).toEqual([PAGE - 1 + 1 / MINUTE]);
  const left = await readdir(`${home}/catalogue`);
  expect(left.filter((name) => !name.endsWith('.lock'))).toEqual(['btc-1m']);
});

test.runIf(isAtLength)(
  'reports missing bars, and stops at bad ones until they are skipped',
  async () => {
    trade([...minutes(0, 100), ...minutes(104, 200)]);
    exchange.keep(BTC, at(150), ['100', '90', '110', '100', '1']);
    const bad = await download();
    expect(bad).toMatchObject({ code: 3, stdout: '' });
    expect(bad.stderr).toContain('high 90 is below low 110');
    requested();

    const { code, stdout } = await download('--repair', 'drop');
    expect(code).toBe(0);
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      `catalog://btc-1m: 194 bars of 1m, 2024-01-01 to ${iso(198)}`,
      'bars downloaded: 194',
      'bars skipped for high_below_low: 1',
      'missing bars: 5, in gaps: 2',
      'after                 before                missing',
      `${iso(99)}  ${iso(104)}        4`,
      `${iso(149)}  ${iso(151)}        1`,
      '',
    ]);
    expect(requested()).toEqual([198 + 1 / MINUTE]);
  },
);

test.runIf(isAtLength)('does not mix sources: another one needs --replace', async () => {
  trade(minutes(0, 10));
  expect(await download()).toMatchObject({ code: 0 });
  const other = await download('--from', '2024-01-01T00:05:00Z');
  expect(other).toMatchObject({ code: 6 });
  const replaced = await download('--from', '2024-01-01T00:05:00Z', '--replace', '--json');
  expect(JSON.parse(replaced.stdout)).toMatchObject({ rows: 4, from: iso(5) });
});

test('fails clearly if the exchange cannot be reached', async () => {
  await exchange.close();
  const result = await download();
  await exchange.listenOnPort();
  expect(result).toMatchObject({ code: 1, stdout: '' });
  expect(result.stderr).toMatch(/^error exchange_unavailable: local does not answer: /);
});

test.each([
  ['symbol', ['--symbol', 'BTC/USD'], 3, 'local has no symbol "BTC/USD"\n→ Did you mean BTC/USDT?'],
  ['name', ['--as', '../x'], 3, '"../x" is not a valid name of a dataset'],
  [
    'exchange',
    ['--exchange', 'nowhere'],
    6,
    'nowhere\n→ Correct --exchange: https://docs.ccxt.com',
  ],
  ['exchange', ['--exchange', 'binanc'], 6, 'binanc\n→ Did you mean --exchange binance?'],
  ['window', ['--from', '2024-01-02', '--to', '2024-01-01'], 2, 'is after to'],
  ['date', ['--from', '2024-31-01'], 2, '"2024-31-01" is not a date\n→ Write both as'],
  ['first day', ['--from', '2199-01-01'], 2, '--from 2199-01-01 is in the future'],
])('fails clearly for a wrong %s', async (_, options, code, message) => {
  trade(minutes(0, 3));
  const result = await download(...options);
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toContain(message);
});
