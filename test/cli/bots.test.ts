import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { Context, Io } from '../../src/cli/verb.ts';
import { verb as init } from '../../src/cli/verbs/init.ts';
import { directoryWith, VALID } from '../bots/specs.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { createTerminal } from './terminal.ts';
import { isAtLength } from '../length.ts';

const NO_OPTIONS = {
  name: undefined,
  slug: undefined,
  strategy: undefined,
  data: undefined,
  symbol: undefined,
  columns: undefined,
  repair: undefined,
  cash: undefined,
  force: false,
};

const EXAMPLES = join(import.meta.dirname, '../../examples');

const SPX = 'date,open,high,low,close,volume\n2000-01-03,1,2,1,2,10\n2020-04-17,1,2,1,2,10\n';

/** Runs `validate` in this process, which must be in the directory to which paths of files are relative. */
async function validateIn(cwd: string, ...args: string[]): Promise<Result> {
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return await inProcess(['validate', ...args], { cwd });
  } finally {
    process.chdir(before);
  }
}

describe('validate', () => {
  it.runIf(isAtLength)(
    'prints problems of all parts at once: spec, strategy, risk, metrics, models and data',
    async () => {
      const cwd = directoryWith({
        'bot.yaml': `apiVersion: bots/v1
kind: Bot
metadata: {name: Ten faults, slug: Ten Faults}
spec:
  kind: trading
  universe: {symbols: [SPX, NDX, DAX], currency: USD}
  data:
    sources: {SPX: ./spx.csv, NDX: ./missing.csv, DAX: catalog://DAX}
    timeframe: 1x
  strategy: {module: ./own.ts, params: {fast: 0, slwo: 3}}
  engine: {cash: 1000, sede: 7}
  risk: {max_order_value: lots, max_drawdown_pct: 3}
  metrics: [{name: sharp, min: 1}, {name: win_rate, min: 2}]
  ml_models: [{name: rise, path: ./rise.onnx, digest: 'sha256:00', inputs: [{column: close}], outputs: [{name: score}]}]
`,
        'own.ts': `import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: 'own',
  description: 'Buys one of two.',
  params: { fast: integer({ default: 10, min: 1 }), slow: integer({ default: 30, min: 2 }) },
  instruments: { min: 1, max: 2 },
  create: () => ({ onBar() {} }),
});
`,
        'spx.csv': `${SPX.replace('2020', '2001')}2001-04-18,1,1,2,1,1\n2001-04-19,x,1,1,1,1\n`,
      });
      const { code, stdout, stderr } = await validateIn(cwd, 'bot.yaml');
      const lines = stdout.trimEnd().split('\n');
      expect(lines.map((line) => line.replace(`${cwd}/`, '').split(' ').slice(0, 3))).toEqual([
        ['bot.yaml:3:36', '/metadata/slug', 'invalid_value'],
        ['bot.yaml:6:23', '/spec/universe/symbols', 'wrong_symbol_count'],
        ['bot.yaml:8:36', '/spec/data/sources/NDX', 'data_not_found'],
        ['bot.yaml:8:56', '/spec/data/sources/DAX', 'data_not_found'],
        ['bot.yaml:9:16', '/spec/data/timeframe', 'invalid_value'],
        ['bot.yaml:10:47', '/spec/strategy/params/fast', 'invalid_param'],
        ['bot.yaml:10:50', '/spec/strategy/params/slwo', 'unknown_param'],
        ['bot.yaml:11:18', '/spec/engine/cash', 'unquoted_money'],
        ['bot.yaml:11:24', '/spec/engine/sede', 'unknown_field'],
        ['bot.yaml:12:27', '/spec/risk/max_order_value', 'invalid_value'],
        ['bot.yaml:12:51', '/spec/risk/max_drawdown_pct', 'invalid_value'],
        ['bot.yaml:13:20', '/spec/metrics/0/name', 'unknown_metric'],
        ['bot.yaml:13:58', '/spec/metrics/1/min', 'gate_cannot_pass'],
        ['bot.yaml:14:34', '/spec/ml_models/0/path', 'model_not_found'],
        ['bot.yaml:14:55', '/spec/ml_models/0/digest', 'invalid_value'],
        ['spx.csv:4:1', 'high_below_low', 'row'],
        ['spx.csv:5:1', 'unreadable_price', 'row'],
        ['note:', 'bot.yaml:', 'SPX:'],
      ]);
      expect(lines.at(-1)).toMatch(/^note: bot\.yaml: SPX: Write numbers as 1100\.50/);
      expect(stderr).not.toContain('note:');
      expect(stderr).toContain('error invalid_spec: 17 problems in 1 of 1 file');
      expect(code).toBe(3);
      const json = await validateIn(cwd, 'bot.yaml', '--json');
      expect(json.code).toBe(3);
      const [report] = (JSON.parse(json.stdout) as { files: { problems: object[] }[] }).files;
      expect(report!.problems).toHaveLength(17);
      for (const problem of report!.problems) {
        expect(problem).toMatchObject({
          file: expect.any(String) as string,
          line: expect.any(Number) as number,
          column: expect.any(Number) as number,
        });
      }
    },
  );

  it.runIf(isAtLength)(
    'rejects a window without bars, and notes a window that extends beyond the bars',
    async () => {
      const cwd = directoryWith({
        'none.yaml': VALID.replace('2000-01-03, to: 2020-04-17', '2021-01-01'),
        'beyond.yaml': VALID.replace('2000-01-03', '1990-01-01'),
        'spx.csv': readFileSync(join(EXAMPLES, 'data/sp500-daily.csv'), 'utf8'),
      });
      const none = await validateIn(cwd, 'none.yaml');
      expect(none.stdout).toMatch(
        /^none\.yaml:7:18 \/spec\/data\/source invalid_data .* has no rows from 2021-01-01: it begins/,
      );
      expect(none.code).toBe(3);
      const beyond = await validateIn(cwd, 'beyond.yaml');
      expect(beyond).toMatchObject({ code: 0, stdout: 'beyond.yaml: valid\n' });
      expect(beyond.stderr).toContain(
        'note: beyond.yaml: The window extends beyond the data: from is 1990-01-01, but the first bar',
      );
    },
  );

  it('prints every problem of every file on stdout, one line each, and exits 3', async () => {
    const cwd = directoryWith({
      'good.yaml': VALID,
      'bad.yaml': VALID.replace('seed: 7', 'sede: 7').replace('"0.001"', '0.001'),
      'broken.yaml': 'a: [',
      'spx.csv': SPX,
    });
    const files = ['good.yaml', 'bad.yaml', 'broken.yaml', 'none.yaml'];
    const { code, stdout, stderr } = await validateIn(cwd, ...files);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ').slice(0, 3).join(' '))).toEqual([
      'good.yaml: valid',
      'bad.yaml:13:34 /spec/engine/fees/rate unquoted_money',
      'bad.yaml:16:5 /spec/engine/sede unknown_field',
      'broken.yaml:1:5 yaml_syntax Flow',
      'none.yaml file_not_found cannot',
    ]);
    expect(stderr).toBe(
      'note: good.yaml: The indicators need 30 bars before the window, and the data have: SPX 0.\n' +
        'error invalid_spec: 4 problems in 3 of 4 files\n',
    );
    expect(code).toBe(3);
  });

  it('prints one document with --json', async () => {
    const cwd = directoryWith({ 'bot.yaml': VALID.replace('SPX]', 'SPX, SPX]') });
    const { code, stdout } = await validateIn(cwd, '--json', 'bot.yaml');
    const { files } = JSON.parse(stdout) as { files: { problems: { code: string }[] }[] };
    expect(files).toMatchObject([{ file: 'bot.yaml', valid: false, hash: null }]);
    expect(files[0]!.problems).toContainEqual({
      file: 'bot.yaml',
      line: 6,
      column: 29,
      pointer: '/spec/universe/symbols/1',
      code: 'duplicate_value',
      message: 'duplicate symbol',
    });
    expect(code).toBe(3);
  });

  it('finds the data and loads the strategy', async () => {
    const strategy = '{name: sma_crossover, params: {fast: 10, slow: 30}}';
    const cwd = directoryWith({
      'bot.yaml': VALID.replace('./spx.csv', 'catalog://SPX'),
      'own.yaml': VALID.replace(strategy, '{module: ./own.ts}'),
      'own.ts': 'export const forgotten = 1;\n',
    });
    const { stdout } = await validateIn(cwd, 'bot.yaml', 'own.yaml');
    expect(stdout).toMatch(/^bot\.yaml:7:18 \/spec\/data\/source data_not_found the catalogue/m);
    expect(stdout).toMatch(/^own\.yaml:7:18 \/spec\/data\/source data_not_found no such file/m);
    expect(stdout).toMatch(/^own\.yaml:8:22 \/spec\/strategy\/module invalid_strategy .*own\.ts/m);
  });

  it.runIf(isAtLength)('reports fields that are not used yet', async () => {
    const spec = VALID.replace('kind: trading', 'kind: research').replace(
      '  metrics:',
      '  deployment: {target: k8s}\n  agents: [{role: b}]\n  metrics:',
    );
    const cwd = directoryWith({ 'bot.yaml': spec, 'plain.yaml': VALID, 'spx.csv': SPX });
    const { code, stdout, stderr } = await validateIn(cwd, '--json', 'bot.yaml', 'plain.yaml');
    const note = 'kind: research, agents, deployment: a backtest does not use this';
    expect(code).toBe(0);
    expect(stderr).toContain(`note: bot.yaml: ${note}\n`);
    expect(stderr).not.toContain(`note: plain.yaml: ${note}\n`);
    expect(JSON.parse(stdout)).toMatchObject({
      files: [
        { notes: expect.arrayContaining([note]) },
        { notes: expect.not.arrayContaining([note]) },
      ],
    });
  });

  it('prints the version of a valid file', async () => {
    const file = join(EXAMPLES, 'custom-strategy.yaml');
    const { code, stdout } = await inProcess(['validate', '--json', file]);
    const { files } = JSON.parse(stdout) as { files: { hash: string }[] };
    expect(files).toMatchObject([{ file, valid: true, problems: [] }]);
    expect(files[0]!.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(code).toBe(0);
  });
});

