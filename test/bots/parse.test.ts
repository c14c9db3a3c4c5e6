import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseSpec, readSpec } from '../../src/bots/parse.ts';
import { ServiceError, type Problem } from '../../src/base/errors.ts';
import { formatProblem } from '../../src/base/format-problem.ts';
import { directoryWith, VALID } from './specs.ts';
import { runs } from '../length.ts';

function changed(from: string, to: string): string {
  expect(VALID).toContain(from);
  return VALID.replace(from, to);
}

function problemsOf(text: string): readonly Problem[] {
  return parseSpec(text, 'bot.yaml').problems;
}

function placesOf(text: string): string[] {
  return problemsOf(text).map(
    ({ line, column, pointer, code }) => `${line}:${column} ${pointer} ${code}`,
  );
}

describe('hidden characters', () => {
  it('are rejected in names, with the position and code of the character', () => {
    const [problem] = problemsOf(
      changed('metadata: {name: ', 'metadata: {owner: "A\u200Bda", name: '),
    );
    expect(formatProblem(problem!)).toMatch(
      /^bot\.yaml:\d+:\d+ \/metadata\/owner hidden_character must not contain the control or invisible character U\+200B at position 2$/,
    );
  });

  it('are rejected in the names of labels', () => {
    const text = changed('labels: {desk: index}', 'labels: {"de\u2066sk": index}');
    expect(problemsOf(text)).toMatchObject([
      { code: 'hidden_character', pointer: '/metadata/labels/de\u2066sk' },
    ]);
  });
});

describe('a valid spec', () => {
  it('has no problems and gets its defaults', () => {
    const { spec, problems } = parseSpec(VALID, 'bot.yaml');
    expect(problems).toEqual([]);
    expect(spec?.spec.engine.fees).toEqual({ model: 'percent', rate: '0.001', min: '0' });
    expect(spec?.spec.strategy.params).toEqual({ fast: 10, slow: 30 });
  });

  it('can be JSON indented with tabs', () => {
    const json = JSON.stringify(parse(VALID), null, '\t');
    expect(parseSpec(json, 'bot.json').spec).toEqual(parseSpec(VALID, 'bot.yaml').spec);
  });

  it('needs only the fields that have no default', () => {
    const { spec, problems } = parseSpec(
      `apiVersion: bots/v1
kind: Bot
metadata: {name: Minimal, slug: minimal}
spec:
  kind: trading
  universe: {symbols: [SPX], currency: USD}
  data: {source: a.csv, timeframe: 1d}
  strategy: {name: buy_and_hold}`,
      'bot.yaml',
    );
    expect(problems).toEqual([]);
    expect(spec?.spec.engine).toEqual({
      cash: '100000',
      fill: 'next_open',
      units: 'fractional',
      fees: { model: 'none' },
      slippage: { model: 'none' },
      account: 'cash',
      at_end: 'hold',
      seed: 0,
    });
  });

  it('may have line breaks and tabs in its description', () => {
    const text = changed('labels: {desk: index}', 'description: "one\\n\\ttwo"');
    expect(parseSpec(text, '').spec?.metadata.description).toBe('one\n\ttwo');
  });

  it.each(['BTC/USDT', '^GSPC', 'ES=F', 'BRK.B', '$SPX', 'BINANCE:BTCUSDT'])(
    'can trade the symbol %s',
    (symbol) => {
      expect(problemsOf(changed('[SPX]', `["${symbol}"]`))).toEqual([]);
    },
  );

  it('keeps dates as text and resolves aliases', () => {
    const text = changed(
      '{unlimited: one instrument only}',
      '&w {unlimited: one instrument}',
    ).concat('    max_drawdown_pct: *w\n');
    const { spec } = parseSpec(text, 'bot.yaml');
    expect(spec?.spec.data.from).toBe('2000-01-03');
    expect(spec?.spec.risk?.max_drawdown_pct).toEqual({ unlimited: 'one instrument' });
  });
});

