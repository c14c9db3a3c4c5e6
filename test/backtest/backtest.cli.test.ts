import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Summary } from '../../src/backtest/summary.ts';
import { inProcess } from '../cli/in-process.ts';
import { BIN, runNode, serviceLocal, type Result } from '../cli/service-local.ts';
import { failAt } from '../fault/fail-points.ts';
import { isAtLength } from '../length.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const SMA = join(EXAMPLES, 'sma-crossover.yaml');
const SP500 = join(EXAMPLES, 'data/sp500-daily.csv');

let directory: string;
let count = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-backtest-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const fresh = (): string => join(directory, `out-${(count += 1)}`);

interface BotParts {
  readonly data?: string;
  readonly strategy?: string;
  readonly engine?: string;
  readonly more?: string;
}

/** A bot file in the test's directory. */
function bot(name: string, { data = SP500, strategy, engine, more }: BotParts): string {
  const file = join(directory, `${name}.yaml`);
  writeFileSync(
    file,
    `apiVersion: bots/v1
kind: Bot
metadata: { name: ${name}, slug: ${name} }
spec:
  kind: trading
  universe: { symbols: [X], currency: USD }
  data: { source: ${data}, timeframe: 1d }
  strategy: ${strategy ?? '{ name: sma_crossover, params: { fast: 10, slow: 30 } }'}
  engine: ${engine ?? '{ cash: "100000", fees: { model: percent, rate: "0.001" } }'}
${more ?? ''}`,
  );
  return file;
}

/** A strategy module whose `onBar` is `body`. */
function strategyFile(name: string, body: string): string {
  const file = join(directory, `${name}.ts`);
  writeFileSync(
    file,
    `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: '${name}',
  description: 'made by a test',
  params: { size: integer({ default: 1, min: 0 }) },
  create({ instruments, broker, params }) {
    const instrument = instruments[0]!;
    return {
      onBar() {
        ${body}
      },
    };
  },
});
`,
  );
  return `{ module: ${file} }`;
}

async function backtest(file: string, ...args: string[]) {
  const out = fresh();
  const result = await inProcess(['backtest', file, '--json', '--out', out, ...args]);
  return { ...result, out, document: JSON.parse(result.stdout) as Summary };
}

/** Result of the example without options, which several tests read. */
let example: ReturnType<typeof backtest> | undefined;
const plain = () => (example ??= backtest(SMA));

async function failing(file: string, ...args: string[]) {
  return errorOf(await inProcess(['backtest', file, '--json', ...args]));
}

function errorOf({ code, stdout }: Result) {
  const { error } = JSON.parse(stdout) as {
    error: { code: string; message: string; remedy: string | null };
  };
  return { exit: code, ...error };
}

