import { resolve } from 'node:path';
import { parseAssertionOn } from '../../../backtest/assertion.ts';
import type { SearchRequest } from '../../../backtest/search/plan-search.ts';
import {
  MOST_PERMUTATIONS,
  ROBUSTNESS_RANGES,
} from '../../../backtest/robustness/robustness-figures.ts';
import { ServiceError } from '../../../base/errors.ts';
import { DATA_OPTIONS, HOLDOUT_OPTION } from '../../data-options.ts';
import { DEFAULT_COLUMN_MB, MEMORY_OPTION } from '../../memory-option.ts';
import { parseCountIn } from '../../parse-count.ts';
import { goalOf, SEARCH_OPTIONS, searchRequestOf } from '../../search-options.ts';
import { prepareSearch } from '../../prepare-search.ts';
import { PLACE_OPTION, withRemoteTrials } from '../../search-place.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'test whether the result of a bot is luck',
  description:
    'Runs the bot over permutations of the price changes, with other parameters and under worse conditions, and compares ' +
    'the results. With -p, it first chooses the best parameters, again for each permutation, and ' +
    'estimates the probability that this choice is overfitting. After an interruption, the same command ' +
    'resumes the test. Writes robustness.json and report.html.',
  arguments: {
    file: { description: 'bot file, YAML or JSON', complete: 'file' },
  },
  options: {
    ...SEARCH_OPTIONS,
    from: { value: 'date', description: 'first day, which overrides the spec' },
    to: { value: 'date', description: 'last day, which overrides the spec' },
    ...DATA_OPTIONS,
    ...HOLDOUT_OPTION,
    permutations: {
      value: 'n',
      description:
        'number of permutations of the price changes, 0 for none; 1000 by default, or none for a bot with models',
      parse: parseCountIn(0, MOST_PERMUTATIONS),
    },
    blocks: {
      value: 'n',
      description: 'even number of blocks into which cross-validation splits the history',
      default: 16,
      parse: parseBlocks,
    },
    seed: {
      value: 'n',
      description: 'seed of the permutations, the resamples and the search',
      default: 1,
      parse: parseCountIn(0, 2 ** 32 - 1),
    },
    assert: {
      value: 'gate',
      description: "gate, such as 'permutation_p<=0.05'; exit code 5 if it is not met",
      repeat: true,
      parse: (text: string) => parseAssertionOn(ROBUSTNESS_RANGES, text),
    },
    ...PLACE_OPTION,
    out: { value: 'dir', description: 'directory for the result files', complete: 'directory' },
    memory: MEMORY_OPTION,
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
    'backtest robustness bot.yaml',
    'backtest robustness bot.yaml -p fast=5:50:5 -p slow=20:200:10 --seed 7',
    "backtest robustness bot.yaml -p fast=5:50:5 --assert 'pbo<=0.2' --assert 'permutation_p<=0.05'",
  ],
  async run(context, args, options) {
    const search = searchOf(options);
    const { bot, job, source } = await prepareSearch(context, args.file, options);
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { planRobustness, testRobustness, trialsOf } =
      await import('../../../backtest/robustness/test-robustness.ts');
    const { writeRobustness } = await import('../../../backtest/robustness/robustness-files.ts');
    const { captureTrials, countTrials } = await import('../../count-trials.ts');
    const { PhaseProgress } = await import('../../phase-progress.ts');
    const { robustnessFailure, showRobustness } = await import('../../show-robustness.ts');
    const { settings, signal } = context;

    const timeoutMs = settings.strategy_timeout_seconds * 1000;
    const { seed, blocks, permutations, assert: assertions } = options;
    const request = { search, seed, blocks, permutations, assertions };
    const plan = planRobustness(job, request, timeoutMs);
    const directory = resolve(
      context.cwd,
      options.out ?? `${settings.runs_dir}/${job.bot.slug}/robustness-${plan.digest.slice(0, 12)}`,
    );
    await prepareDirectory(directory);

    const counted = countTrials(context);
    const lockWith = await captureTrials(context, options.on, counted, job);
    const progress = new PhaseProgress(context);
    let document;
    try {
      const title = `robustness test of ${job.bot.slug}`;
      const remote = { bot, digest: plan.digest, title };
      document = await withRemoteTrials(context, options.on, remote, (runner, countOnServer) =>
        testRobustness(plan, source, {
          workers: settings.workers,
          memoryMb: settings.strategy_memory_mb,
          columnMb: options.memory ?? DEFAULT_COLUMN_MB,
          runner,
          directory,
          signal,
          count: (ended) => {
            counted.record(job, 'robustness', ended);
            countOnServer(job, ended);
          },
          onProgress: (phase, done, total) => progress.update(phase, done, total),
        }),
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new ServiceError(
        'interrupted',
        `interrupted; finished runs are saved in ${directory}`,
        {
          remedy: 'Run the same command again to resume.',
          cause: error,
        },
      );
    } finally {
      progress.stop();
    }
    const data = {
      ...document,
      lock: lockWith(trialsOf(plan, document)),
      holdout: counted.useHoldout(job),
    };
    const report = await writeRobustness(directory, data);
    return {
      data,
      show: (out) => {
        showRobustness(out, data);
        out.line();
        out.line(`report: ${report}`);
      },
      failure: signal.aborted
        ? new ServiceError(
            'interrupted',
            `interrupted after the last run: the results in ${directory} are complete`,
            { reason: 'complete' },
          )
        : robustnessFailure(data),
    };
  },
});

/**
 * Returns the search for the parameters, with the seed of the test. Without --param, the parameters of
 * the bot are the only trial.
 *
 * @throws ServiceError `usage` as `searchRequestOf`, and for options that have no effect without --param
 */
function searchOf({ seed, ...options }: Parameters<typeof searchRequestOf>[0]): SearchRequest {
  if (options.param.length === 0) {
    const { search, trials } = options;
    if (search === 'grid' && trials === undefined) {
      return { params: [], goal: goalOf(options) };
    }
    throw new ServiceError('usage', '--search and --trials need at least one --param', {
      remedy: 'Specify a parameter and its values, for example -p fast=5:50:5, or leave them out.',
    });
  }
  return searchRequestOf({ ...options, seed: options.search === 'grid' ? undefined : seed });
}

function parseBlocks(text: string): number {
  const blocks = parseCountIn(4, 24)(text);
  if (blocks % 2 === 0) return blocks;
  throw new ServiceError('usage', `'${text}' is not an even number`);
}
