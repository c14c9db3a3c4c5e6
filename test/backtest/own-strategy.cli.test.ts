import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import canonicalize from 'canonicalize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import { inProcess } from '../cli/in-process.ts';
import { serviceLocal } from '../cli/service-local.ts';
import { isAtLength, some } from '../length.ts';

const SP500 = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-own-strategy-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Parts {
  /** Code at the top of the module. */
  readonly top?: string;
  readonly create?: string;
  readonly onBar?: string;
}

let count = 0;

/** A bot with a strategy of these parts, at known lines of its module. */
function bot({ top = '', create = '', onBar = '' }: Parts): string {
  const place = join(directory, `bot-${(count += 1)}`);
  mkdirSync(place);
  writeFileSync(
    join(place, 'own.ts'),
    `import { defineStrategy, integer } from 'service-local/strategy';
${top}
export default defineStrategy({
  name: 'own', description: 'made by a test', params: { size: integer({ default: 1 }) },
  create({ instruments, broker, random, log }) {
    const instrument = instruments[0]!;
    ${create}
    return { onBar() {
      ${onBar}
    } };
  },
});
`,
  );
  const file = join(place, 'bot.yaml');
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: own, slug: own }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${SP500}, timeframe: 1d, from: 2010-01-01, to: 2010-12-31 }
  strategy: { module: ./own.ts }