describe('a result', () => {
  test('matches independent engines on the same bars, and is one JSON document', async () => {
    const { code, stdout, stderr, document } = await plain();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().endsWith('}')).toBe(true);
    // backtrader, bt and vectorbt agree on these figures with the same conventions.
    expect(document.equity.end).toBeCloseTo(137_695.03785699606, 5);
    expect(document.risk.max_drawdown).toBeCloseTo(-0.3140668317462224, 12);
    expect(document.risk.sharpe).toBeCloseTo(0.20061010383509756, 12);
    expect(document.costs.fees).toBeCloseTo(18_600.62865739678, 6);
    expect(document.trades).toMatchObject({ count: 87, open: 1 });
    expect(document.trades.win_rate).toBeCloseTo(0.41379310344827586, 12);
    expect(document.trades.profit_factor).toBeCloseTo(1.2647435202582167, 10);
    expect(document.exposure.time).toBeCloseTo(0.6137120470127326, 12);
    expect(document.orders.fills).toBe(175);
    expect(document.window).toEqual({
      from: '2000-01-03T00:00:00.000Z',
      to: '2020-04-17T00:00:00.000Z',
      bars: 5105,
    });
  });

  test.runIf(isAtLength)('in whole units matches independent engines, too', async () => {
    const engine = '{ units: whole, fees: { model: percent, rate: "0.001" } }';
    const { document } = await backtest(bot('whole', { engine }));
    expect(document.equity.end).toBeCloseTo(137_507.00819687988, 5);
    expect(document.risk.max_drawdown).toBeCloseTo(-0.31208142811636574, 12);
    expect(document.risk.sharpe).toBeCloseTo(0.2006696914070808, 12);
    expect(document.costs.fees).toBeCloseTo(18_448.420251121, 6);
    expect(document.trades.count).toBe(87);
  });

  test('has every field of its schema, and the hashes of its files', async () => {
    const { document, out } = await backtest(SMA, '--profile', 'quantstats', '--benchmark', SP500);
    expect(Object.keys(document).toSorted()).toEqual(
      [
        'schema run_id bot version lock window engine conventions equity returns risk trades costs',
        'exposure orders ambiguity margin_calls deflated_sharpe gates findings files hashes undefined profile benchmark params currency',
      ]
        .join(' ')
        .split(' ')
        .toSorted(),
    );
    expect(document.profile?.name).toBe('quantstats');
    expect(document.benchmark).toMatchObject({
      name: 'sp500-daily',
      source: SP500,
      data: document.lock.data['SPX'],
    });
    const sha256 = (name: string): string =>
      createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex');
    expect(document.hashes).toEqual({
      events: sha256('events.ndjson'),
      trades: sha256('trades.csv'),
      equity: sha256('equity.csv'),
    });
    expect(JSON.parse(readFileSync(join(out, 'summary.json'), 'utf8'))).toEqual(document);
    expect(readFileSync(join(out, 'equity.csv'), 'utf8').split('\n')).toHaveLength(5107);
    expect(readFileSync(join(out, 'report.html'), 'utf8')).toContain('SMA crossover');
  });

  test('is printed as a table with its conventions, and its files are in ./runs', async () => {
    const { code, stdout } = await inProcess(['backtest', SMA], { cwd: directory });
    expect(code).toBe(0);
    expect(stdout).toMatch(/Max drawdown\s+−31\.41%/);
    expect(stdout).toContain('252 a year, ddof 1, risk-free 0');
    const report = /report: (.+)\n/.exec(stdout)?.[1];
    expect(report).toMatch(new RegExp(`^${directory}/runs/sma-crossover/[^/]+/report\\.html$`));
    expect(readFileSync(report!, 'utf8')).toContain('<!doctype html>');
  });

  test('uses the parameters and the window of the command line', async () => {
    const { document } = await backtest(SMA, '-p', 'fast=20', '--from', '2010-01-01');
    const { version } = (await plain()).document;
    expect(document.window.from).toBe('2010-01-04T00:00:00.000Z');
    expect(document.version).not.toBe(version);
  });
});

describe('a window that reaches beyond the data', () => {
  const WINDOW = ['--from', '1990-01-01', '--to', '2030-12-31'];

  test.runIf(isAtLength)(
    'is a finding that names both edges, in a backtest and in a sweep',
    async () => {
      const { code, document } = await backtest(SMA, ...WINDOW);
      expect(code).toBe(0);
      const finding = {
        code: 'window_beyond_data',
        severity: 'warning',
        issue:
          'The window extends beyond the data: ' +
          'from is 1990-01-01, but the first bar of SPX is of 2000-01-03; ' +
          'to is 2030-12-31, but the last bar of SPX is of 2020-04-17.',
      };
      expect(document.findings).toContainEqual(expect.objectContaining(finding));
      expect((await plain()).document.findings.map((each) => each.code)).not.toContain(
        finding.code,
      );
      const sweep = ['backtest', 'sweep', SMA, '-p', 'fast=5,10', '--json', '--out', fresh()];
      const { stdout } = await inProcess([...sweep, ...WINDOW]);
      expect(JSON.parse(stdout)).toMatchObject({ findings: [finding] });
    },
  );

  test('is rejected when it contains no bar', async () => {
    const error = await failing(SMA, '--from', '2030-01-01', '--to', '2030-12-31');
    expect(error).toMatchObject({ exit: 3, code: 'invalid_data' });
    expect(error.message).toContain('it begins at 2000-01-03 and ends at 2020-04-17');
  });
});