describe('the problems of a spec', () => {
  it('are located at the key, the value, or the map with a missing field', () => {
    expect(placesOf(changed('slug: sma', 'slgu: sma'))).toEqual([
      '3:33 /metadata/slgu unknown_field',
    ]);
    expect(placesOf(changed('seed: 7', 'seed: -7'))).toEqual([
      '16:11 /spec/engine/seed invalid_value',
    ]);
    expect(placesOf(changed(', currency: USD', ''))).toEqual([
      '6:13 /spec/universe/currency missing_field',
    ]);
  });

  it('are formatted as file:line:column /pointer CODE message (did you mean …?)', () => {
    const [problem] = problemsOf(changed('max_order_value', 'max_order_vale'));
    expect(formatProblem(problem!)).toBe(
      'bot.yaml:19:5 /spec/risk/max_order_vale unknown_field unknown field; expected one of ' +
        'max_order_value, max_order_qty, price_collar_bps, max_messages_per_second, ' +
        'max_position_pct, max_daily_loss_pct, max_drawdown_pct, max_instruments, ' +
        'price_collar_period, messages_kept_for_cancels, repeated_execution, permitted ' +
        '(did you mean max_order_value?)',
    );
  });

  it('are all reported at once, in the order of the text', () => {
    const wrong = `
apiVersion: bots/v2
kind: Bott
metadata: {name: "", slug: Foo Bar, labels: {a: 1}}
extra: 1
spec:
  kind: tradng
  universe: {symbols: [SPX, SPX, 700, "a b"], currency: usd}
  data: {source: ./x.csv, sources: {SPX: 1}, timeframe: 7d, from: 2000-02-30, to: 20, repair: fix}
  strategy: {name: sma_crosover, params: {fast: [1]}, parms: 1}
  engine:
    cash: 100000
    fill: {model: volume_share, limit: 2, lmit: 1}
    units: frac
    fees: {model: percent, rate: 0.001, mn: "1"}
    slippage: {model: basis_points, bps: "5"}
    account: {model: margin, initial: 0.2, maintenance: 0.5}
    seed: 1.5
    sede: 1
  metrics:
    - {name: sharp, min: 0.2}
    - {name: max_drawdown, min: 0.2}
    - {name: max_drawdown, min: -1}
    - {name: sharpe}
    - 5
  risk: {max_order_vale: "5", max_position_pct: 25, max_instruments: {unlimited: ""}}
  ml_models: {}
  deployment: {target: kubernetes}
`;
    const problems = problemsOf(wrong.trimStart());
    expect(problems).toHaveLength(40);
    const order = problems.map(({ line, column }) => line! * 1000 + column!);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(new Set(problems.map(({ pointer }) => pointer)).size).toBe(40);
  });

  const cases: readonly (readonly [string, string, string, string | undefined])[] = [
    ['cash: "100000"', 'cash: 1e5', 'unquoted_money', '"1e5"'],
    ['rate: "0.001"', 'rate: 0.001', 'unquoted_money', '"0.001"'],
    ['max_order_value: "50000"', 'max_order_value: 50000', 'unquoted_money', '"50000"'],
    ['rate: "0.001"', 'rate: "1.5"', 'invalid_value', undefined],
    ['cash: "100000"', 'cash: "0.00"', 'invalid_value', undefined],
    ['cash: "100000"', 'cash: "-5"', 'invalid_value', undefined],
    ['[SPX]', 'SPX', 'invalid_type', '[SPX]'],
    ['seed: 7', 'seed: "7"', 'invalid_type', '7'],
    ['seed: 7', 'seed: 4294967296', 'invalid_value', undefined],
    ['seed: 7', 'seed:', 'invalid_type', undefined],
    ['limit: 0.1', 'limit: .inf', 'invalid_type', undefined],
    ['limit: 0.1', 'limit: .nan', 'invalid_type', undefined],
    ['{model: none}', '{model: basis_point, bps: 1}', 'invalid_value', 'basis_points'],
    ['{model: none}', 'none', 'invalid_type', undefined],
    ['fill: {model: volume_share, limit: 0.1}', 'fill: nextopen', 'invalid_value', 'next_open'],
    ['from: 2000-01-03', 'from: 2001-02-29', 'invalid_value', undefined],
    ['from: 2000-01-03', 'from: 2021-01-03', 'invalid_value', undefined],
    ['to: 2020-04-17', 'to: 2020-04-17T25:00', 'invalid_value', undefined],
    ['timeframe: 1d', 'timeframe: 1D', 'invalid_value', '1d'],
    ['sma_crossover, params', 'sma_cross, params', 'unknown_strategy', 'sma_crossover'],
    ['name: sma_crossover', 'module: ./strategy.py', 'invalid_value', undefined],
    ['fast: 10', 'fst: 10', 'unknown_param', 'fast'],
    ['fast: 10', 'fast: 0', 'invalid_param', undefined],
    ['fast: 10', 'fast: 40', 'invalid_param', undefined],
    ['fast: 10', 'fast: {}', 'invalid_type', undefined],
    ['{name: sharpe, min: 0.2}', '{name: sharp, min: 0.2}', 'unknown_metric', 'sharpe'],
    ['{name: sharpe, min: 0.2}', '{name: profit, min: 1}', 'unknown_metric', undefined],
    ['{name: sharpe, min: 0.2}', '{name: sharpe}', 'missing_field', undefined],
    ['{name: sharpe, min: 0.2}', '{name: sharpe, min: 2, max: 1}', 'gate_cannot_pass', undefined],
    ['min: -0.5', 'min: 0.2', 'gate_cannot_pass', undefined],
    ['min: -0.5', 'max: 0', 'gate_cannot_fail', undefined],
    ['maintenance: 0.25', 'maintenance: 0.6', 'invalid_value', undefined],
    ['one instrument only', '""', 'invalid_value', undefined],
    ['risk:', 'risk:\n    price_collar_period: {bps: 10}', 'missing_field', undefined],
    ['risk:', 'risk:\n    price_collar_period: {seconds: 0, bps: 10}', 'invalid_value', undefined],
    ['risk:', 'risk:\n    repeated_execution: 3', 'invalid_type', undefined],
    ['risk:', 'risk:\n    messages_kept_for_cancels: 2', 'invalid_value', undefined],
    [
      'risk:',
      'risk:\n    messages_kept_for_cancels: 2\n    max_messages_per_second: 2',
      'invalid_value',
      undefined,
    ],
    ['risk:', 'risk:\n    permitted: {instrument: [SPX]}', 'unknown_field', 'instruments'],
    ['source: ./spx.csv', 'sources: {SPX: a.csv, NDX: b.csv}', 'unknown_symbol', undefined],
    ['source: ./spx.csv', 'sources: {SPXX: a.csv}', 'unknown_symbol', 'SPX'],
    ['source: ./spx.csv', 'sources: {}', 'missing_field', undefined],
    ['source: ./spx.csv, ', '', 'missing_field', undefined],
    ['source: ./spx.csv', 'source: a.csv, sources: {SPX: a.csv}', 'conflicting_fields', undefined],
    ['name: sma_crossover', 'name: sma_crossover, module: a.ts', 'conflicting_fields', undefined],
    ['name: sma_crossover, ', '', 'missing_field', undefined],
    ['seed: 7', 'seed: 7\n    seed: 7', 'duplicate_field', undefined],
    ['seed: 7', 'seed: 7\n    __proto__: {}', 'unknown_field', undefined],
    ['seed: 7', 'seed: 7\n    <<: {}', 'unknown_field', undefined],
    ['SMA crossover', '"\\ud800"', 'invalid_value', undefined],
    ['SMA crossover', '"\\e[2J"', 'invalid_value', undefined],
    ['SMA crossover', '"two\\nlines"', 'invalid_value', undefined],
    ['desk: index', 'desk: "\\x9b1m"', 'invalid_value', undefined],
    ['labels: {desk: index}', 'description: "\\a"', 'invalid_value', undefined],
    ['[SPX]', '[__proto__]', 'invalid_value', undefined],
    ['[SPX]', '[constructor]', 'invalid_value', undefined],
    ['[SPX]', '["=SUM(1)"]', 'invalid_value', undefined],
    ['[SPX]', '["@SPX"]', 'invalid_value', undefined],
    [', currency', ', market: XNYS, currency', 'unknown_field', undefined],
    [', currency', ', calendar: XNYC, currency', 'invalid_value', 'XNYS'],
    ['SMA crossover', '!!binary aGk=', 'yaml_syntax', undefined],
    ['SMA crossover', '*nowhere', 'yaml_syntax', undefined],
    ['"100000"', '"100000', 'yaml_syntax', undefined],
    ['apiVersion', '---\n---\napiVersion', 'yaml_syntax', undefined],
  ];
  it.each(cases)('consist of one for %j replaced by %j: %s', (from, to, code, suggestion) => {
    const found = problemsOf(changed(from, to));
    expect(found.map((problem) => [problem.code, problem.suggestion])).toEqual([
      [code, suggestion],
    ]);
  });

  interface Bound {
    readonly field: string;
    readonly most: number;
    readonly from: string;
    readonly item: (i: number) => string;
    readonly to?: (items: string) => string;
  }
  const mlModel = (i: number) =>
    `{name: m${i}, path: m.onnx, digest: "sha256:${'0'.repeat(64)}", inputs: [{column: close}], outputs: [{name: o${i}}]}`;
  const METRICS = '{name: sharpe, min: 0.2}, {name: max_drawdown, min: -0.5}';
  const beforeRisk = (field: string) => `${field}\n  risk:`;
  const bounds: readonly Bound[] = [
    { field: 'symbols', most: 500, from: 'SPX]', item: (i) => `S${i}`, to: (all) => `${all}]` },
    {
      field: 'sources',
      most: 500,
      from: 'source: ./spx.csv',
      item: (i) => `S${i}: a`,
      to: (all) => `sources: {${all}}`,
    },
    { field: 'params', most: 100, from: 'fast: 10, slow: 30', item: (i) => `p${i}: 1` },
    { field: 'labels', most: 100, from: 'desk: index', item: (i) => `l${i}: a` },
    { field: 'metrics', most: 100, from: METRICS, item: () => '{name: sharpe, min: 0.2}' },
    {
      field: 'ml_models',
      most: 50,
      from: 'risk:',
      item: mlModel,
      to: (all) => beforeRisk(`ml_models: [${all}]`),
    },
    {
      field: 'agents',
      most: 50,
      from: 'risk:',
      item: () => '{role: b}',
      to: (all) => beforeRisk(`agents: [${all}]`),
    },
    {
      field: 'tools',
      most: 100,
      from: 'risk:',
      item: () => 'a',
      to: (all) => beforeRisk(`agents: [{role: b, tools: [${all}]}]`),
    },
  ];
  it.each(bounds)('include more than $most $field', ({ field, most, from, item, to }) => {
    const faults = (count: number) => {
      const all = Array.from({ length: count }, (_, i) => item(i)).join(', ');
      return problemsOf(changed(from, to?.(all) ?? all)).filter(({ message }) =>
        message.startsWith('must have at most'),
      );
    };
    expect(faults(most)).toEqual([]);
    const message = expect.stringMatching(new RegExp(` ${most} (items|entries)$`)) as string;
    const pointer = expect.stringMatching(new RegExp(`/${field}$`)) as string;
    expect(faults(most + 1)).toMatchObject([{ code: 'invalid_value', pointer, message }]);
  });

  it('do not repeat the same syntax error', () => {
    expect(placesOf(changed('  kind: trading', '\tkind: trading'))).toEqual([
      '5:1 undefined yaml_syntax',
      '5:8 undefined yaml_syntax',
      '7:1 undefined yaml_syntax',
    ]);
  });

  it('include an alias inside its own value, and a duplicate symbol', () => {
    expect(placesOf(changed('SMA crossover', '&me [*me]'))).toContain(
      '3:23 /metadata/name/0 yaml_syntax',
    );
    expect(placesOf(changed('[SPX]', '[SPX, SPX]'))).toContain(
      '6:29 /spec/universe/symbols/1 duplicate_value',
    );
  });

  it('include a wrong number of symbols for the strategy, and an unsuitable account', () => {
    const many = changed('[SPX]', '[SPX, NDX]').replace(
      'source: ./spx.csv',
      'sources: {SPX: a, NDX: b}',
    );
    expect(placesOf(many)).toEqual(['6:23 /spec/universe/symbols wrong_symbol_count']);
    const pair = many
      .replace('{name: sma_crossover, params: {fast: 10, slow: 30}}', '{name: pairs_reversion}')
      .replace('account: {model: margin, initial: 0.5, maintenance: 0.25}', 'account: cash');
    expect(placesOf(pair)).toEqual(['15:14 /spec/engine/account margin_needed']);
  });

  it('have JSON pointers with escaped names', () => {
    expect(placesOf(changed('labels: {desk: index}', 'labels: {"a/b~c": []}'))).toEqual([
      '3:72 /metadata/labels/a~1b~0c invalid_type',
    ]);
  });
});

