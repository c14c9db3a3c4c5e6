import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileThread } from '../../src/backtest/file-thread.ts';
import { csvCell } from '../../src/backtest/result-csv.ts';
import { TRADE_COLUMNS, type TableFiles } from '../../src/backtest/run-tables.ts';
import { prepareDirectory, removeOldResult } from '../../src/backtest/run-files.ts';
import { writeTableFiles } from '../../src/backtest/table-files.ts';
import { tradeTable, writeTrades } from '../../src/backtest/trade-files.ts';
import { writeText } from '../../src/backtest/write-text.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { Journal } from '../../src/engine/journal.ts';
import type { Trade } from '../../src/engine/round-trip.ts';
import { quoteText, withDuckDB } from '../../src/market/duckdb.ts';
import { inProcess } from '../cli/in-process.ts';
import { createTerminal } from '../cli/terminal.ts';
import { isAtLength } from '../length.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-files-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('a text', () => {
  it('is written completely, with its sha256, from any number of parts', async () => {
    const parts = Array.from({ length: 60_000 }, (_, i) => `line ${i}\n`);
    const file = join(directory, 'file');
    const sha256 = await writeText(file, parts);
    expect(readFileSync(file, 'utf8')).toBe(parts.join(''));
    expect(sha256).toBe(createHash('sha256').update(parts.join('')).digest('hex'));
  });

  it('is not written through a symbolic link', async () => {
    const victim = join(directory, 'victim');
    writeFileSync(victim, 'precious');
    symlinkSync(victim, join(directory, `file.${process.pid}.tmp`));
    symlinkSync(victim, join(directory, `.probe-${process.pid}`));
    await prepareDirectory(directory);
    await writeText(join(directory, 'file'), ['new']);
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(readdirSync(directory)).toContain(`.probe-${process.pid}`);
  });

  it('that cannot be written is reported without an unrelated option', async () => {
    const refused = writeText(join(directory, 'none/file'), ['']);
    await expect(refused).rejects.toMatchObject({
      code: 'output_not_writable',
      message: expect.stringMatching(/^cannot write .*none\/file \(ENOENT\)$/) as string,
      remedy: 'Choose a directory that exists and that you may write to.',
    });
  });
});