describe('data that need read options', () => {
  const rows = readFileSync(SP500, 'utf8').trimEnd().split('\n').slice(0, 400);
  const dirty = (name: string): string => {
    const file = join(directory, `${name}.csv`);
    writeFileSync(file, rows.with(40, '2000-02-29,1,2,3,4,5,6').join('\n'));
    return bot(name, { data: file });
  };

  test.runIf(isAtLength)(
    'are read with --repair drop, as the error suggests, by backtest, sweep and validate',
    async () => {
      const file = dirty('dirty');
      const refused = await inProcess(['backtest', file]);
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain('leave them out with data.repair: drop in the bot');
      const { code, document, stderr } = await backtest(file, '--repair', 'drop');
      expect(code).toBe(0);
      expect(document.window.bars).toBe(398);
      expect(stderr).toContain('note: X: Skipped bad rows: 1 of 399.');
      const grid = ['-p', 'fast=5,10', '--out', fresh(), '--json'];
      expect(await inProcess(['backtest', 'sweep', file, ...grid])).toMatchObject({ code: 3 });
      const swept = await inProcess(['backtest', 'sweep', file, '--repair', 'drop', ...grid]);
      expect(JSON.parse(swept.stdout)).toMatchObject({ window: { bars: 398 } });
      expect(await inProcess(['validate', file])).toMatchObject({ code: 3 });
      expect(await inProcess(['validate', file, '--repair', 'drop'])).toMatchObject({ code: 0 });
    },
  );

  test.runIf(isAtLength)(
    'are read with --columns, as each error suggests, also by a second process',
    async () => {
      const data = join(directory, 'odd-columns.csv');
      writeFileSync(data, rows.with(0, 'when,a,b,c,d,e,f').join('\n'));
      const file = bot('odd-columns', { data });
      const refused = await inProcess(['backtest', file]);
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain('--columns time=NAME');
      const columns = ['--columns', 'time=when,open=a,high=b,low=c,close=d'];
      const { code, document } = await backtest(file, ...columns);
      expect({ code, bars: document.window.bars }).toEqual({ code: 0, bars: 399 });
      expect(await inProcess(['validate', file, ...columns])).toMatchObject({ code: 0 });
      expect(await failing(file, ...columns, '--write-lock')).toMatchObject({ exit: 2 });
      const again = ['backtest', file, '--check-determinism', '--out', fresh()];
      const { code: exit, stderr } = await serviceLocal([...again, ...columns]);
      expect(exit).toBe(0);
      expect(stderr).toMatch(/deterministic: two processes produced the same \d+ events/);
    },
  );
});

describe('gates', () => {
  test('that are not met exit with 5 and their values; JUnit has one case for each', async () => {
    const junit = join(directory, 'gates.xml');
    const { code, document } = await backtest(SMA, '--assert', 'sharpe>=0.5', '--junit', junit);
    expect(code).toBe(5);
    expect(document.gates.map(({ name, pass }) => [name, pass])).toEqual([
      ['sharpe', true],
      ['max_drawdown', true],
      ['sharpe', false],
    ]);
    const xml = readFileSync(junit, 'utf8');
    expect(xml.match(/<testcase/g)).toHaveLength(3);
    expect(xml.match(/<failure/g)).toHaveLength(1);
    const shown = await inProcess(['backtest', SMA, '--assert', 'sharpe>=0.5', '--out', fresh()]);
    expect(shown.stdout).toMatch(/sharpe >= 0\.5\s+0\.20061\s+FAIL/);
    expect(shown.stderr).toContain('gate_not_met');
  });

  test('that cannot fail are rejected before the run', async () => {
    expect(await failing(SMA, '--assert', 'max_drawdown<=0.2')).toMatchObject({ exit: 2 });
  });
});

