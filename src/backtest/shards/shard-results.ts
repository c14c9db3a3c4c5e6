import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readColumns } from '../../market/read-columns.ts';
import { writeParquet } from '../../market/write.ts';
import { metricsFrom, TRIAL_FIGURES } from '../search/trial-figures.ts';
import type { Trial, TrialResult } from '../search/trial.ts';

/** Results of a shard: a row of figures for each trial, NaN for undefined ones, and the errors by row. */
export interface ShardResults {
  /** Parquet file with `trial`, the figures in the order of `TRIAL_FIGURES`, and the sums of returns. */
  readonly parquet: Uint8Array;
  readonly errors: readonly (readonly [row: number, message: string])[];
  /** Number of sums of each trial; 0 if the setup has no blocks. */
  readonly sums: number;
}

/** @param results of all trials of a shard, in their order */
export async function encodeResults(results: readonly TrialResult[]): Promise<ShardResults> {
  const sums = Math.max(0, ...results.map((one) => ('sums' in one && one.sums?.length) || 0));
  const names = columnNames(sums);
  const columns = Object.fromEntries(names.map((name) => [name, new Float64Array(results.length)]));
  const errors: [number, string][] = [];
  for (const [row, result] of results.entries()) {
    columns['trial']![row] = result.index;
    if ('error' in result) errors.push([row, result.error]);
    const values = 'error' in result ? [] : TRIAL_FIGURES.map((name) => result.metrics[name]);
    const own = 'sums' in result ? result.sums : undefined;
    for (const [place, name] of TRIAL_FIGURES.entries()) {
      columns[name]![row] = values[place] ?? Number.NaN;
    }
    for (let place = 0; place < sums; place++) {
      columns[sumName(place)]![row] = own?.[place] ?? Number.NaN;
    }
  }
  const parquet = await inDirectory(async (directory) => {
    const path = join(directory, 'results.parquet');
    await writeParquet(path, columns, names);
    return readFile(path);
  });
  return { parquet, errors, sums };
}

/** @throws Error if the file does not have one row for each trial */
export async function decodeResults(
  trials: readonly Trial[],
  { parquet, errors, sums }: ShardResults,
): Promise<TrialResult[]> {
  const columns = await inDirectory(async (directory) => {
    const path = join(directory, 'results.parquet');
    await writeFile(path, parquet);
    return readColumns(path, columnNames(sums));
  });
  const rows = columns['trial']!;
  if (rows.length !== trials.length || trials.some(({ index }, row) => rows[row] !== index)) {
    throw new Error('the results of a shard belong to other trials');
  }
  const messages = new Map(errors);
  return trials.map((trial, row) => {
    const error = messages.get(row);
    if (error !== undefined) return { ...trial, error };
    const metrics = metricsFrom((name) => {
      const value = columns[name]![row]!;
      return Number.isNaN(value) ? null : value;
    });
    if (sums === 0) return { ...trial, metrics };
    const own = Float64Array.from({ length: sums }, (_, place) => columns[sumName(place)]![row]!);
    return { ...trial, metrics, sums: own };
  });
}

function columnNames(sums: number): string[] {
  return ['trial', ...TRIAL_FIGURES, ...Array.from({ length: sums }, (_, place) => sumName(place))];
}

function sumName(place: number): string {
  return `sum_${place}`;
}

async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-shard-'));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
