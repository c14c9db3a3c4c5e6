/** Bars before the window of a bot, which its declared indicators see. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SweepDocument } from '../../src/backtest/sweep-plan.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { inProcess } from '../cli/in-process.ts';
import { seededRandom } from '../engine/indicator-contract.ts';

const FIRST = Date.UTC(2020, 0, 1);
/** Number of the bar at which the windows begin. */
const FROM = 60;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-warm-up-'));
  writeBars('bars', (row) => row);
  writeFileSync(
    join(directory, 'own.ts'),
    `import { crossedAbove, crossedBelow, defineStrategy, ema, integer, obv, rsi } from 'service-local/strategy';
export default defineStrategy({
  name: 'own',
  description: 'Trades from a given bar on.',
  params: { idle: integer({ default: 0, min: 0 }), period: integer({ default: 5, min: 1 }) },
  indicators: ({ params, instruments: [asset] }) => ({
    fast: ema(rsi(asset.close, 4), params.period),
    balance: obv(asset),
  }),
  create({ params, indicators: { fast, balance }, instruments: [asset], broker }) {
    return {
      onBar() {
        if (asset.count <= params.idle) return;
        if (crossedAbove(fast, 50)) broker.target(asset, balance.value > 0 ? 1 : 0.5);
        else if (crossedBelow(fast, 50)) broker.target(asset, 0);
      },
    };
  },
});
`,
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

const dayOf = (row: number): string =>
  new Date(FIRST + row * 86_400_000).toISOString().slice(0, 10);

/** Writes 300 daily bars of a random walk, each changed by `change`. */
function writeBars(name: string, change: (row: string, index: number) => string): void {
  const random = seededRandom(1);
  let price = 100;
  const rows = Array.from({ length: 300 }, (_, index) => {
    price *= 1 + 0.04 * (random() - 0.5);
    const [high, low] = [price * 1.01, price * 0.99];
    return change([dayOf(index), price, high, low, price, 1000 * random()].join(), index);
  });
  const lines = ['date,open,high,low,close,volume', ...rows, ''];
  writeFileSync(join(directory, `${name}.csv`), lines.join('\n'));
}

interface BotOptions {
  readonly data?: string;
  readonly window?: string;
  readonly timeframe?: string;
}

function bot(strategy: string, options: BotOptions = {}): string {
  const { data = 'bars', window = `, from: ${dayOf(FROM)}`, timeframe = '1d' } = options;
  const file = join(directory, 'bot.yaml');
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: A, slug: a }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ./${data}.csv, timeframe: ${timeframe}${window} }
  strategy: ${strategy}