describe('a table of a run', () => {
  // Shorter tables are written without a thread.
  const long = Float64Array.from({ length: 200_000 }, (_, at) => at);
  const tablesOf = (values: Float64Array) => ({
    curve: { time: values, equity: values, drawdown: values },
    journal: Journal.empty(['X']).data,
    trades: tradeTable({ trades: [], openTrades: [] }),
  });
  const writeIn = async (write: (tables: TableFiles) => Promise<unknown>, hasCsv: boolean) => {
    const own = mkdtempSync(join(directory, 'tables-'));
    const hashes = await write({ ...tablesOf(long), directory: own, hasCsv });
    const names = readdirSync(own).toSorted();
    return { hashes, names, files: names.map((name) => readFileSync(join(own, name))) };
  };

  it.runIf(isAtLength)('is the same from a thread of its own', async () => {
    const thread = new FileThread();
    for (const hasCsv of [true, false]) {
      expect(await writeIn((tables) => thread.write(tables), hasCsv)).toStrictEqual(
        await writeIn(writeTableFiles, hasCsv),
      );
    }
    await thread.end();
  });

  it.runIf(isAtLength)('that a thread cannot write is reported', async () => {
    const thread = new FileThread();
    const none = { ...tablesOf(long), directory: join(directory, 'none'), hasCsv: false };
    await expect(thread.write(none)).rejects.toMatchObject({
      code: 'output_not_writable',
      message: expect.stringMatching(/^cannot write .*none\//) as string,
    });
    await thread.end();
  });
});

describe('the trades', () => {
  const first: Trade = {
    id: 1,
    symbol: '=X, "Y"',
    side: 'long',
    entry_time: Date.UTC(2020, 0, 2),
    exit_time: Date.UTC(2020, 0, 6, 12),
    bars: 2,
    quantity: 0.1,
    entry_price: 100,
    exit_price: 110,
    pnl: 0.98,
    return: 0.098,
    fees: 0.02,
  };
  const rowsOf = (path: string) =>
    withDuckDB(path, async (connection) => {
      const columns = await connection.runAndReadAll(`DESCRIBE FROM ${quoteText(path)}`);
      const types = columns.getRowObjects().map((row) => [row['column_name'], row['column_type']]);
      const rows = await connection.runAndReadAll(
        `SELECT * REPLACE (epoch_ms(entry_time) AS entry_time, epoch_ms(exit_time) AS exit_time)
         FROM ${quoteText(path)}`,
      );
      return { types: Object.fromEntries(types) as object, rows: rows.getRowObjectsJson() };
    });

  it('are typed columns in trades.parquet, closed ones first, with the texts of the run', async () => {
    // More than one chunk of rows.
    const trades = Array.from({ length: 3000 }, (_, at) => ({ ...first, id: at + 1 }));
    const open: Trade = { ...first, id: 3001, symbol: 'Z', side: 'short', pnl: -1 };
    await writeTrades(directory, tradeTable({ trades, openTrades: [open] }));
    const { types, rows } = await rowsOf(join(directory, 'trades.parquet'));
    expect(types).toMatchObject({
      entry_time: 'TIMESTAMP',
      exit_time: 'TIMESTAMP',
      symbol: 'VARCHAR',
      id: 'DOUBLE',
      pnl: 'DOUBLE',
    });
    const plain = (trade: Trade, status: string) => ({
      ...trade,
      entry_time: String(trade.entry_time),
      exit_time: String(trade.exit_time),
      status,
    });
    expect(rows).toEqual([...trades.map((trade) => plain(trade, 'closed')), plain(open, 'open')]);
  });

  it('are a table without rows if the run has no trades', async () => {
    await writeTrades(directory, tradeTable({ trades: [], openTrades: [] }));
    const { types, rows } = await rowsOf(join(directory, 'trades.parquet'));
    expect(Object.keys(types)).toEqual([...TRADE_COLUMNS]);
    expect(rows).toEqual([]);
  });
});

describe('the result of an earlier run', () => {
  it('is removed if it exists', async () => {
    const file = join(directory, 'gates.xml');
    await removeOldResult(file);
    writeFileSync(file, '<testsuite/>');
    await removeOldResult(file);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('cannot be removed from a directory that is not writable', async () => {
    const refused = removeOldResult(join(directory, 'none/gates.xml'));
    await expect(refused).rejects.toMatchObject({
      code: 'output_not_writable',
      remedy: expect.not.stringContaining('Choose another directory') as string,
    });
  });
});

describe('a directory for results', () => {
  it('is created, and left unchanged if it exists', async () => {
    await prepareDirectory(join(directory, 'a/b'));
    expect(existsSync(join(directory, 'a/b'))).toBe(true);
    writeFileSync(join(directory, 'a/b/summary.json'), '{}');
    await prepareDirectory(join(directory, 'a/b'));
    expect(readdirSync(join(directory, 'a/b'))).toEqual(['summary.json']);
  });

  it('is rejected if it is a file', async () => {
    writeFileSync(join(directory, 'file'), '');
    await expect(prepareDirectory(join(directory, 'file'))).rejects.toMatchObject({
      code: 'output_not_writable',
      remedy: expect.stringContaining('Choose another directory') as string,
    });
  });
});

describe('a cell of CSV', () => {
  it.each([
    ['SPX', 'SPX'],
    ['a,"b"', '"a,""b"""'],
    [-1.5, '-1.5'],
    [true, 'true'],
    ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(1)', "'@SUM(1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['a=1', 'a=1'],
  ])('turns %j into %j', (value, cell) => {
    expect(csvCell(value)).toBe(cell);
  });
});

/** A process that writes a file until it is killed. */
async function endlessWriter(path: string) {
  const module = new URL('../../src/base/atomic-file.ts', import.meta.url).href;
  const program = `
    import { writeAtomically } from ${JSON.stringify(module)};
    async function* parts() {
      yield Buffer.from('half');
      process.send('writing');
      await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
    }
    await writeAtomically(${JSON.stringify(path)}, parts());`;
  const file = join(directory, 'writer.mjs');
  writeFileSync(file, program);
  const child = fork(file, { stdio: 'ignore' });
  await once(child, 'message');
  return async (): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
}

it.runIf(isAtLength)(
  'removes files of a killed run beside later results, but not files that a running process writes',
  async () => {
    const out = join(directory, 'out');
    mkdirSync(out);
    const [killed, alive] = await Promise.all(
      ['events.ndjson', 'sweep.json'].map((name) => endlessWriter(join(out, name))),
    );
    await killed!();
    const temporaries = (): string[] => readdirSync(out).filter((name) => name.endsWith('.tmp'));
    expect(temporaries()).toHaveLength(2);
    const spec = join(import.meta.dirname, '../../examples/sma-crossover.yaml');
    const run = (): Promise<unknown> => inProcess(['backtest', spec, '--out', out]);
    expect(await run()).toMatchObject({ code: 0 });
    expect(temporaries()).toEqual([expect.stringMatching(/^sweep\.json\./)]);
    await alive!();
    expect(await run()).toMatchObject({ code: 0 });
    const { files } = JSON.parse(readFileSync(join(out, 'summary.json'), 'utf8')) as Summary;
    expect(readdirSync(out).sort()).toEqual(files);
  },
);

it.runIf(isAtLength)(
  'writes the equity of a long run as Parquet, and also as CSV with --equity csv',
  async () => {
    const steps = 200_001;
    const lines = Array.from(
      { length: steps },
      (_, i) => `${(1e9 + i * 60) * 1000},${100 + (i % 7)}`,
    );
    writeFileSync(join(directory, 'bars.csv'), `time,close\n${lines.join('\n')}\n`);
    const spec = {
      kind: 'trading',
      universe: { symbols: ['X'], currency: 'USD' },
      data: { source: './bars.csv', timeframe: '1m' },
      strategy: { name: 'buy_and_hold' },
      engine: { cash: '100000' },
    };
    const metadata = { name: 'Long', slug: 'long' };
    const bot = join(directory, 'bot.json');
    writeFileSync(bot, JSON.stringify({ apiVersion: 'bots/v1', kind: 'Bot', metadata, spec }));
    const out = join(directory, 'out');
    const run = async (...options: string[]): Promise<Summary> => {
      const { stdout } = await inProcess(['backtest', bot, '--out', out, '--json', ...options]);
      const summary = JSON.parse(stdout) as Summary;
      expect(readdirSync(out).sort()).toEqual(summary.files);
      return summary;
    };

    const both = await run('--equity', 'csv');
    const text = readFileSync(join(out, 'equity.csv'));
    expect(both.hashes.equity).toBe(createHash('sha256').update(text).digest('hex'));
    expect(text.toString().split('\n')).toHaveLength(steps + 2);
    const curve = await withDuckDB(join(out, 'equity.csv'), async (connection) => {
      const [csv, parquet] = ['csv', 'parquet'].map((name) =>
        quoteText(join(out, `equity.${name}`)),
      );
      const equal = ['time', 'equity', 'drawdown']
        .map((name) => `c.${name} = p.${name}`)
        .join(' AND ');
      const { rows } = (
        await connection.runAndReadAll(
          `SELECT count(*)::INT AS rows FROM read_csv(${csv}) c POSITIONAL JOIN ${parquet} p WHERE ${equal}`,
        )
      ).getRowObjects()[0]!;
      expect(rows).toBe(steps);
      const columns = await connection.runAndReadAll(
        `SELECT epoch_ms(time)::DOUBLE, equity FROM ${parquet}`,
      );
      return columns.getColumns() as number[][];
    });

    const alone = await run();
    expect(both.files.filter((name) => !alone.files.includes(name))).toEqual(['equity.csv']);
    const hash = createHash('sha256');
    for (const column of curve) hash.update(new Uint8Array(Float64Array.from(column).buffer));
    expect(alone.hashes).toEqual({ ...both.hashes, equity: hash.digest('hex') });
    const report = readFileSync(join(out, 'report.html'), 'utf8');
    expect(report).toContain('equity.parquet has equity and drawdown at all of them');
  },
);

it.runIf(isAtLength)(
  'a backtest shows the progress of reading, running and writing on a terminal',
  async () => {
    const person = createTerminal([]);
    Object.assign(person.stderr, { isTTY: true });
    const bot = join(import.meta.dirname, '../../examples/sma-crossover.yaml');
    await inProcess(['backtest', bot, '--out', join(directory, 'out')], { person });
    expect(person.shown()).toMatch(
      /reading sp500-daily.csv ░+ 0 %[^]*backtest ░+ 0 %[^]*writing ░+ 0 %/,
    );
  },
);
