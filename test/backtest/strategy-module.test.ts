import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadStrategyModule } from '../../src/backtest/strategy-module.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { directoryWith } from '../bots/specs.ts';

const STRATEGY = `
import { defineStrategy, integer, Sma } from 'service-local/strategy';
export default defineStrategy({
  name: 'mine',
  description: 'Mine.',
  params: { bars: integer({ default: 3, min: 1 }) },
  create: ({ params }) => ({ onBar() { new Sma(params.bars).next(1); } }),
});
`;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function errorOf(files: Readonly<Record<string, string>>, entry: string): ServiceError {
  try {
    loadStrategyModule(entry, directoryWith(files));
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    return error as ServiceError;
  }
  throw new Error('it loaded');
}

describe('a strategy module', () => {
  it.each(['s.ts', 's.mjs'])('%s is loaded without any node_modules', (name) => {
    const directory = join(directoryWith({ [`a b#1%/${name}`]: STRATEGY }), 'a b#1%');
    const { strategy, files } = loadStrategyModule(`./${name}`, directory);
    expect(strategy).toMatchObject({ name: 'mine', params: { bars: { kind: 'integer' } } });
    expect(files).toEqual({ [name]: sha256(STRATEGY) });
  });

  it('lists every file that it imports, directly or indirectly, relative to the spec', () => {
    const files = {
      'bots/strategies/s.ts': `import './a.ts';\nimport type { T } from './types.ts';\n${STRATEGY}`,
      'bots/strategies/a.ts':
        "import { b } from '../../shared/b.js';\nexport const a: number = b;\n",
      'shared/b.js': "import './c.ts';\nimport '../bots/strategies/a.ts';\nexport const b = 1;\n",
      'shared/c.ts':
        "import levels from './levels.json' with { type: 'json' };\nexport { levels };\nimport * as p from 'packaged';\nexport { p };\n",
      'shared/package.json': '{"type": "module"}',
      'node_modules/packaged/index.js': "import './inner.js';\n",
      'node_modules/packaged/inner.js': '',
      'node_modules/packaged/package.json': '{"type": "module", "main": "index.js"}',
      'shared/levels.json': '[1, 2]',
      'bots/strategies/types.ts': 'export type T = string;\n',
      'bots/strategies/unused.ts': '',
    };
    const directory = directoryWith(files);
    const expected = {
      '../shared/b.js': sha256(files['shared/b.js']),
      '../shared/c.ts': sha256(files['shared/c.ts']),
      '../shared/levels.json': sha256(files['shared/levels.json']),
      'strategies/a.ts': sha256(files['bots/strategies/a.ts']),
      'strategies/s.ts': sha256(files['bots/strategies/s.ts']),
    };
    const load = () => loadStrategyModule('./strategies/s.ts', join(directory, 'bots'));
    expect(load().files).toEqual(expected);
    expect(load().files).toEqual(expected);
    expect(load().strategy).toBe(load().strategy);
  });

  it('lists a file that it shares with another module', () => {
    const directory = directoryWith({
      'one.ts': `import './shared.ts';${STRATEGY}`,
      'two.ts': `import './shared.ts';${STRATEGY}`,
      'shared.ts': 'export {};',
    });
    const filesOf = (name: string) => Object.keys(loadStrategyModule(name, directory).files);
    expect(filesOf('one.ts')).toEqual(['one.ts', 'shared.ts']);
    expect(filesOf('two.ts')).toEqual(['shared.ts', 'two.ts']);
  });

  it('keeps the digest of the loaded file if the file changes later', () => {
    const directory = directoryWith({ 's.ts': STRATEGY });
    const before = loadStrategyModule('s.ts', directory).files;
    writeFileSync(join(directory, 's.ts'), STRATEGY.replace('Mine.', 'Other.'));
    expect(loadStrategyModule('s.ts', directory).files).toEqual(before);
  });

  it('is one file, by whichever path it is imported', () => {
    const directory = directoryWith({ 'real/s.ts': STRATEGY });
    mkdirSync(join(directory, 'linked'));
    symlinkSync(join(directory, 'real/s.ts'), join(directory, 'linked/s.ts'));
    symlinkSync(join(directory, 'real'), join(directory, 'link'));
    expect(Object.keys(loadStrategyModule('linked/s.ts', directory).files)).toEqual(['real/s.ts']);
    expect(Object.keys(loadStrategyModule('s.ts', join(directory, 'link')).files)).toEqual([
      's.ts',
    ]);
    expect(Object.keys(loadStrategyModule(join(directory, 'real/s.ts'), directory).files)).toEqual([
      'real/s.ts',
    ]);
  });
});