describe('schema', () => {
  it('prints the same JSON Schema with and without --json', async () => {
    const [plain, json] = await Promise.all([
      inProcess(['schema']),
      inProcess(['schema', '--json']),
    ]);
    expect(plain.stdout).toBe(json.stdout);
    expect(JSON.parse(plain.stdout)).toMatchObject({ $id: 'urn:service-local:bot:v1' });
  });
});

describe('init', () => {
  it('writes a bot that is valid and can be run immediately', async () => {
    const cwd = directoryWith({});
    const { code, stdout } = await inProcess(['init', 'first-bot', '--no-input'], { cwd });
    expect(code).toBe(0);
    expect(stdout.split('\n')).toContain('first-bot/bot.yaml');
    expect(stdout).toContain('  cd first-bot\n  service-local backtest bot.yaml\n');

    const bot = join(cwd, 'first-bot');
    const validated = await validateIn(bot, 'bot.yaml');
    expect(validated).toEqual({
      code: 0,
      stdout: 'bot.yaml: valid\n',
      stderr: `note: bot.yaml: The indicators need 30 bars before the window, and the data have: SPX 0.
note: bot.yaml: All indicators are ready at the first bar if data.from is 2000-02-15 or later.
`,
    });
    const run = await inProcess(['backtest', join(bot, 'bot.yaml'), '--json'], { cwd: bot });
    expect(JSON.parse(run.stdout)).toMatchObject({
      bot: { name: 'First bot', slug: 'first-bot' },
      window: { bars: 5105 },
      lock: { strategy: { 'strategy.ts': expect.stringMatching(/^[0-9a-f]{64}$/) as string } },
    });
    expect(run.code).toBe(0);
  });

  it('quotes a directory with a space in the next command', async () => {
    const cwd = directoryWith({});
    const { stdout } = await inProcess(['init', 'My Bot', '--no-input'], { cwd });
    expect(stdout).toContain("  cd 'My Bot'\n");
  });

  it('uses your own prices, detects their timeframe, and refuses to overwrite files', async () => {
    const csv = readFileSync(join(EXAMPLES, 'data/sp500-daily.csv'), 'utf8').split('\n');
    const cwd = directoryWith({ 'prices/btc usd.csv': csv.slice(0, 500).join('\n') });
    const args = ['init', 'bots/b', '--data', 'prices/btc usd.csv', '--strategy', 'rsi_reversion'];
    const more = ['--name', 'Mean reversion', '--cash', '2500.50'];
    const { code, stdout } = await inProcess([...args, ...more, '--json'], { cwd });
    const { directory, files } = JSON.parse(stdout) as { directory: string; files: string[] };
    expect({ code, directory, files: files.length }).toEqual({
      code: 0,
      directory: join(cwd, 'bots/b'),
      files: 3,
    });
    const spec = readFileSync(join(directory, 'bot.yaml'), 'utf8');
    expect(spec).toContain('symbols: ["BTC_USD"]');
    expect(spec).toContain('source: "../../prices/btc usd.csv", timeframe: 1d');
    expect(spec).toContain('cash: "2500.50"');
    expect(spec).toContain('slug: "mean-reversion"');

    const again = await inProcess(args, { cwd });
    expect(again.code).toBe(6);
    expect(again.stderr).toMatch(/^error conflict: files exist already: .*bot\.yaml/);
    writeFileSync(join(directory, 'bot.yaml'), '');
    expect((await inProcess([...args, '--force'], { cwd })).code).toBe(0);
  });

  it.runIf(isAtLength)(
    'reads prices with --columns and --repair, and writes both into the bot',
    async () => {
      const opens = [1, 1, 9, 1, 1];
      const days = opens.map((open, day) => `2000-01-0${3 + day},${open},2,1,2,10`);
      const rows = ['when,first,high,low,close,volume', ...days].join('\n');
      const cwd = directoryWith({ 'odd.csv': rows });
      const args = ['init', 'b', '--data', 'odd.csv', '--strategy', 'buy_and_hold', '--no-input'];
      const rejected = await inProcess(args, { cwd });
      expect(rejected.code).toBe(3);
      expect(rejected.stderr).toContain('--columns time=NAME,open=NAME');
      const reading = ['--columns', 'time=when,open=first', '--repair', 'drop'];
      expect(await inProcess([...args, ...reading], { cwd })).toMatchObject({ code: 0 });
      const { code, stdout } = await inProcess(['backtest', 'b/bot.yaml', '--json'], { cwd });
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({
        code: 0,
        window: { bars: 4 },
      });
    },
  );

  it('prompts on stderr for values without an option until the answer is valid', async () => {
    // Node's readline has no backspace on a dumb terminal.
    vi.stubEnv('TERM', 'xterm');
    const cwd = directoryWith({});
    const answers: readonly (readonly [string, string])[] = [
      ['Name of the bot?', 'Nice bot\r'],
      ['Slug, for files and commands?', 'Not So\r'],
      ['must be lower-case words', '\x7F\x7F\x7F\x7F\x7F\x7Fso\r'],
      ['CSV or Parquet file', 'none.csv\r'],
      ['no such file', `${'\x7F'.repeat(8)}\r`],
      ['Symbol of these prices?', '\r'],
      ['Starting cash?', '\r'],
    ];
    const { stdin, stderr, asked } = createTerminal(answers);
    const io = { ...process, stdin, stderr, env: process.env, cwd: () => cwd } as unknown as Io;
    const context = { cwd, io, interactive: true, settings: { catalogue_dir: cwd } };
    const options = { ...NO_OPTIONS, strategy: 'buy_and_hold' };
    const { data } = await init.run(context as unknown as Context, { dir: 'bot' }, options);
    expect(asked()).toBe(answers.length);
    expect(data).toMatchObject({ directory: join(cwd, 'bot') });
    const spec = readFileSync(join(cwd, 'bot/bot.yaml'), 'utf8');
    expect(spec).toContain('name: "Nice bot"\n  slug: "so"');
    expect(spec).toContain('strategy: { name: "buy_and_hold" }');
    vi.unstubAllEnvs();
  });

  it.each([
    [['--slug', 'My Bot'], 2, /--slug must be lower-case words joined by hyphens, not "My Bot"/],
    [['--cash', 'much', '--symbol', 'a b'], 2, /--symbol must be .*; --cash must be a decimal/],
    [['--strategy', 'pairs_reversion'], 2, /pairs_reversion/],
    [['--data', 'none.csv'], 3, /none\.csv/],
  ])('refuses %j with exit code %i', async (options, exitCode, message) => {
    const cwd = directoryWith({});
    const { code, stderr } = await inProcess(['init', 'b', ...options], { cwd });
    expect(stderr).toMatch(message);
    expect(code).toBe(exitCode);
  });
});