describe('a text that is not a spec', () => {
  const DEEP_MAP = Array.from({ length: 200 }, (_, i) => `${' '.repeat(i)}a:`).join('\n');

  it.each([
    ['an empty text', '', 'empty_file'],
    ['a comment', '# only a comment\n', 'empty_file'],
    ['a sentence', 'just words', 'invalid_type'],
    ['a list', '- a\n- list', 'invalid_type'],
    ['a deep flow list', '['.repeat(20_000), 'yaml_syntax'],
    ['a deep block list', '- '.repeat(20_000), 'yaml_syntax'],
    ['a deep map', DEEP_MAP, 'yaml_syntax'],
  ])('has one problem: %s', (_, text, code) => {
    const found = problemsOf(text).filter((p) => p.code === code);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ file: 'bot.yaml', line: expect.any(Number) as number });
  });

  const LEVELS = Array.from(
    { length: 60 },
    (_, i) => `l${i}: &l${i} [${`*l${i - 1}, `.repeat(9)}]`,
  );
  it.each([
    ['exponentially', LEVELS.join('\n').replaceAll('*l-1', '1'), 6],
    ['by lists', changed('[SPX]', `[&a [${'1, '.repeat(3000)}], ${'*a, '.repeat(3000)}]`), 6],
    ['by texts', changed('[SPX]', `[&a ${'x'.repeat(9000)}, ${'*a, '.repeat(3000)}]`), 6],
    ['by itself', `[${`${'x'.repeat(99)}, `.repeat(2600)}]`, 1],
  ])('has one problem if its expansion is too large: %s', (_, text, line) => {
    const { spec, document, problems } = parseSpec(text, 'bot.yaml');
    expect(problems).toMatchObject([{ code: 'file_too_large', line }]);
    expect([spec, document.value]).toEqual([undefined, undefined]);
  });

  it('is a problem, unlike a missing file, which is an error', () => {
    const directory = directoryWith({
      'latin1.yaml': Buffer.from('kind: Bot\nname: caf\xe9\n', 'latin1'),
      'large.yaml': `# ${'x'.repeat(1_100_000)}`,
      'bom.yaml': `\uFEFF${VALID}`,
      'bars.csv': 'time,close\n2020-01-01,1\n',
      'multi.ts': 'export default {};\n',
    });
    const read = (name: string): readonly Problem[] => readSpec(join(directory, name)).problems;
    expect(read('latin1.yaml')).toMatchObject([{ code: 'not_utf8', line: 2, column: 10 }]);
    expect(read('large.yaml')).toMatchObject([{ code: 'file_too_large', line: 1 }]);
    expect(read('bom.yaml')).toEqual([]);
    expect(read('bars.csv')).toMatchObject([
      {
        code: 'not_a_bot',
        message: expect.stringContaining('service-local data import') as string,
      },
    ]);
    expect(read('multi.ts')).toMatchObject([
      {
        code: 'not_a_bot',
        message: expect.stringContaining('strategy: { module: ./multi.ts }') as string,
      },
    ]);
    const missing = (): unknown => readSpec(join(directory, 'none.yaml'));
    expect(missing).toThrow(ServiceError);
    expect(missing).toThrow(expect.objectContaining({ code: 'file_not_found' }));
    const extension = (): unknown => readSpec(join(directory, 'bom.yml'));
    const remedy = `Did you mean ${join(directory, 'bom.yaml')}?`;
    expect(extension).toThrow(expect.objectContaining({ code: 'file_not_found', remedy }));
  });
});

