import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  botFiles,
  namesFor,
  planProblems,
  refuseToOverwrite,
  slugOf,
  writeBot,
  type BotPlan,
} from '../../src/bots/init.ts';
import { loadBot } from '../../src/bots/load-bot.ts';
import { verb } from '../../src/cli/verbs/init.ts';
import { directoryWith } from './specs.ts';
import { isAtLength } from '../length.ts';

const ROOT = join(import.meta.dirname, '../..');
const PLAN: BotPlan = {
  name: 'My bot',
  slug: 'my-bot',
  strategy: 'module',
  symbol: 'SPX',
  cash: '5',
};

describe('a new bot', () => {
  it.each(verb.options!.strategy.choices)('has no problems with the strategy %s', (strategy) => {
    const directory = directoryWith({});
    writeBot(directory, botFiles({ ...PLAN, strategy }));
    const bot = loadBot(join(directory, 'bot.yaml'));
    expect(bot.strategy.name).toBe(strategy === 'module' ? 'my_strategy' : strategy);
    expect(bot.spec.metadata).toEqual({ name: 'My bot', slug: 'my-bot' });
    expect(bot.data).toEqual({ SPX: join(directory, 'data/sp500-daily.csv') });
  });

  it.runIf(isAtLength)('has a strategy without type errors', () => {
    const directory = directoryWith({});
    writeBot(directory, botFiles(PLAN));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', '.'], {
      cwd: directory,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });

  it('lists every parameter of its strategy', () => {
    const bot = botFiles({ ...PLAN, strategy: 'rsi_reversion' }).get('bot.yaml');
    expect(bot).toContain('params: { period: 14, lower: 30, upper: 70 }');
  });

  it('includes a strategy file and data only if the plan needs them', () => {
    const withData = { ...PLAN, strategy: 'buy_and_hold', source: '../x.csv', timeframe: '1h' };
    expect([...botFiles(withData).keys()]).toEqual(['bot.yaml', 'README.md', '.gitignore']);
    expect(botFiles(withData).get('bot.yaml')).toContain('source: "../x.csv", timeframe: 1h');
    expect([...botFiles(PLAN).keys()]).toContain('strategy.ts');
  });

  it('may have any name that a spec allows', () => {
    const names = ['yes', 'a: b # c', '"quoted" {flow}', 'né', '- [x]'];
    expect(names.flatMap((name) => planProblems({ ...PLAN, name }))).toEqual([]);
    const wrong = { ...PLAN, name: '', slug: 'My Bot', symbol: 'a b', cash: '0' };
    expect(planProblems(wrong).map(({ pointer }) => pointer)).toEqual([
      '/metadata/name',
      '/metadata/slug',
      '/spec/universe/symbols/0',
      '/spec/engine/cash',
    ]);
  });

  it('has a README with three commands, the last of which sweeps the first parameter', () => {
    const readme = (strategy: string) => botFiles({ ...PLAN, strategy }).get('README.md');
    expect(readme('module')).toContain('service-local validate bot.yaml\n');
    expect(readme('module')).toContain('service-local backtest bot.yaml\n');
    expect(readme('module')).toContain('backtest sweep bot.yaml -p fast=5:20:5\n');
    expect(readme('buy_and_hold')).toContain('backtest bot.yaml --json\n');
  });

  it('does not overwrite existing files', () => {
    const directory = directoryWith({ 'strategy.ts': 'mine', 'other.ts': '' });
    const names = botFiles(PLAN).keys();
    expect(() => refuseToOverwrite(directory, names)).toThrow(
      expect.objectContaining({
        code: 'conflict',
        message: `files exist already: ${directory}/strategy.ts`,
      }),
    );
    expect(() => refuseToOverwrite(directory, ['new.ts'])).not.toThrow();
  });

  it('reports output_not_writable if its directory cannot be created', () => {
    const directory = directoryWith({ file: '' });
    expect(() => writeBot(join(directory, 'file/inside'), botFiles(PLAN))).toThrow(
      expect.objectContaining({ code: 'output_not_writable' }),
    );
  });
});

describe('names', () => {
  it.each([
    ['My bot', 'my-bot'],
    ['  Über-Häuser: 100 %  ', 'uber-hauser-100'],
    ['数据', 'bot'],
    ['x'.repeat(80), 'x'.repeat(64)],
    [`${'x'.repeat(63)} y`, 'x'.repeat(63)],
  ])('%j becomes the slug %j', (name, slug) => {
    expect(slugOf(name)).toBe(slug);
  });

  it('are derived from the directory', () => {
    expect(namesFor('/home/a/my_first-bot')).toEqual({
      name: 'My first bot',
      slug: 'my-first-bot',
    });
    expect(namesFor('/')).toEqual({ name: 'Bot', slug: 'bot' });
  });
});
