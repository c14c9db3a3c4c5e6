import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkBot, loadBot } from '../../src/bots/load-bot.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { formatProblem } from '../../src/base/format-problem.ts';
import { directoryWith, VALID } from './specs.ts';

const STRATEGY = `
import { defineStrategy, integer } from 'service-local/strategy';
export default defineStrategy({
  name: 'mine',
  description: 'Mine.',
  params: { bars: integer({ default: 3, min: 1 }) },
  instruments: { min: 2, max: 2 },
  create: () => ({ onBar() {} }),
});
`;
const BUILT_IN = 'name: sma_crossover, params: {fast: 10, slow: 30}';

function problemsOf(files: Readonly<Record<string, string>>): string[] {
  const { bot, problems } = checkBot(join(directoryWith(files), 'bot.yaml'));
  expect(bot === undefined).toBe(problems.length > 0);
  return problems.map(({ pointer, code }) => `${pointer} ${code}`);
}

function errorOf(act: () => unknown): ServiceError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    return error as ServiceError;
  }
  throw new Error('nothing was thrown');
}

describe('a bot', () => {
  it('has its strategy, all parameters and the paths of its data', () => {
    const directory = directoryWith({
      'bots/bot.yaml': VALID.replace('./spx.csv', '../spx.csv').replace('fast: 10, ', ''),
      'spx.csv': '',
    });
    const bot = loadBot(join(directory, 'bots/bot.yaml'));
    expect(bot.strategy.name).toBe('sma_crossover');
    expect(bot.strategyFiles).toBeUndefined();
    expect(bot.params).toEqual({ fast: 10, slow: 30 });
    expect(bot.data).toEqual({ SPX: join(directory, 'spx.csv') });
    expect(bot.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  it('can have a custom strategy, which is checked like a built-in one', () => {
    const own = VALID.replace(BUILT_IN, 'module: ./lib/mine.ts, params: {brs: 1}');
    expect(problemsOf({ 'bot.yaml': own, 'lib/mine.ts': STRATEGY, 'spx.csv': '' })).toEqual([
      '/spec/universe/symbols wrong_symbol_count',
      '/spec/strategy/params/brs unknown_param',
    ]);
    const pair = own
      .replace('brs', 'bars')
      .replace('[SPX]', '[SPX, NDX]')
      .replace('source: ./spx.csv', 'sources: {NDX: ./n.csv, SPX: ./s.csv}');
    const directory = directoryWith({
      'bot.yaml': pair,
      'lib/mine.ts': STRATEGY,
      'n.csv': '',
      's.csv': '',
    });
    const bot = loadBot(join(directory, 'bot.yaml'));
    expect(Object.keys(bot.strategyFiles!)).toEqual(['lib/mine.ts']);
    expect(Object.keys(bot.data)).toEqual(['SPX', 'NDX']);
  });

  it('has a problem if the check of its strategy throws', () => {
    const own = VALID.replace(BUILT_IN, 'module: ./mine.ts');
    const throwing = STRATEGY.replace(
      '  instruments: { min: 2, max: 2 },',
      '  check() { throw new Error("oops"); },',
    );
    const files = { 'bot.yaml': own, 'mine.ts': throwing, 'spx.csv': '' };
    expect(problemsOf(files)).toEqual(['/spec/strategy/params invalid_param']);
  });

  it('can use data of the catalogue', () => {
    const spec = VALID.replace('./spx.csv', 'catalog://SPX');
    const bot = loadBot(join(directoryWith({ 'bot.yaml': spec }), 'bot.yaml'));
    expect(bot.data).toEqual({ SPX: 'catalog://SPX' });
  });

  it('is rejected with all of its problems', () => {
    const broken = VALID.replace(BUILT_IN, 'module: ./mine.ts');
    const files = { 'bot.yaml': broken, 'mine.ts': 'throw new Error("no");', 'SPX.csv': '' };
    expect(problemsOf(files)).toEqual([
      '/spec/data/source data_not_found',
      '/spec/strategy/module invalid_strategy',
    ]);
    const file = join(directoryWith(files), 'bot.yaml');
    const error = errorOf(() => loadBot(file));
    expect(error).toMatchObject({ code: 'invalid_spec', message: `${file} has 2 problems` });
    expect(formatProblem(error.problems[0]!)).toMatch(
      /^.*bot\.yaml:7:18 \/spec\/data\/source data_not_found no such file: .* \(did you mean \.\/SPX\.csv\?\)$/,
    );
  });
});

describe('overrides', () => {
  const none = { params: {}, from: undefined, to: undefined };
  const files = { 'bot.yaml': VALID, 'spx.csv': '' };

  it('result in the same bot as a spec with these values', () => {
    const file = join(directoryWith(files), 'bot.yaml');
    const authored = VALID.replace('fast: 10', 'fast: 20').replace('2000-01-03', '2010-01-01');
    const same = join(directoryWith({ ...files, 'bot.yaml': authored }), 'bot.yaml');
    const bot = loadBot(file, { ...none, params: { fast: '20' }, from: '2010-01-01' });
    const { hash, params, spec, document } = loadBot(same);
    expect({ hash: bot.hash, params: bot.params, spec: bot.spec, document: bot.document }).toEqual({
      hash,
      params,
      spec,
      document,
    });
    expect(bot.hash).not.toBe(loadBot(file).hash);
    expect(loadBot(file, none).hash).toBe(loadBot(file).hash);
  });

  it.each([
    [{ params: { fst: '1' } }, /parameter fst: unknown parameter/],
    [{ params: { fast: '0' } }, /parameter fast: must be at least 1/],
    [{ params: { fast: '90' } }, /fast must be below slow/],
    [{ from: '2001-02-30' }, /from "2001-02-30" is not a date/],
    [{ from: '2030-01-01' }, /from 2030-01-01 is after to 2020-04-17/],
  ])('%j is refused', (overrides, message) => {
    const file = join(directoryWith(files), 'bot.yaml');
    const error = errorOf(() => loadBot(file, { ...none, ...overrides }));
    expect(error).toMatchObject({
      code: 'usage',
      message: expect.stringMatching(message) as string,
    });
  });
});