describe('any damage to a valid spec', () => {
  /** Problems without a code or without a position in the text. */
  function misplaced(text: string): readonly Problem[] {
    const { spec, problems } = parseSpec(text, 'bot.yaml');
    if ((spec === undefined) !== problems.length > 0)
      throw new Error('a spec or problems, not both');
    const lines = text.split('\n');
    return problems.filter(({ line = 0, column = 0, file, code }) => {
      const isInside = column >= 1 && column <= (lines[line - 1]?.length ?? -1) + 1;
      return !isInside || file !== 'bot.yaml' || !/^[a-z]+(_[a-z0-9]+)*$/.test(code);
    });
  }

  it('to its text is reported at a position in the text', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...'{}[]:,-&*!|>"\'#%@`\n\t '.split(''),
        '\r\n',
        '- ',
        ': ',
        '? ',
        '<<',
        '&a ',
        '*a',
      ),
      // The unit of fast-check first builds a slow table of all Unicode characters.
      fc.string({ maxLength: 4, unit: fc.nat(0x10ffff).map((at) => String.fromCodePoint(at)) }),
    );
    const edit = fc.tuple(fc.nat(VALID.length), fc.nat(12), piece);
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 5 }), (edits) => {
        const text = edits.reduce(
          (before, [at, length, insert]) =>
            before.slice(0, at) + insert + before.slice(at + length),
          VALID,
        );
        expect(misplaced(text)).toEqual([]);
      }),
      { numRuns: runs(60) },
    );
  });

  it('to its content is reported at a position in the text', () => {
    const valid = parse(VALID) as Record<string, unknown>;
    const paths = containersOf(valid);
    const key = fc.oneof(fc.string(), fc.constantFrom('name', 'model', 'constructor', '0', '~/'));
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(Infinity, NaN, '1e9', {}),
    );
    fc.assert(
      fc.property(fc.nat(), key, value, fc.boolean(), (which, name, content, json) => {
        const damaged = structuredClone(valid);
        const path = paths[which % paths.length]!;
        const target = path.reduce<Record<string, unknown>>(
          (map, step) => map[step] as Record<string, unknown>,
          damaged,
        );
        // Neither JSON nor YAML can set the length of a list.
        fc.pre(!(Array.isArray(target) && name === 'length'));
        const names = Object.keys(target);
        target[names[which % names.length] ?? name] = content;
        target[name] = content;
        const text = json ? JSON.stringify(damaged, null, 1) : stringify(damaged);
        expect(misplaced(text)).toEqual([]);
      }),
      { numRuns: runs(60) },
    );
  });
});

function containersOf(
  value: unknown,
  path: readonly string[] = [],
): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([key, item]) => containersOf(item, [...path, key]));
  return [path, ...inner];
}
