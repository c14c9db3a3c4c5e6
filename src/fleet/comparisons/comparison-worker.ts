import { parentPort } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../../base/error-data.ts';
import { compareRuns, type Comparison } from '../../backtest/compare/compare-runs.ts';
import { overlayCurves } from '../../backtest/compare/overlaid-curves.ts';
import { renderComparison } from '../../backtest/compare/render-comparison.ts';
import { sharedWindow } from '../../backtest/compare/shared-window.ts';
import { readRun } from '../../backtest/compare/stored-run.ts';

/** Number of times in the chart. It keeps the page below 4 MB with eight runs. */
const MAX_POINTS = 4000;

export interface RunComparison {
  readonly comparison: Comparison;
  /** A self-contained HTML page. */
  readonly page: string;
}

export type ComparisonMessage =
  | { readonly done: RunComparison }
  | { readonly error: ErrorData; readonly bug?: unknown };

/** @param names of the runs, which replace their directories in the document. */
async function compare(
  directories: readonly string[],
  names: readonly string[],
): Promise<RunComparison> {
  const runs = await Promise.all(
    directories.map(async (directory, place) => ({
      ...(await readRun(directory)),
      directory: names[place]!,
    })),
  );
  const comparison = compareRuns(runs);
  const curves = overlayCurves(runs, sharedWindow(runs), MAX_POINTS);
  return { comparison, page: renderComparison(comparison, curves) };
}

async function answer(work: ComparisonWork): Promise<ComparisonMessage> {
  try {
    return { done: await compare(work.directories, work.names) };
  } catch (error) {
    return toErrorData(error);
  }
}

export interface ComparisonWork {
  readonly directories: readonly string[];
  readonly names: readonly string[];
}

parentPort!.on('message', async (work: ComparisonWork) => {
  parentPort!.postMessage(await answer(work));
});