describe('an invalid module', () => {
  it.each([
    ['Smaa', 'Did you mean Sma? Correct the import.'],
    ['Zyxwvut', 'Correct the name; a type must be imported with `import type`.'],
  ])('names the remedy if the strategy API does not export %s', (name, remedy) => {
    const text = `import { ${name} } from 'service-local/strategy';\n`;
    expect(errorOf({ 's.ts': text }, './s.ts').remedy).toBe(remedy);
  });

  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['does not compile', 'export const a = 1;\nconst b: = 2;\n', /^\.\/s\.ts: .*s\.ts:2\)$/],
    [
      'parses as TypeScript but means nothing',
      'const a: number = 1;\nfor (;;) break nowhere;\n',
      /break.*s\.ts:2\)$/,
    ],
    ['needs more than erasing types', 'enum A { b }\n', /enum is not supported.*s\.ts:1\)$/],
    ['throws', "\nthrow new TypeError('boom');\n", /threw while.*TypeError: boom \(.*s\.ts:2\)$/],
    ['imports what is not there', "import './none.ts';\n", /Cannot find module .*none\.ts/],
    ['imports a package that is not there', "import 'none';\n", /Cannot find package 'none'/],
    [
      'imports a name that is not there',
      "import { Smaa } from 'service-local/strategy';\n",
      /does not provide an export named 'Smaa'/,
    ],
    [
      'waits while loading',
      'await Promise.resolve();\nexport default {};',
      /await outside a function/,
    ],
    ['exports nothing', 'export const strategy = 1;\n', /no strategy as default export/],
    ['exports something else', "export default { name: 'a b' };\n", /lower-case words/],
    ['has no create', "export default { name: 'a', description: '' };\n", /no function create/],
    [
      'has a parameter of its own kind',
      "export default { name: 'a', description: '', params: { p: 1 }, create() {} };\n",
      /parameter p is not made by/,
    ],
    [
      'has a choice of nothing',
      "const p = { kind: 'choice', default: 'a' };\n" +
        "export default { name: 'a', description: '', params: { p }, create() {} };\n",
      /parameter p is not made by/,
    ],
    [
      'has a default outside of its bounds',
      `import { integer } from 'service-local/strategy';
       const params = { p: integer({ default: 0, min: 1 }) };
       export default { name: 'a', description: '', params, create() {} };\n`,
      /default of parameter p must be at least 1/,
    ],
  ];
  it.each(cases)('is rejected if it %s', (_, source, message) => {
    const error = errorOf({ 's.ts': source }, './s.ts');
    expect(error.code).toBe('invalid_strategy');
    expect(error.message).toMatch(message);
    expect(error.message).toContain('./s.ts');
    expect(error.remedy).toMatch(/\.$/);
  });

  it('is reported with the line of a syntax error, also in an imported file', () => {
    const error = errorOf(
      {
        's.ts': "import './lib/deep.mjs';\n",
        'lib/deep.mjs': 'export const a = 1;\n\nconst = 2;\n',
      },
      's.ts',
    );
    expect(error.message).toMatch(/deep\.mjs:3\)$/);
  });

  it('is distinguished from a missing file, and from TypeScript in node_modules', () => {
    expect(errorOf({}, './none.ts').message).toMatch(/^\.\/none\.ts: no such file/);
    const installed = errorOf({ 'node_modules/p/s.ts': STRATEGY }, './node_modules/p/s.ts');
    expect(installed.remedy).toBe('Copy the bot and its strategy out of node_modules.');
  });
});
