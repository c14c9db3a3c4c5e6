import { resolve } from 'node:path';
import { parseWalkForwardAssertion } from '../../../backtest/windows/walk-forward-gates.ts';
import { parseSpan } from '../../../base/calendar-span.ts';
import { ServiceError } from '../../../base/errors.ts';
import { formatCount } from '../../../base/format.ts';
import { DATA_OPTIONS, HOLDOUT_OPTION } from '../../data-options.ts';
import { gateFailure } from '../../gate-failure.ts';
import { MEMORY_OPTION, DEFAULT_COLUMN_MB } from '../../memory-option.ts';
import { PRUNE_OPTION, SEARCH_OPTIONS, searchRequestOf } from '../../search-options.ts';
import { prepareSearch } from '../../prepare-search.ts';
import { PLACE_OPTION, withRemoteTrials } from '../../search-place.ts';
import type { Progress } from '../../output.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'choose parameters on past windows and test them on the windows that follow',
  description:
    'Repeats a sweep over training windows, and runs the best parameters of each over the test ' +
    'window that follows it. Joins the tests into one run. After an interruption, the same command ' +
    'resumes the analysis. Writes walk_forward.json, windows.csv, trades.csv, trades.parquet, ' +
    'events.ndjson, equity.parquet, equity.csv and report.html.',
  arguments: {
    file: { description: 'bot file, YAML or JSON', complete: 'file' },
  },
  options: {
    ...SEARCH_OPTIONS,
    ...PRUNE_OPTION,
    train: {
      value: 'span',
      description: 'length of a training window, such as 3y, 18mo, 26w or 90d',
      required: true,
      parse: parseSpan,
    },
    test: {
      value: 'span',
      description: 'length of a test window, such as 1y',
      required: true,
      parse: parseSpan,
    },
    ...PLACE_OPTION,
    anchored: { description: 'begin every training window at the first bar' },
    embargo: {
      value: 'span',
      description: 'time between training and test that neither uses, such as 5d',
      parse: parseSpan,
    },
    from: { value: 'date', description: 'first day, which overrides the spec' },
    to: { value: 'date', description: 'last day, which overrides the spec' },
    ...DATA_OPTIONS,
    ...HOLDOUT_OPTION,
    out: { value: 'dir', description: 'directory for the result files', complete: 'directory' },
    memory: MEMORY_OPTION,
    assert: {
      value: 'gate',
      description: "gate, such as 'efficiency>=0.5' or 'sharpe>=0.5'; exit code 5 if it is not met",
      repeat: true,
      parse: parseWalkForwardAssertion,
    },
  },
  settings: [
    'runs_dir',
    'catalogue_dir',
    'workers',
    'strategy_timeout_seconds',
    'strategy_memory_mb',
    'server_url',
    'clusters_file',
  ],
  examples: [
    'backtest walk-forward bot.yaml -p fast=5:50:5 -p slow=20:200:10 --train 3y --test 1y',
    "backtest walk-forward bot.yaml -p fast=5:50:5 --train 3y --test 1y --assert 'efficiency>=0.5'",
  ],
  async run(context, args, options) {
    const search = searchRequestOf(options);
    const { bot, job, source } = await prepareSearch(context, args.file, options);
    const { canonicalDigest } = await import('../../../backtest/run-lock.ts');
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { walkForward } = await import('../../../backtest/windows/walk-forward.ts');
    const { walkForwardOutcome } =
      await import('../../../backtest/windows/walk-forward-document.ts');
    const { writeWalkForward } = await import('../../../backtest/windows/walk-forward-files.ts');
    const { captureTrials, countTrials } = await import('../../count-trials.ts');
    const { showWalkForward } = await import('../../show-walk-forward.ts');
    const { settings, signal } = context;

    const { train, test, embargo, anchored } = options;
    const plan = { train, test, embargo, anchored };
    const digest = canonicalDigest({ lock: job.lock.digest, plan: { ...plan, search } });
    const directory = resolve(
      context.cwd,
      options.out ?? `${settings.runs_dir}/${job.bot.slug}/walk-forward-${digest.slice(0, 12)}`,
    );
    await prepareDirectory(directory);

    const counted = countTrials(context);
    let progress: Progress | undefined;
    let trials = { done: 0, total: 0 };
    let walk;
    try {
      const title = `walk-forward of ${job.bot.slug}`;
      const remote = { bot, digest, title };
      walk = await withRemoteTrials(context, options.on, remote, (runner, countOnServer) =>
        walkForward(job, source, {
          ...plan,
          search,
          workers: settings.workers,
          memoryMb: settings.strategy_memory_mb,
          columnMb: options.memory ?? DEFAULT_COLUMN_MB,
          runner,
          timeoutMs: settings.strategy_timeout_seconds * 1000,
          directory,
          signal,
          count: (window, ended) => {
            counted.record(window, 'walk-forward', ended);
            countOnServer(window, ended);
          },
          onProgress(done, total) {
            trials = { done, total };
            progress ??= context.progress('walk-forward', total, done);
            progress.update(done);
          },
        }),
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      const { done, total } = trials;
      const saved =
        total === 0
          ? 'no trial was run'
          : `${formatCount(done)} of ${formatCount(total)} trials are done and saved`;
      throw new ServiceError('interrupted', saved, {
        remedy: 'Run the same command again to resume.',
        cause: error,
      });
    } finally {
      progress?.stop();
    }
    const outcome = walkForwardOutcome(walk, options.assert, {
      trials: (await captureTrials(context, options.on, counted, job))([]).trials,
      holdout: counted.useHoldout(job),
    });
    const document = await writeWalkForward(directory, walk, outcome);
    return {
      data: document,
      show: (out) => {
        showWalkForward(out, document);
        out.line();
        out.line(`report: ${resolve(directory, 'report.html')}`);
      },
      failure: signal.aborted
        ? new ServiceError(
            'interrupted',
            `interrupted after the last window: the results in ${directory} are complete`,
            { reason: 'complete' },
          )
        : gateFailure(document),
    };
  },
});