describe('a lock', () => {
  test.runIf(isAtLength)(
    'holds until the bars of the benchmark change that the spec names',
    async () => {
      const benchmark = join(directory, 'benchmark.csv');
      const text = readFileSync(SP500, 'utf8');
      writeFileSync(benchmark, text);
      const data = `${SP500}, benchmark: ${benchmark}`;
      const file = bot('compared', { data });
      expect((await backtest(file, '--write-lock')).code).toBe(0);
      expect((await backtest(file, '--verify-lock')).code).toBe(0);
      writeFileSync(benchmark, text.replace('1455.219971,1455.219971', '1455.5,1455.5'));
      expect((await failing(file, '--verify-lock')).message).toContain(
        'the bars of the benchmark changed',
      );
    },
  );

  test('holds until spec, strategy, data or parameters change', async () => {
    const data = join(directory, 'locked.csv');
    writeFileSync(data, readFileSync(SP500, 'utf8').split('\n').slice(0, 100).join('\n'));
    const strategy = strategyFile(
      'locked',
      `if (instrument.count === 3) broker.target(instrument, 1);`,
    );
    const file = bot('locked', { data, strategy });
    expect(await failing(file, '--verify-lock')).toMatchObject({ exit: 6, code: 'lock_drift' });
    expect((await backtest(file, '--write-lock')).code).toBe(0);
    expect(await backtest(file, '--verify-lock')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('the run matches the lock: ') as string,
    });

    appendFileSync(join(directory, 'locked.ts'), '// looked at\n');
    const strategyDrift = await failing(file, '--verify-lock');
    expect(strategyDrift).toMatchObject({ exit: 6, code: 'lock_drift' });
    expect(strategyDrift.message).toContain('strategy file locked.ts: changed');

    writeFileSync(
      data,
      readFileSync(data, 'utf8').replace('1455.219971,1455.219971', '1455.5,1455.5'),
    );
    expect((await failing(file, '--verify-lock')).message).toContain('data of X: changed');
    expect((await failing(file, '--verify-lock', '-p', 'size=2')).message).toContain(
      'the run differs from the lock (with the overrides of the command line): the spec changed',
    );
  });
});

describe.runIf(isAtLength)('--check-determinism', () => {
  test('reports the first event that differs if a strategy depends on its process', async () => {
    const strategy = strategyFile(
      'process_id',
      `broker.order({ instrument, side: 'buy', quantity: 0.001 + process.pid / 1e9 });`,
    );
    const args = ['backtest', bot('process-id', { strategy }), '--json', '--check-determinism'];
    const error = errorOf(await serviceLocal(args));
    expect(error).toMatchObject({ exit: 1, code: 'not_deterministic' });
    expect(error.message).toContain('event 1:');
  });
});

/** Interrupts a process after it has written a file with this name. */
const interruptAt = (name: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import fs from 'node:fs/promises';
    import { syncBuiltinESMExports } from 'node:module';
    const { rename } = fs;
    fs.rename = async (from, to) => {
      await rename(from, to);
      if (to.endsWith(${JSON.stringify(name)})) process.kill(process.pid, 'SIGINT');
    };
    syncBuiltinESMExports();
  `)}`;

test.runIf(isAtLength).each([
  ['backtest', ['--write-lock'], 'summary.json', /are complete; --write-lock did not run$/m],
  ['backtest sweep', ['-p', 'fast=5,10', '--workers', '1'], 'trials.csv', /are complete$/m],
])(
  'a %s that is interrupted after its results are complete says so, and prints them',
  async (verb, options, last, message) => {
    const out = fresh();
    const args = [...verb.split(' '), SMA, ...options, '--json', '--out', out];
    const { code, stdout, stderr } = await runNode(['--import', interruptAt(last), BIN, ...args]);
    expect({ code, stderr }).toMatchObject({ code: 130 });
    expect(stderr).toMatch(message);
    const file = verb === 'backtest' ? 'summary.json' : 'sweep.json';
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(join(out, file), 'utf8')));
  },
);

