import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { onnxFile } from '../../examples/models/onnx-file.ts';
import { fit } from '../../examples/models/fit.ts';
import { exampleDocument } from '../../src/api/bots.ts';
import { readHostedSpec } from '../../src/bots/hosted.ts';
import { checkBot } from '../../src/bots/load-bot.ts';
import { triedModels } from '../../src/bots/model-checks.ts';
import { lockOf } from '../../src/backtest/run-lock.ts';
import { driftOf } from '../../src/backtest/lock-drift.ts';
import { specOf, TANH } from './models/models.ts';
import { EXAMPLES } from './example-bots.ts';
import { directoryWith, VALID } from './specs.ts';
import { isAtLength } from '../length.ts';

const BYTES = onnxFile(TANH);
const { digest } = specOf(BYTES);

const GOOD = VALID.replace(
  '  engine:',
  `  ml_models:
    - name: m
      path: ./models/m.onnx
      digest: ${digest}
      inputs: [{column: close}, {indicator: return, params: {period: 2}}]
      outputs: [{name: score}]
  engine:`,
);

function check(text: string, files: Readonly<Record<string, Uint8Array | string>> = {}) {
  const all = { 'bot.yaml': text, 'spx.csv': '', 'models/m.onnx': BYTES, ...files };
  return checkBot(join(directoryWith(all), 'bot.yaml'));
}

test('a valid model is loaded with its bot, without problems or notes', () => {
  const { bot, problems } = check(GOOD);
  expect(problems).toEqual([]);
  expect(bot).toMatchObject({ notes: [], models: [{ name: 'm', from: ['y'] }] });
  expect(bot!.models[0]!.bytes).toEqual(Buffer.from(BYTES));
});

describe('the problems of models', () => {
  const wrong = `sha256:${'0'.repeat(64)}`;
  const cases: readonly (readonly [
    from: string,
    to: string,
    code: string,
    pointer: string,
    suggestion: string | undefined,
  ])[] = [
    ['m.onnx', 'n.onnx', 'model_not_found', '/0/path', undefined],
    ['m.onnx', 'm.pb', 'invalid_value', '/0/path', undefined],
    [digest, wrong, 'digest_mismatch', '/0/digest', digest],
    [digest, 'sha256:?', 'invalid_value', '/0/digest', digest],
    [`      digest: ${digest}\n`, '', 'missing_field', '/0/digest', digest],
    ['{column: close}, ', '', 'model_mismatch', '/0/inputs', undefined],
    ['column: close', 'colum: close', 'unknown_field', '/0/inputs/0/colum', 'column'],
    ['column: close', 'column: clos', 'invalid_value', '/0/inputs/0/column', 'close'],
    ['column: close', 'of: close', 'missing_field', '/0/inputs/0/indicator', undefined],
    ['{period: 2}', '{perod: 2, period: 2}', 'unknown_field', '/0/inputs/1/params/perod', 'period'],
    ['{period: 2}', '{period: 0}', 'invalid_value', '/0/inputs/1/params', undefined],
    [
      '{name: score}',
      '{name: score, element: 1}',
      'model_mismatch',
      '/0/outputs/0/element',
      undefined,
    ],
    [
      '{name: score}',
      '{name: score}, {name: score}',
      'duplicate_value',
      '/0/outputs/1/name',
      undefined,
    ],
  ];
  it.each(cases)('include %j replaced by %j', (from, to, code, pointer, suggestion) => {
    const { problems } = check(GOOD.replace(from, to));
    expect(problems).toMatchObject([
      { code, pointer: `/spec/ml_models${pointer}`, line: expect.any(Number) },
    ]);
    expect(problems[0]!.suggestion).toBe(suggestion);
  });

  it.runIf(isAtLength)('include inputs that would need too much memory', () => {
    const input = '{indicator: bollinger, params: {period: 10000, k: 2}}';
    const inputs = Array.from({ length: 998 }, () => input).join(', ');
    const { problems } = check(GOOD.replace('{column: close}, ', `{column: close}, ${inputs}, `));
    expect(problems).toMatchObject([
      { pointer: '/spec/ml_models', message: expect.stringContaining('at most 10000000') },
      { pointer: '/spec/ml_models/0/inputs', code: 'model_mismatch' },
    ]);
  });

  it('include a strategy that reads a signal without a model', () => {
    const text = GOOD.replace(
      'name: sma_crossover, params: {fast: 10, slow: 30}',
      'name: model_signal',
    );
    expect(check(text.replace('name: score', 'name: other')).problems).toMatchObject([
      { code: 'missing_signal', message: expect.stringContaining('reads score') },
    ]);
  });

  it('include a model that fails when it is run', async () => {
    const weights = [{ name: 'w', dims: [3, 1], values: [1, 2, 3] }];
    const broken = onnxFile({ ...TANH, weights });
    const text = GOOD.replace(digest, specOf(broken).digest);
    const { bot, document } = check(text, { 'models/m.onnx': broken });
    expect(await triedModels(bot!.models, document)).toMatchObject([
      { code: 'invalid_model', pointer: '/spec/ml_models/0/path', line: 11 },
    ]);
  });
});

test('a lock includes the files of models and the version of their runtime', () => {
  const lock = (file: string, runtime = 'onnxruntime-web 1.0.0') =>
    lockOf({
      spec: 's',
      engine: '1',
      seed: 0,
      strategy: 'model_signal',
      data: {},
      models: { runtime, files: { m: file } },
    });
  expect(driftOf(lock('a'), lock('a'))).toEqual([]);
  expect(lock('a').digest).not.toBe(lock('b').digest);
  expect(driftOf(lock('a'), lock('b'))).toEqual(['model m: changed']);
  expect(driftOf(lock('a'), lock('a', 'onnxruntime-web 2.0.0'))).toEqual([
    'the runtime of models changed from onnxruntime-web 1.0.0 to onnxruntime-web 2.0.0',
  ]);
});

test.runIf(isAtLength)('the script of the example model reproduces its file', () => {
  const { bot } = checkBot(join(EXAMPLES, 'model-signal.yaml'));
  expect(bot!.models[0]!.digest).toBe(specOf(fit()).digest);
});

test('an empty set of files does not change the version', () => {
  const document = exampleDocument('sma', 10);
  expect(readHostedSpec({ document, files: {} })).toEqual(readHostedSpec({ document }));
});
