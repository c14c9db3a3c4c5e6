import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { defineVerb } from '../../verb.ts';

const MOST_RUNS = 8;
/** Number of times in the chart. It keeps the page below 4 MB with eight runs. */
const MAX_POINTS = 4000;

export const verb = defineVerb({
  summary: 'compare finished backtests',
  description:
    'Compares the figures, the equity and the trades of two to eight backtests with those of the ' +
    'first one, and names what differs between their locks. Writes one HTML page.',
  arguments: {
    runs: {
      description: 'directories of backtests, or run ids in runs_dir',
      variadic: true,
      complete: 'directory',
    },
  },
  options: {
    html: {
      value: 'file',
      description: 'file for the page; in runs_dir by default',
      complete: 'file',
    },
  },
  settings: ['runs_dir'],
  examples: [
    'runs compare 20261120T070512Z-3f9a2c 20261121T081500Z-77d0e1',
    'runs compare ./before ./after --html comparison.html --json | jq .figures',
  ],
  async run(context, args, options) {
    if (args.runs.length < 2 || args.runs.length > MOST_RUNS) {
      throw new ServiceError(
        'usage',
        `2 to ${MOST_RUNS} runs can be compared, not ${args.runs.length}`,
        {
          remedy: 'Directories of backtests contain summary.json; run ids are names in runs_dir.',
        },
      );
    }
    const { findRun, readRun } = await import('../../../backtest/compare/stored-run.ts');
    const { compareRuns } = await import('../../../backtest/compare/compare-runs.ts');
    const { overlayCurves } = await import('../../../backtest/compare/overlaid-curves.ts');
    const { renderComparison } = await import('../../../backtest/compare/render-comparison.ts');
    const { sharedWindow } = await import('../../../backtest/compare/shared-window.ts');
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { writeText } = await import('../../../backtest/write-text.ts');
    const { showRunComparison } = await import('../../show-run-comparison.ts');

    const { cwd, settings, signal } = context;
    const directories = args.runs.map((name) => findRun(name, { cwd, runsDir: settings.runs_dir }));
    const progress = context.progress('compare', directories.length);
    const runs = [];
    try {
      for (const directory of directories) {
        runs.push(await readRun(directory));
        signal.throwIfAborted();
        progress.update(runs.length);
      }
    } finally {
      progress.stop();
    }
    const comparison = compareRuns(runs);
    const curves = overlayCurves(runs, sharedWindow(runs), MAX_POINTS);
    const digest = createHash('sha256').update(directories.join('\n')).digest('hex');
    const page =
      options.html === undefined
        ? join(settings.runs_dir, `comparison-${digest.slice(0, 12)}.html`)
        : resolve(cwd, options.html);
    if (options.html === undefined) await prepareDirectory(settings.runs_dir);
    await writeText(page, [renderComparison(comparison, curves)]);
    return {
      data: comparison,
      show(out) {
        showRunComparison(out, comparison);
        out.line();
        out.line(`page: ${page}`);
      },
    };
  },
});