test.runIf(isAtLength)(
  'a backtest that is interrupted when its directory exists, or differs from its lock, leaves no directory',
  async () => {
    const out = fresh();
    const interrupt = `data:text/javascript,${encodeURIComponent(`
    import fs from 'node:fs/promises';
    import { syncBuiltinESMExports } from 'node:module';
    const { rm } = fs;
    fs.rm = async (path, options) => {
      if (path.endsWith('summary.json')) process.kill(process.pid, 'SIGINT');
      await rm(path, options);
    };
    syncBuiltinESMExports();
  `)}`;
    const { code } = await runNode(['--import', interrupt, BIN, 'backtest', SMA, '--out', out]);
    expect([code, existsSync(out)]).toEqual([130, false]);
    const unlocked = await failing(bot('unlocked', {}), '--verify-lock', '--out', out);
    expect(unlocked).toMatchObject({ code: 'lock_drift' });
    expect(existsSync(out)).toBe(false);
  },
);

describe('bad input', () => {
  const csv = (name: string, text: string): string => {
    const file = join(directory, name);
    writeFileSync(file, text);
    return file;
  };

  test('reports an empty data file, and a file without the columns', async () => {
    const empty = bot('empty', { data: csv('empty.csv', '') });
    expect(await failing(empty)).toMatchObject({ exit: 3, code: 'invalid_data' });
    const odd = bot('odd', { data: csv('odd.csv', 'a,b\n1,2\n') });
    expect(await failing(odd)).toMatchObject({ exit: 3, code: 'invalid_data' });
  });

  test('a single bar has a result without ratios, with a reason for each', async () => {
    const data = csv('one.csv', 'date,open,high,low,close,volume\n2024-01-02,1,2,1,2,10\n');
    const { code, document } = await backtest(bot('one', { data }));
    expect(code).toBe(0);
    expect(document.risk.sharpe).toBeNull();
    expect(document.undefined['risk.sharpe']).toBe('too_few_returns');
    expect(document.equity.end).toBe(100_000);
  });

  test.runIf(isAtLength)(
    'many bars with the same price produce no trade and no ratio',
    async () => {
      const rows = ['time,open,high,low,close,volume'];
      for (let i = 0; i < 200_000; i += 1) rows.push(`${1_600_000_000 + i * 60},0.1,0.1,0.1,0.1,1`);
      const file = bot('flat', { data: csv('flat.csv', rows.join('\n')) });
      writeFileSync(file, readFileSync(file, 'utf8').replace('timeframe: 1d', 'timeframe: 1m'));
      const { code, document } = await backtest(file);
      expect(code).toBe(0);
      expect(document.orders.submitted).toBe(0);
      expect(document.risk.sharpe).toBeNull();
      expect(document.findings.map((finding) => finding.code)).toContain('stale_bars');
    },
  );

  test('suggests a similar name for an unknown strategy', async () => {
    const file = bot('unknown', { strategy: '{ name: sma_crosover }' });
    const { code, stderr } = await inProcess(['backtest', file]);
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /unknown\.yaml:8:\d+ \/spec\/strategy\/name unknown_strategy .*sma_crossover/,
    );
  });

  test('reports the bar and the own stack of a strategy that throws', async () => {
    const strategy = strategyFile(
      'throws',
      `if (instrument.count === 42) throw new Error('no more');`,
    );
    const error = await failing(bot('throws', { strategy }), '--out', fresh());
    expect(error).toMatchObject({ exit: 1, code: 'strategy_failed' });
    expect(error.message).toContain('bar 42 (2000-03-02T00:00:00.000Z): Error: no more');
    expect(error.message).toContain('throws.ts:');
    expect(error.message).not.toContain('engine.ts');
  });

  test.runIf(isAtLength)('stops a strategy that never returns, and names its bar', async () => {
    const strategy = strategyFile('hangs', `if (instrument.count === 300) for (;;);`);
    const args = ['--strategy-timeout-seconds', '1', '--out', fresh()];
    const error = await failing(bot('hangs', { strategy }), ...args);
    expect(error).toMatchObject({ exit: 1, code: 'strategy_timeout' });
    expect(error.message).toContain('bar 300');
  });

  test('reports a full disk as full', async () => {
    const out = fresh();
    mkdirSync(out);
    const results: Result[] = [];
    await failAt({ directory: out, at: 4, fault: 'ENOSPC for ever' }, async () => {
      results.push(await inProcess(['backtest', SMA, '--json', '--out', out]));
    });
    expect(errorOf(results[0]!)).toMatchObject({
      exit: 1,
      code: 'output_not_writable',
      message: expect.stringMatching(/^cannot write .* \(ENOSPC\)$/) as string,
      remedy: 'The disk is full: free space, or write elsewhere.',
    });
  });

  test('reports a directory given as the source as a directory, without an absurd suggestion', async () => {
    mkdirSync(join(directory, 'prices'), { recursive: true });
    for (const name of ['prices.csv.lock', 'us.csv', 'prizes.txt']) csv(name, '');
    const problemOf = async (data: string): Promise<string> => {
      const { code, stderr } = await inProcess(['backtest', bot('source', { data })]);
      expect(code).toBe(3);
      return stderr.split('\n')[1]!;
    };
    const isDirectory = await problemOf('./prices');
    expect(isDirectory).toMatch(
      /data_not_found .*prices is a directory; name a CSV or Parquet file$/,
    );
    expect(await problemOf('./eu.csv')).toMatch(/no such file: .*eu\.csv$/);
    expect(await problemOf('./prices.csv')).toMatch(/no such file: .*prices\.csv$/);
    csv('spx-daily.csv', '');
    expect(await problemOf('./spx-dialy.csv')).toMatch(/\(did you mean \.\/spx-daily\.csv\?\)$/);
    expect(await inProcess(['data', 'import', join(directory, 'prices')])).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(
        /is a directory\n→ Name a CSV or Parquet file in it\./,
      ) as string,
    });
  });

  test('rejects a symbol that leads out of a directory', async () => {
    for (const symbol of ['../X', '..', 'A/../B', '..\\X', './X']) {
      const file = bot('symbol', {});
      writeFileSync(file, readFileSync(file, 'utf8').replace('[X]', `['${symbol}']`));
      const { code, stderr } = await inProcess(['backtest', file]);
      expect({ symbol, code }).toEqual({ symbol, code: 3 });
      expect(stderr).toContain('/spec/universe/symbols/0 invalid_value must be a symbol');
    }
    const file = bot('symbol', {});
    writeFileSync(file, readFileSync(file, 'utf8').replace('[X]', "['BTC/USDT:USDT']"));
    expect(await inProcess(['validate', file])).toMatchObject({ code: 0 });
  });

  test('rejects an output directory that cannot be written before the run', async () => {
    const blocked = csv('a-file', 'not a directory');
    const error = await failing(SMA, '--out', join(blocked, 'below'));
    expect(error).toMatchObject({ exit: 1, code: 'output_not_writable' });
  });

  test('rejects a parameter that the strategy does not have', async () => {
    expect(await failing(SMA, '-p', 'fats=3')).toMatchObject({ exit: 2, code: 'usage' });
  });

  test('suggests the nearest parameter, or a valid value of the parameter', async () => {
    const misspelled = await inProcess(['backtest', SMA, '-p', 'fsat=3']);
    expect(misspelled.stderr).toContain('\n→ Did you mean fast?\n');
    const text = await inProcess(['backtest', SMA, '-p', 'fast=abc']);
    expect(text.stderr).toMatch(
      /parameter fast: must be a number.*\n→ Change the value, for example to \d+\.\n/,
    );
  });

  test('names the bot file in a directory given instead of it', async () => {
    const place = join(directory, 'my-bot');
    mkdirSync(place);
    writeFileSync(join(place, 'bot.yaml'), '');
    const { code, stderr } = await inProcess(['backtest', place]);
    expect(code).toBe(3);
    expect(stderr).toBe(
      `error file_not_found: ${place} is a directory, not a bot file\n→ Did you mean ${place}/bot.yaml?\n`,
    );
  });

  test('calls its missing argument a file', async () => {
    const { code, stderr } = await inProcess(['backtest']);
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("missing required argument 'file'") as string,
    });
  });
});
