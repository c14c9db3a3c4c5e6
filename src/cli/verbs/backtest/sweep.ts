import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { formatCount } from '../../../base/format.ts';
import { DATA_OPTIONS, HOLDOUT_OPTION } from '../../data-options.ts';
import { DEFAULT_COLUMN_MB, MEMORY_OPTION } from '../../memory-option.ts';
import { PRUNE_OPTION, SEARCH_OPTIONS, searchRequestOf } from '../../search-options.ts';
import type { Progress } from '../../output.ts';
import { prepareSearch } from '../../prepare-search.ts';
import { PLACE_OPTION, withRemoteTrials } from '../../search-place.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'search for good parameters of a bot',
  description:
    'Runs the bot with every combination of the given parameters, or with a sample of them, on all ' +
    'processors. After an interruption, the same command resumes the sweep. Writes sweep.json, ' +
    'trials.csv and report.html.',
  arguments: {
    file: { description: 'bot file, YAML or JSON', complete: 'file' },
  },
  options: {
    ...SEARCH_OPTIONS,
    ...PRUNE_OPTION,
    ...PLACE_OPTION,
    from: { value: 'date', description: 'first day, which overrides the spec' },
    to: { value: 'date', description: 'last day, which overrides the spec' },
    ...DATA_OPTIONS,
    ...HOLDOUT_OPTION,
    out: { value: 'dir', description: 'directory for the result files', complete: 'directory' },
    memory: MEMORY_OPTION,
    top: { value: 'n', description: 'number of rows to print', default: 10, parse: parseCount },
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
    'backtest sweep bot.yaml -p fast=5:50:5 -p slow=20:200:10',
    "backtest sweep bot.yaml -p fast=5:50 -p slow=20:200 --search tpe --where 'trades>=30'",
  ],
  async run(context, args, options) {
    const request = searchRequestOf(options);
    const { bot, job, source } = await prepareSearch(context, args.file, options);
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { planSearch } = await import('../../../backtest/search/plan-search.ts');
    const { runSearch } = await import('../../../backtest/search/run-search.ts');
    const { withTrialPool } = await import('../../../backtest/search/trial-pool.ts');
    const { finishSweep } = await import('../../../backtest/search/sweep-document.ts');
    const { captureTrials, countTrials } = await import('../../count-trials.ts');
    const { showSweep } = await import('../../show-backtest.ts');
    const { settings, signal } = context;

    const search = planSearch(job, request, settings.strategy_timeout_seconds * 1000);
    const directory = resolve(
      context.cwd,
      options.out ?? `${settings.runs_dir}/${job.bot.slug}/sweep-${search.digest.slice(0, 12)}`,
    );
    await prepareDirectory(directory);

    const counted = countTrials(context);
    const lockWith = await captureTrials(context, options.on, counted, job);
    const { results, trials } = search;
    let progress: Progress | undefined;
    let failure: ServiceError | undefined;
    try {
      const limits = {
        workers: settings.workers,
        memoryMb: settings.strategy_memory_mb,
        columnMb: options.memory ?? DEFAULT_COLUMN_MB,
      };
      const title = `sweep of ${job.bot.slug}`;
      const remote = { bot, digest: search.digest, title };
      await withRemoteTrials(context, options.on, remote, (runner, countOnServer) =>
        withTrialPool(source, { ...limits, runner }, (pool) =>
          runSearch(search, pool, {
            directory,
            signal,
            count: (ended) => {
              counted.record(job, 'sweep', ended);
              countOnServer(job, ended);
            },
            onProgress: (done) => {
              if (progress === undefined) {
                if (done > 0) context.message(`resuming: ${done} trials are already done`);
                progress = context.progress('sweep', trials.capacity, done);
              }
              progress.update(done);
            },
          }),
        ),
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      failure = new ServiceError(
        'interrupted',
        `${formatCount(results.done)} of ${formatCount(trials.capacity)} trials are done and saved`,
        { remedy: 'Run the same command again to resume.' },
      );
    } finally {
      progress?.stop();
    }
    const lock = lockWith(results.inOrder());
    const held = { ...job, lock, holdout: counted.useHoldout(job) };
    const document = await finishSweep({ ...search, job: held }, directory);
    if (signal.aborted) {
      failure ??= new ServiceError(
        'interrupted',
        `interrupted after the last trial: the results in ${directory} are complete`,
        { reason: 'complete' },
      );
    }
    if (results.failed > 0) {
      failure ??= new ServiceError(
        'strategy_failed',
        `${results.failed} trials failed; the first error is: ${results.firstError}`,
        { remedy: 'Correct the cause. The same command runs the failed trials again.' },
      );
    }
    return {
      data: document,
      show: (out) => {
        showSweep(out, document, options.top);
        if (document.best === null) return;
        out.line();
        out.line(`report: ${resolve(directory, 'report.html')}`);
      },
      failure,
    };
  },
});

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) {
    throw new ServiceError('usage', `${text} is not a positive integer`);
  }
  return count;
}