`,
  );
  return file;
}

interface Failure {
  readonly error: { readonly code: string; readonly message: string; readonly remedy: string };
}

/**
 * Runs the CLI, in a process of its own in `npm run test:long`, and returns its files and the document
 * that it prints.
 */
async function runCli(parts: Parts, ...args: string[]) {
  return outcomeOf(isAtLength ? serviceLocal : inProcess, parts, ...args);
}

/** Runs the CLI with `run` and returns its files and the document that it prints. */
async function outcomeOf(run: typeof serviceLocal, parts: Parts, ...args: string[]) {
  const file = bot(parts);
  const out = join(file, '../out');
  const { code, stdout, stderr } = await run(['backtest', file, '--json', `--out=${out}`, ...args]);
  const left = existsSync(out) ? readdirSync(out).toSorted() : [];
  return { code, stderr, left, document: JSON.parse(stdout) as Failure & Summary };
}

/** Runs the CLI in this process, for strategies that fail in their own thread. */
async function failureOf(parts: Parts, ...args: string[]) {
  const file = bot(parts);
  const out = join(file, '../out');
  const { code, stdout } = await inProcess(['backtest', file, '--json', `--out=${out}`, ...args]);
  expect(existsSync(out)).toBe(false);
  return { exit: code, ...(JSON.parse(stdout) as Failure).error };
}

const FIRST = 'if (instrument.count !== 10) return;';

describe('a strategy that ends the process', () => {
  test('fails the run with its line, and leaves no files', async () => {
    const { code, left, document } = await runCli({ onBar: `${FIRST} process.exit(0);` });
    expect({ code, left }).toEqual({ code: 1, left: [] });
    expect(document.error).toMatchObject({
      code: 'strategy_failed',
      message: expect.stringMatching(
        /own\.ts:9: a strategy must not call process\.exit\(\)/,
      ) as string,
    });
  });

  test.runIf(isAtLength).each<[string, Parts, RegExp]>([
    ['while it loads', { top: 'process.exit(0);' }, /own\.ts:2: .*process\.exit/],
    ['from a callback', { create: 'setImmediate(() => process.exit(0));' }, /own\.ts:7: .*exit/],
    ['with a signal', { onBar: 'process.kill(process.pid);' }, /own\.ts:9: .*process\.kill/],
    ['by an abort', { onBar: 'process.abort();' }, /own\.ts:9: .*process\.abort/],
    ['and hides it', { onBar: 'try { process.exit(0); } catch {}' }, /own\.ts:9: .*process\.exit/],
    [
      'by a named import',
      { top: "import { exit } from 'node:process';", onBar: 'exit(0);' },
      /own\.ts:9/,
    ],
  ])('%s fails the run', async (_, parts, message) => {
    expect(await failureOf(parts)).toMatchObject({
      exit: 1,
      code: 'strategy_failed',
      message: expect.stringMatching(message) as string,
    });
  });

  test.runIf(isAtLength)('is reported by validate as a problem of its file', async () => {
    const file = bot({ top: 'process.exit(0);' });
    const { code, stdout } = await inProcess(['validate', file, '--json']);
    expect(code).toBe(3);
    expect(stdout).toMatch(/own\.ts:2: a strategy must not call process\.exit\(\)/);
  });
});

describe('a strategy that acts after its functions have returned', () => {
  test('fails the run when it places an order after an await', async () => {
    const order = "broker.order({ instrument, side: 'buy', quantity: 1 })";
    const onBar = `void Promise.resolve().then(() => ${order});`;
    expect(await failureOf({ onBar })).toMatchObject({
      exit: 1,
      code: 'strategy_failed',
      message: expect.stringMatching(/own\.ts:9: .*orders must be placed within create/) as string,
    });
  });

  test.runIf(isAtLength).each([
    [
      'rejects a promise',
      { onBar: "void Promise.reject(new Error('late'));" },
      /own\.ts:9: .*late/,
    ],
    [
      'throws in a callback',
      { create: "setImmediate(() => { throw new Error('late'); });" },
      /own\.ts:7: .*late/,
    ],
    [
      'orders at the last bar only',
      {
        onBar: `if (instrument.count < 252) return;
          queueMicrotask(() => broker.target(instrument, 1));`,
      },
      /own\.ts:10: .*orders must be placed/,
    ],
  ])('fails the run when it %s', async (_, parts, message) => {
    expect(await failureOf(parts)).toMatchObject({
      exit: 1,
      code: 'strategy_failed',
      message: expect.stringMatching(message) as string,
    });
  });

  test.runIf(isAtLength)('is stopped when it never settles a promise', async () => {
    const parts = { onBar: `${FIRST} queueMicrotask(() => { for (;;); });` };
    const error = await failureOf(parts, '--strategy-timeout-seconds', '0.1');
    expect(error).toMatchObject({ exit: 1, code: 'strategy_timeout' });
  });
});

test.runIf(isAtLength)(
  'timers that a strategy leaves open do not keep the process alive, and are a finding',
  async () => {
    const { code, document } = await runCli({
      top: "import { createServer } from 'node:net';",
      create: 'setInterval(() => {}, 1000); createServer().listen(0);',
    });
    expect(code).toBe(0);
    expect(document.findings).toContainEqual(
      expect.objectContaining({
        code: 'left_running',
        evidence: { TCPServerWrap: 1, Timeout: 1 },
      }),
    );
  },
);

test('a backtest writes the lines that a strategy logs to a file, and prints the last ones if the strategy fails', async () => {
  const file = bot({
    create: "log('created');",
    onBar: "if (instrument.count === 1) log('first');",
  });
  const out = join(file, '../out');
  const path = join(out, 'log.txt');
  const end = "log('before'); throw new Error('end');";
  const failing = [bot({ onBar: end }), bot({ create: end })];
  for (const options of isAtLength ? [[], ['--sealed']] : [[]]) {
    for (const failed of failing) {
      const { code, stderr } = await inProcess(['backtest', failed, ...options]);
      expect(code).toBe(1);
      expect(stderr).toContain('log: 2010-01-04T00:00:00Z before');
    }
    const { code, stdout } = await inProcess(['backtest', file, `--out=${out}`, ...options]);
    expect(code).toBe(0);
    expect(stdout).toContain(`log: ${path}`);
    const time = '2010-01-04T00:00:00Z';
    expect(readFileSync(path, 'utf8')).toBe(`${time} created\n${time} first\n`);
  }
  await inProcess(['backtest', bot({}), `--out=${out}`]);
  expect(existsSync(path), 'the log of an earlier run').toBe(false);
});

describe('a strategy that allocates memory endlessly', () => {
  const limit = ['--strategy-memory', '128'];

  test.runIf(isAtLength).each<[string, string]>([
    ['in typed arrays', 'kept.push(new Float64Array(1e6).fill(1));'],
    // Few large arrays, because small ones would occupy the garbage collector for seconds.
    ['in arrays within one call', 'for (;;) kept.push(new Array(1e5).fill(1.5).sort());'],
    ['in a map', 'for (let i = 0; i < 1e5; i++) map.set(map.size, i);'],
  ])('%s fails the run for its memory', async (_, onBar) => {
    const top = 'const kept: unknown[] = []; const map = new Map();';
    const { code, left, document } = await runCli({ top, onBar }, ...limit);
    expect({ code, left }).toEqual({ code: 1, left: [] });
    expect(document.error).toMatchObject({
      code: 'strategy_failed',
      reason: 'out_of_memory',
      message: 'the strategy exceeded its memory limit of 128 MB',
      remedy: expect.stringContaining('strategy_memory_mb') as string,
    });
  });

  test.runIf(isAtLength)('while it loads fails the run as such', async () => {
    const top = 'const kept: unknown[] = []; for (;;) kept.push(Buffer.alloc(1e6, 1));';
    const { code, document } = await runCli({ top }, ...limit);
    expect(code).toBe(1);
    expect(document.error).toMatchObject({ code: 'strategy_failed', reason: 'out_of_memory' });
  });
});

describe('a strategy that is not repeatable', () => {
  test.each<[string, RegExp]>(
    some(1, [
      ['Date.now()', /Date\.now\(\)/],
      ['Math.random()', /Math\.random\(\)/],
      ['new Date()', /new Date\(\) without a time/],
      ['Date()', /Date\(\)/],
      ['new (class extends Date {})()', /new Date\(\)/],
      ['performance.now()', /performance\.now\(\)/],
      ['process.hrtime.bigint()', /process\.hrtime\.bigint\(\)/],
      ['process.hrtime()', /process\.hrtime\(\)/],
      ['Temporal.Now.instant()', /Temporal\.Now\.instant\(\)/],
      ["new Intl.DateTimeFormat('en').format()", /Intl\.DateTimeFormat\.format\(\) without a date/],
      ['[1].map(Math.random)', /Math\.random\(\)/],
      ['crypto.randomUUID()', /crypto\.randomUUID\(\)/],
      ['crypto.getRandomValues(new Uint8Array(1))', /crypto\.getRandomValues\(\)/],
      ['randomBytes(1)', /crypto\.randomBytes\(\)/],
      ['try { Math.random() } catch {}', /Math\.random\(\)/],
    ]),
  )('%s in onBar fails the run at its line', async (code, message) => {
    const top = "import { randomBytes } from 'node:crypto'; void randomBytes;";
    const error = await failureOf({ top, onBar: `${FIRST} ${code};` });
    expect(error).toMatchObject({ exit: 1, code: 'strategy_failed' });
    expect(error.message).toMatch(
      new RegExp(`own\\.ts:9: a strategy must not call ${message.source}`),
    );
    expect(error.remedy).toMatch(/instrument\.time|random\(\)/);
  });

  test.runIf(isAtLength).each([
    ['while it loads', { top: 'export const begun = new Date();' }, 2],
    ['in create', { create: 'const seed = Math.random(); void seed;' }, 7],
  ])('fails %s, too', async (_, parts, line) => {
    const error = await failureOf(parts);
    expect(error).toMatchObject({ exit: 1, code: 'strategy_failed' });
    expect(error.message).toMatch(new RegExp(`own\\.ts:${line}: a strategy must not call`));
  });

  test.runIf(isAtLength)('may create dates from given times, in UTC on every machine', async () => {
    const file = bot({
      create: `
        const date = new Date(instrument.time);
        const sameClass = date instanceof Date && Date.prototype.constructor === Date;
        if (!sameClass || new Date(2010, 0, 1).getTime() !== Date.UTC(2010, 0, 1)) throw new Error('zone');
        if (new Intl.DateTimeFormat('en', { timeStyle: 'short' }).format(0) !== '12:00 AM') throw new Error('Intl');
        if (!(random() < 1)) throw new Error('random');`,
    });
    const env = { TZ: 'America/New_York' };
    const { code, stderr } = await serviceLocal(['backtest', file, '--out', join(file, '../out')], {
      env,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('a strategy that uses files or the network', () => {
  const lockOf = (file: string): Record<string, unknown> =>
    JSON.parse(readFileSync(join(file, '../bot.lock.json'), 'utf8')) as Record<string, unknown>;

  const USES: readonly (readonly [what: string, parts: Parts, use: string])[] = [
    ['imports it', { top: "import { existsSync } from 'node:fs'; void existsSync;" }, 'node:fs'],
    ['imports it late', { onBar: "process.getBuiltinModule('fs');" }, 'node:fs'],
    ['fetches', { onBar: `${FIRST} void fetch('data:,');` }, 'fetch'],
  ];

  test.each(some(1, USES))(
    'such as one that %s gets a finding and an entry in the lock',
    async (_, parts, use) => {
      const file = bot(parts);
      const args = ['backtest', file, '--json', `--out=${join(file, '../out')}`];
      const { code, stdout } = await inProcess([...args, '--write-lock']);
      const { findings, lock } = JSON.parse(stdout) as Summary;
      expect({ code, outside: lock.outside }).toEqual({ code: 0, outside: [use] });
      expect(findings).toContainEqual(
        expect.objectContaining({ code: 'outside_used', evidence: { uses: use } }),
      );
      expect(lockOf(file)).toEqual(lock);
      expect((await inProcess([...args, '--verify-lock'])).code).toBe(0);
    },
  );

  test.runIf(isAtLength)('verifies with a lock from before `outside` existed', async () => {
    const file = bot({ top: "import { existsSync } from 'node:fs'; void existsSync;" });
    const args = ['backtest', file, '--json', `--out=${join(file, '../out')}`];
    await inProcess([...args, '--write-lock']);
    const { digest: _, outside: __, trials: ___, ...rest } = lockOf(file);
    const digest = createHash('sha256').update(canonicalize(rest)!).digest('hex');
    writeFileSync(join(file, '../bot.lock.json'), JSON.stringify({ digest, ...rest }));
    expect((await inProcess([...args, '--verify-lock'])).code).toBe(0);
  });

  test.runIf(isAtLength)('has no `outside` when it uses neither', async () => {
    const file = bot({});
    const { stdout } = await inProcess([
      'backtest',
      file,
      '--json',
      `--out=${join(file, '../out')}`,
    ]);
    const { lock, findings } = JSON.parse(stdout) as Summary;
    expect(lock).not.toHaveProperty('outside');
    expect(findings.map(({ code }) => code)).not.toContain('outside_used');
  });
});

describe('a sealed strategy', () => {
  const TRADES = `if (instrument.count % 20 === 5) broker.target(instrument, random());
    if (instrument.count % 20 === 15) broker.order({ instrument, side: 'sell', quantity: 1, type: 'stop', stop: instrument.close * 0.99 });`;

  test.runIf(isAtLength)('has the same results as an unsealed one', async () => {
    const open = await outcomeOf(inProcess, { onBar: TRADES });
    const sealed = await outcomeOf(inProcess, { onBar: TRADES }, '--sealed');
    expect(sealed).toMatchObject({ code: 0, left: open.left });
    expect(open.document.orders.filled).toBeGreaterThan(10);
    expect(sealed.document.hashes).toEqual(open.document.hashes);
    expect(sealed.document.lock).toEqual(open.document.lock);
  });

  test.runIf(isAtLength)('never runs outside the sandbox', async () => {
    const mark = join(directory, 'mark');
    const top = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, '');`;
    const error = await failureOf({ top }, '--sealed');
    expect(error.exit).toBe(3);
    expect(existsSync(mark)).toBe(false);
    const write = `process.getBuiltinModule('fs').writeFileSync(${JSON.stringify(mark)}, '');`;
    expect(await failureOf({ onBar: write }, '--sealed')).toMatchObject({
      exit: 1,
      code: 'strategy_failed',
      message: expect.stringMatching(/process is not defined/) as string,
    });
    expect(existsSync(mark)).toBe(false);
  });

  test.runIf(isAtLength)('fails as on a server if it allocates memory endlessly', async () => {
    const onBar = 'kept.push(new Float64Array(1e6).fill(1));';
    const parts = { top: 'const kept: unknown[] = [];', onBar };
    expect(await failureOf(parts, '--sealed', '--strategy-memory', '128')).toMatchObject({
      exit: 1,
      code: 'strategy_failed',
      reason: 'out_of_memory',
      message: 'the strategy exceeded its memory limit of 128 MB',
    });
  });
});
