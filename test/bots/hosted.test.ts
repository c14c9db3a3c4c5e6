import { expect, test } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { readHostedSpec, type SentSpec } from '../../src/bots/hosted.ts';
import { specHash } from '../../src/bots/spec-lock.ts';
import { ServiceError } from '../../src/base/errors.ts';

const GOOD = exampleDocument('sma', 20);

function refusal(sent: SentSpec, allowsCode = false): ServiceError {
  try {
    readHostedSpec(sent, allowsCode);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('the spec was taken');
}

function withPart(part: 'metadata' | 'spec', fields: object): SentSpec {
  return { document: { ...GOOD, [part]: { ...(GOOD[part] as object), ...fields } } };
}

test('a spec sent as data or as text gives the same document, without defaults', () => {
  const asData = readHostedSpec({ document: GOOD });
  expect(asData).toMatchObject({ document: GOOD, hash: specHash(GOOD) });
  expect(asData.document).toEqual(GOOD);
  const yaml = `# a comment\n${JSON.stringify(GOOD, null, 2)}`;
  expect(readHostedSpec({ yaml })).toEqual(asData);
});

test('problems of hosting are reported together with other problems of a spec', () => {
  const error = refusal({
    document: {
      ...GOOD,
      metadata: { name: 'X', slug: '0198c0de-0000-7000-8000-000000000000' },
      spec: {
        kind: 'trading',
        universe: { symbols: ['A', 'B'], currency: 'USD' },
        data: { sources: { A: './a.csv', B: 'catalog://../b' }, timeframe: '1d' },
        strategy: { module: './own.ts' },
        engin: {},
      },
    },
  });
  expect(error).toMatchObject({ code: 'invalid_spec', status: 422 });
  expect(
    error.problems.map(({ pointer, code, suggestion }) => [pointer, code, suggestion]),
  ).toEqual([
    ['/metadata/slug', 'invalid_value', undefined],
    ['/spec/data/sources/A', 'data_not_hosted', undefined],
    ['/spec/data/sources/B', 'data_not_hosted', undefined],
    ['/spec/strategy/module', 'module_not_hosted', undefined],
    ['/spec/engin', 'unknown_field', 'engine'],
  ]);
});

test('a benchmark is a symbol of the bot or a dataset of the catalogue', () => {
  const { universe } = readHostedSpec(withPart('spec', {})).spec.spec;
  const data = { source: 'catalog://SPX', timeframe: '1d' };
  const read = (benchmark: string) =>
    readHostedSpec(withPart('spec', { data: { ...data, benchmark } }));
  for (const name of ['catalog://QQQ', universe.symbols[0]!]) {
    expect(read(name).spec.spec.data.benchmark).toBe(name);
  }
  expect(() => read('./qqq.csv')).toThrow(
    expect.objectContaining({
      problems: [
        expect.objectContaining({ pointer: '/spec/data/benchmark', code: 'data_not_hosted' }),
      ],
    }),
  );
});

test('only data of the catalogue is accepted', () => {
  const from = (source: string) => withPart('spec', { data: { source, timeframe: '1d' } });
  expect(readHostedSpec(from('catalog://SPX')).spec.spec.data.source).toBe('catalog://SPX');
  for (const source of [
    './spx.csv',
    '/etc/passwd',
    'catalog://',
    'catalog://../x',
    'CATALOG://X',
  ]) {
    expect(refusal(from(source)).problems).toMatchObject([
      { pointer: '/spec/data/source', message: expect.stringContaining('catalog://NAME') },
    ]);
  }
});

test('problems of a text have their line in the message', () => {
  const [problem] = refusal({ yaml: 'apiVersion: bots/v1\nkind: [\n' }).problems;
  expect(problem).toMatchObject({
    code: 'yaml_syntax',
    message: expect.stringMatching(/^line \d, column \d: /),
  });
  const { problems } = refusal({ yaml: JSON.stringify({ ...GOOD, nmae: 1 }, null, 2) });
  expect(problems).toMatchObject([
    { pointer: '/nmae', message: expect.stringMatching(/^line \d+, column 3: unknown/) },
  ]);
  const [same] = refusal({ document: { ...GOOD, nmae: 1 } }).problems;
  expect(same?.message).toMatch(/^unknown field/);
});

test('only the first 100 problems are listed, with the total count', () => {
  const fields = Array.from({ length: 150 }, (_, i) => [`field_${i}`, i]);
  const error = refusal({ document: { ...GOOD, ...Object.fromEntries(fields) } });
  expect(error.problems).toHaveLength(100);
  expect(error.message).toBe('the spec has 150 problems; the first 100 are listed');
});

test('files outside the directory of the spec are rejected', () => {
  const sent = (name: string) => refusal({ document: GOOD, files: { [name]: 'QQ==' } }).problems;
  for (const name of ['/models/rise.onnx', '../rise.onnx', 'C:\\rise.onnx']) {
    const message = expect.stringMatching(/is not below the directory of the bot file; .*relative/);
    expect(sent(name)).toContainEqual(expect.objectContaining({ message }));
  }
  const dotted = './own.ts';
  const own = { ...GOOD, spec: { ...(GOOD['spec'] as object), strategy: { module: dotted } } };
  const { problems } = refusal({ document: own, files: { [dotted]: '' } }, true);
  expect(problems.map(({ message }) => message).filter((text) => text.includes('own.ts'))).toEqual([
    '"./own.ts" begins with ./; drop it, and send the file as "own.ts"',
  ]);
  const message = expect.stringContaining('is not an accepted path: use a .ts, .mts');
  expect(sent('rise.bin')).toContainEqual(expect.objectContaining({ message }));
});
