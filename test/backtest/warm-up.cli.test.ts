/** Bars before the window of a bot, which its declared indicators see. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SweepDocument } from '../../src/backtest/search/sweep-document.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { inProcess } from '../cli/in-process.ts';
import { seededRandom } from '../engine/indicator-contract.ts';
import { isAtLength } from '../length.ts';

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
  readonly calendar?: string;
}

function bot(strategy: string, options: BotOptions = {}): string {
  const {
    data = 'bars',
    window = `, from: ${dayOf(FROM)}`,
    timeframe = '1d',
    calendar = '24/7',
  } = options;
  const file = join(directory, 'bot.yaml');
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: A, slug: a }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD, calendar: ${calendar} }
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

test.runIf(isAtLength)('a sealed strategy has the lock and the events of an open one', async () => {
  const open = await backtest(bot(OWN));
  const sealed = await backtest(bot(OWN), '--sealed');
  expect(sealed.events_text).toBe(open.events_text);
  expect(sealed.lock).toEqual(open.lock);
});

test.runIf(isAtLength)(
  'a trial of a sweep has the figures of a backtest in the same window',
  async () => {
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
  },
);

describe('the lock', () => {
  test.runIf(isAtLength)(
    'covers the bars before the window if declared indicators see them',
    async () => {
      writeBars('other', (row, at) => (at === 3 ? row.replace(/[^,]*$/, '7') : row));
      const before = await backtest(bot(OWN));
      const after = await backtest(bot(OWN, { data: 'other' }));
      expect(after.lock.data).toEqual(before.lock.data);
      expect(after.lock.warm_up).not.toEqual(before.lock.warm_up);
      expect(Object.keys(before.lock.warm_up!)).toEqual(['X']);
    },
  );

  test.runIf(isAtLength)(
    'fails to verify if the bars before the window changed, and names their symbol',
    async () => {
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
    },
  );

  test.runIf(isAtLength)(
    'omits these bars without declared indicators, or if the window begins with the data',
    async () => {
      expect((await backtest(bot(EMPTY))).lock).not.toHaveProperty('warm_up');
      expect((await backtest(bot(OWN, { window: '' }))).lock).not.toHaveProperty('warm_up');
    },
  );
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

  test.runIf(isAtLength)('counts bars of the timeframe of the bot', async () => {
    const { warmUp } = await validate(bot(SMA, { timeframe: '1w' }));
    expect(warmUp).toMatchObject({ needed: 20, given: { X: 8 } });
  });

  test.runIf(isAtLength).each([
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

describe('bars of a longer timeframe are counted in the data', () => {
  const DAYS = 12;
  beforeAll(() => {
    writeHours('seven', [14, 15, 16, 17, 18, 19, 20]);
    writeHours('sessions', [14, 15, 16, 17, 18, 19]);
    writeHours('around', [...Array(24).keys()]);
    writeFileSync(
      join(directory, 'longer.ts'),
      `import { defineStrategy, sma } from 'service-local/strategy';
export default defineStrategy({
  name: 'longer',
  description: 'Buys at its first bar if the average is ready.',
  params: {},
  indicators: ({ instruments: [asset] }) => ({ average: sma(asset.on('1d').close, 5) }),
  create({ instruments: [asset], indicators: { average }, broker }) {
    return { onBar() { if (asset.count === 1 && average.ready) broker.target(asset, 1); } };
  },
});
`,
    );
  });

  /** Writes hourly bars at these hours of the first days of June 2020, which begins on a Monday. */
  function writeHours(name: string, hours: readonly number[]): void {
    const days = Array.from(
      { length: DAYS },
      (_, day) => `2020-06-${String(day + 1).padStart(2, '0')}`,
    );
    const rows = days.flatMap((day) =>
      hours.map((hour) => `${day}T${String(hour).padStart(2, '0')}:00:00Z,10,11,9,10,5`),
    );
    writeFileSync(
      join(directory, `${name}.csv`),
      ['time,open,high,low,close,volume', ...rows, ''].join('\n'),
    );
  }

  async function examine(options: BotOptions) {
    const file = bot('{ module: ./longer.ts }', { timeframe: '1h', ...options });
    const { stdout } = await inProcess(['validate', file, '--json']);
    const [report] = (JSON.parse(stdout) as { files: { warm_up: object; notes: string[] }[] })
      .files;
    const { findings, trades } = await backtest(file);
    const codes = findings.map(({ code }) => code);
    return {
      ...report!,
      codes,
      isShort: codes.includes('warm_up_short'),
      isReady: trades.open === 1,
    };
  }

  test.runIf(isAtLength)('enough days of seven bars are enough without a calendar', async () => {
    const found = await examine({ data: 'seven', window: ', from: 2020-06-06' });
    expect(found).toMatchObject({
      warm_up: { needed: 0, longer: [{ timeframe: '1d', needed: 5, given: { X: 5 } }] },
      isShort: false,
      isReady: true,
    });
    expect(found.notes).toEqual([
      'The indicators need 5 bars of 1d before the window, and the data have: X 5.',
    ]);
  });

  test.runIf(isAtLength)(
    'bars outside the sessions do not replace days, and the earliest from is named',
    async () => {
      const data = { data: 'around', calendar: 'XNYS' };
      const early = await examine({ ...data, window: ', from: 2020-06-05' });
      expect(early).toMatchObject({
        warm_up: {
          longer: [{ timeframe: '1d', needed: 5, given: { X: 4 } }],
          earliest_from: '2020-06-05T19:00:00Z',
        },
        isShort: true,
        isReady: false,
      });
      expect(early.notes).toContain(
        'All indicators are ready at the first bar if data.from is 2020-06-05T19:00:00Z or later.',
      );
      const late = await examine({ ...data, window: ", from: '2020-06-05T19:00:00Z'" });
      expect(late).toMatchObject({ isShort: false, isReady: true });
    },
  );

  test.runIf(isAtLength)('bars outside the sessions of the calendar are a finding', async () => {
    const issue = '% of the bars of X are outside the sessions of XNYS';
    const outside = await examine({ data: 'around', calendar: 'XNYS' });
    expect(outside.notes).toContainEqual(expect.stringContaining(issue));
    expect(outside.codes).toContain('outside_sessions');
    const inside = await examine({
      data: 'sessions',
      calendar: 'XNYS',
      window: ', to: 2020-06-05',
    });
    expect(inside.notes).not.toContainEqual(expect.stringContaining(issue));
    expect(inside.codes).not.toContain('outside_sessions');
  });

  test.runIf(isAtLength)('overlapping bars are a problem of the data', async () => {
    const [head, ...rows] = readFileSync(join(directory, 'around.csv'), 'utf8').split('\n');
    const half = rows[23]!.replace('23:00', '23:30');
    writeFileSync(join(directory, 'odd.csv'), [head, ...rows.toSpliced(24, 0, half)].join('\n'));
    const file = bot('{ module: ./longer.ts }', {
      data: 'odd',
      timeframe: '1h',
      window: ', from: 2020-06-08',
    });
    const { stdout } = await inProcess(['validate', file]);
    expect(stdout).toContain('invalid_data on: the bar of 2020-06-01T23:30:00.000Z overlaps');
  });

  test.runIf(isAtLength)(
    'bars of the window that span two longer bars are a problem, with the remedy',
    async () => {
      const [head, ...rows] = readFileSync(join(directory, 'sessions.csv'), 'utf8').split('\n');
      // The sessions of June open at 13:30 UTC.
      const early = rows.map((row) =>
        row < '2020-06-05' ? row.replace(':00:00Z', ':30:00Z') : row,
      );
      writeFileSync(join(directory, 'shifted.csv'), [head, ...early].join('\n'));
      const strategy = readFileSync(join(directory, 'longer.ts'), 'utf8');
      writeFileSync(join(directory, 'four.ts'), strategy.replace("on('1d')", "on('4h')"));
      const file = bot('{ module: ./four.ts }', {
        data: 'shifted',
        timeframe: '1h',
        calendar: 'XNYS',
        window: ', from: 2020-06-05',
      });
      const { code, stdout } = await inProcess(['validate', file]);
      expect(code).toBe(3);
      expect(stdout).toMatch(/invalid_data the bar of 2020-06-05T17:00:00Z, .* Choose a timeframe/);
    },
  );

  test.runIf(isAtLength)('the need is printed without data.from, too', async () => {
    const { notes, isShort } = await examine({ data: 'seven', window: '' });
    expect(notes).toEqual([
      'The indicators need 5 bars of 1d before the window, and the data have: X 0.',
      'All indicators are ready at the first bar if data.from is 2020-06-06T14:00:00Z or later.',
    ]);
    expect(isShort).toBe(false);
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

test.runIf(isAtLength)(
  'indicators see the bars after the last bad row before the window, or all good ones',
  async () => {
    writeBars('faulty', (row, at) => (at === 40 ? row.replace(/,[^,]*,/, ',-1,') : row));
    const given = async (data: string, ...args: string[]) => {
      const { stdout } = await inProcess(['validate', bot(SMA, { data }), '--json', ...args]);
      return (JSON.parse(stdout) as { files: { warm_up: { given: object } }[] }).files[0]!.warm_up
        .given;
    };
    expect(await given('faulty')).toEqual({ X: 19 });
    expect(await given('faulty', '--repair', 'drop')).toEqual({ X: 59 });
    const { stderr } = await inProcess(['validate', bot(SMA, { data: 'faulty' })]);
    expect(stderr).toContain(
      'X: Before the window, indicators use only the bars after row 41, which is bad: open zero or negative. Correct it, or use repair: drop.',
    );
    const dropped = await backtest(bot(SMA, { data: 'faulty' }), '--repair', 'drop');
    expect(dropped.window.bars).toBe(300 - FROM);
  },
);
