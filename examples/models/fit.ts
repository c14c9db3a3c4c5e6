/**
 * `node examples/models/fit.ts` writes rise.onnx, the model of model-signal.yaml. It is a logistic
 * regression that estimates the probability that the S&P 500 is higher 20 days later. It is fitted to
 * the years until 2009, and the bot trades the years after. The file is reproducible byte for byte.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Rsi, Sma } from 'service-local/strategy';
import { onnxFile } from './onnx-file.ts';

const DATA = join(import.meta.dirname, '../data/sp500-daily.csv');
const UNTIL = '2009-12-31';
const DAYS_AHEAD = 20;
const ROUNDS = 400;
const RATE = 0.5;
/** Weight decay (L2 regularization). */
const DECAY = 0.001;

interface Sample {
  /** Inputs of the model, in the order of `inputs` in the bot file. */
  readonly row: readonly number[];
  readonly rose: number;
}

/** Returns the content of the model file. */
export function fit(): Uint8Array {
  const samples = samplesOf(closes());
  const width = samples[0]!.row.length;
  const columns = Array.from({ length: width }, (_, at) => samples.map(({ row }) => row[at]!));
  const means = columns.map(mean);
  const deviations = columns.map((column, at) =>
    Math.sqrt(mean(column.map((value) => (value - means[at]!) ** 2))),
  );
  const scaled = samples.map(({ row }) =>
    row.map((value, at) => (value - means[at]!) / deviations[at]!),
  );
  let bias = 0;
  let weights = means.map(() => 0);
  for (let round = 0; round < ROUNDS; round += 1) {
    const errors = samples.map(({ rose }, i) => {
      const z = scaled[i]!.reduce((sum, x, at) => sum + x * weights[at]!, bias);
      return 1 / (1 + Math.exp(-z)) - rose;
    });
    bias -= RATE * mean(errors);
    weights = weights.map((weight, at) => {
      const slope = mean(errors.map((error, i) => error * scaled[i]![at]!));
      return weight - RATE * (slope + DECAY * weight);
    });
  }
  return onnxFile({
    nodes: [
      { operator: 'Sub', inputs: ['row', 'means'], outputs: ['centred'] },
      { operator: 'Div', inputs: ['centred', 'deviations'], outputs: ['scaled'] },
      { operator: 'Gemm', inputs: ['scaled', 'weights', 'bias'], outputs: ['z'] },
      { operator: 'Sigmoid', inputs: ['z'], outputs: ['likelihood'] },
    ],
    weights: [
      { name: 'means', dims: [1, width], values: means },
      { name: 'deviations', dims: [1, width], values: deviations },
      { name: 'weights', dims: [width, 1], values: weights },
      { name: 'bias', dims: [1], values: [bias] },
    ],
    inputs: [{ name: 'row', dims: [1, width] }],
    outputs: [{ name: 'likelihood', dims: [1, 1] }],
  });
}

function closes(): number[] {
  const [, ...lines] = readFileSync(DATA, 'utf8').trim().split('\n');
  const rows = lines.map((line) => line.split(','));
  return rows.filter(([date]) => date! <= UNTIL).map((row) => Number(row[4]));
}

function samplesOf(prices: readonly number[]): Sample[] {
  const rsi = new Rsi(14);
  const fast = new Sma(10);
  const slow = new Sma(50);
  const rows = prices.map((close) => [
    rsi.next(close),
    fast.next(close) / close,
    slow.next(close) / close,
  ]);
  return rows.flatMap((row, day) => {
    const later = prices[day + DAYS_AHEAD];
    if (later === undefined || !row.every(Number.isFinite)) return [];
    return [{ row, rose: later > prices[day]! ? 1 : 0 }];
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

if (import.meta.main) {
  const file = join(import.meta.dirname, 'rise.onnx');
  const bytes = fit();
  writeFileSync(file, bytes);
  const digest = createHash('sha256').update(bytes).digest('hex');
  console.log(`${file}\ndigest: sha256:${digest}`);
}