`,
  );
  return file;
}

async function backtest(...args: string[]): Promise<Summary & { readonly events_text: string }> {
  const out = join(directory, 'out');
  const { code, stdout, stderr } = await inProcess(['backtest', ...args, '--out', out, '--json']);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const events_text = readFileSync(join(out, 'events.ndjson'), 'utf8');
  return { ...(JSON.parse(stdout) as Summary), events_text };
}

const OWN = '{ module: ./own.ts }';
const SMA = '{ name: sma_crossover, params: { fast: 5, slow: 20 } }';
const EMPTY = '{ name: buy_and_hold }';

test('a run over a window has the events of a run over all bars that does not trade before the window', async () => {
  const window = await backtest(bot(OWN));
  const whole = await backtest(bot(OWN, { window: '' }), '-p', `idle=${FROM}`);
  expect(window.trades.count).toBeGreaterThan(5);
  expect(window.events_text).toBe(whole.events_text);
  expect(window.equity.end).toBe(whole.equity.end);
  expect(window.window).toMatchObject({ from: `${dayOf(FROM)}T00:00:00.000Z`, bars: 300 - FROM });
});

test('a sealed strategy has the lock and the events of an open one', async () => {
  const open = await backtest(bot(OWN));
  const sealed = await backtest(bot(OWN), '--sealed');
  expect(sealed.events_text).toBe(open.events_text);
  expect(sealed.lock).toEqual(open.lock);
});

test('a trial of a sweep has the figures of a backtest in the same window', async () => {
  const args = ['-p', 'period=3,8', '--workers', '2'];
  const out = ['--out', join(directory, 'sweep'), '--json'];
  const { code, stdout } = await inProcess(['backtest', 'sweep', bot(OWN), ...args, ...out]);
  expect(code).toBe(0);
  for (const { params, metrics } of (JSON.parse(stdout) as SweepDocument).results) {
    const alone = await backtest(bot(OWN), '-p', `period=${params['period']}`);
    expect(metrics).toMatchObject({
      end_equity: alone.equity.end,
      sharpe: alone.risk.sharpe,
      trades: alone.trades.count,
    });
  }
});

describe('the lock', () => {
  test('covers the bars before the window if declared indicators see them', async () => {
    writeBars('other', (row, at) => (at === 3 ? row.replace(/[^,]*$/, '7') : row));
    const before = await backtest(bot(OWN));
    const after = await backtest(bot(OWN, { data: 'other' }));
    expect(after.lock.data).toEqual(before.lock.data);
    expect(after.lock.warm_up).not.toEqual(before.lock.warm_up);
    expect(Object.keys(before.lock.warm_up!)).toEqual(['X']);
  });

  test('fails to verify if the bars before the window changed, and names their symbol', async () => {
    expect((await inProcess(['backtest', bot(OWN), '--write-lock'])).code).toBe(0);
    const { code, stderr } = await inProcess([
      'backtest',
      bot(OWN, { data: 'other' }),
      '--verify-lock',
    ]);
    expect({ code, stderr }).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('bars before the run of X: changed'),
    });
  });

  test('omits these bars without declared indicators, or if the window begins with the data', async () => {
    expect((await backtest(bot(EMPTY))).lock).not.toHaveProperty('warm_up');
    expect((await backtest(bot(OWN, { window: '' }))).lock).not.toHaveProperty('warm_up');
  });
});

describe('validate', () => {
  const validate = async (file: string) => {
    const { code, stdout, stderr } = await inProcess(['validate', file, '--json']);
    const [report] = (JSON.parse(stdout) as { files: { warm_up?: object }[] }).files;
    const notes = stderr.split('\n').map((line) => line.replace(`note: ${file}: `, ''));
    return { code, notes, warmUp: report!.warm_up };
  };

  test('reports how many bars are needed and present, and which indicators depend on more', async () => {
    const { code, notes, warmUp } = await validate(bot(OWN));
    expect(code).toBe(0);
    expect(notes).toEqual([
      'The indicators need 9 bars before the window, and the data have: X 60.',
      'ema(rsi(close,4),5) depends on the first bars: their influence is below 1e-9 after 134 bars.',
      'obv() depends on all bars since the first.',
      '',
    ]);
    expect(warmUp).toEqual({
      needed: 9,
      given: { X: 60 },
      indicators: [
        { indicator: 'ema(rsi(close,4),5)', ready: 9, settled: 134 },
        { indicator: 'obv()', ready: 1, settled: null },
      ],
    });
  });

  test('counts bars of the timeframe of the bot', async () => {
    const { warmUp } = await validate(bot(SMA, { timeframe: '1w' }));
    expect(warmUp).toMatchObject({ needed: 20, given: { X: 8 } });
  });

  test.each([
    ['indicators', 'rsi(asset.close, 4)', 'rsi(asset.close, -4)', 'RangeError: period', 7],
    [
      'wakeOn',
      '  create(',
      '  wakeOn: ({ slow }) => crossing(slow, 50),\n  create(',
      'TypeError: expected a series such as asset.close, not undefined',
      10,
    ],
  ])('reports an error in %s with its line', async (method, from, to, message, line) => {
    const source = readFileSync(join(directory, 'own.ts'), 'utf8')
      .replace('crossedAbove,', 'crossedAbove, crossing,')
      .replace(from, to);
    const name = `bad-${method}.ts`;
    writeFileSync(join(directory, name), source);
    const { stdout } = await inProcess(['validate', bot(`{ module: ./${name} }`)]);
    expect(stdout).toContain(`strategy_failed ${method}() of strategy own threw: ${message}`);
    expect(stdout).toContain(`/${name}:${line})\n`);
  });
});

test('too few bars before the window are a finding', async () => {
  const summary = await backtest(bot(SMA, { window: `, from: ${dayOf(12)}` }));
  expect(summary.findings.find(({ code }) => code === 'warm_up_short')).toMatchObject({
    severity: 'info',
    evidence: { X: 12 },
  });
  const enough = await backtest(bot(SMA));
  expect(enough.findings.map(({ code }) => code)).not.toContain('warm_up_short');
});

test('indicators see the bars after the last bad row before the window, or all good ones', async () => {
  writeBars('faulty', (row, at) => (at === 40 ? row.replace(/,[^,]*,/, ',-1,') : row));
  const given = async (data: string, ...args: string[]) => {
    const { stdout } = await inProcess(['validate', bot(SMA, { data }), '--json', ...args]);
    return (JSON.parse(stdout) as { files: { warm_up: { given: object } }[] }).files[0]!.warm_up
      .given;
  };
  expect(await given('faulty')).toEqual({ X: 19 });
  expect(await given('faulty', '--repair', 'drop')).toEqual({ X: 59 });
  const dropped = await backtest(bot(SMA, { data: 'faulty' }), '--repair', 'drop');
  expect(dropped.window.bars).toBe(300 - FROM);
});
