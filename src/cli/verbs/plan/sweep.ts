import { DATA_OPTIONS, HOLDOUT_OPTION } from '../../data-options.ts';
import { DEFAULT_COLUMN_MB, MEMORY_OPTION } from '../../memory-option.ts';
import { parseCountIn } from '../../parse-count.ts';
import { prepareSearch } from '../../prepare-search.ts';
import { PRUNE_OPTION, SEARCH_OPTIONS, searchRequestOf } from '../../search-options.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'estimate the time and size of a sweep before it starts',
  description:
    'Runs some trials of the sweep on one processor, and prints how many trials, shards, core hours ' +
    'and bytes the whole sweep takes. The trials of this pilot are not saved and not counted.',
  arguments: {
    file: { description: 'bot file, YAML or JSON', complete: 'file' },
  },
  options: {
    ...SEARCH_OPTIONS,
    ...PRUNE_OPTION,
    from: { value: 'date', description: 'first day, which overrides the spec' },
    to: { value: 'date', description: 'last day, which overrides the spec' },
    ...DATA_OPTIONS,
    ...HOLDOUT_OPTION,
    memory: MEMORY_OPTION,
    pilot: {
      value: 'n',
      description:
        'maximum number of different trials to run; the pilot also ends after three seconds',
      default: 2000,
      parse: parseCountIn(1, 10_000),
    },
    cores: {
      value: 'n',
      description: 'number of processors that the sweep will have',
      default: 1,
      parse: parseCountIn(1, 100_000),
    },
  },
  settings: ['catalogue_dir', 'strategy_timeout_seconds', 'strategy_memory_mb'],
  examples: ['plan sweep bot.yaml -p fast=5:500:5 -p slow=20:2000:20 --cores 100'],
  async run(context, args, options) {
    const request = searchRequestOf(options);
    const { bot, job, source } = await prepareSearch(context, args.file, options);
    const { planSearch } = await import('../../../backtest/search/plan-search.ts');
    const { withTrialPool } = await import('../../../backtest/search/trial-pool.ts');
    const { estimateSearch } = await import('../../../backtest/shards/estimate-search.ts');
    const { sentStrategy } = await import('../../search-place.ts');
    const { showEstimate } = await import('../../show-estimate.ts');
    const { settings } = context;

    const search = planSearch(job, request, settings.strategy_timeout_seconds * 1000);
    const limits = {
      workers: 1,
      memoryMb: settings.strategy_memory_mb,
      columnMb: options.memory ?? DEFAULT_COLUMN_MB,
    };
    const strategy = await sentStrategy(bot);
    const estimate = await withTrialPool(source, limits, (runner) =>
      estimateSearch(search, strategy, runner, options.pilot),
    );
    const { cores } = options;
    const busy = Math.min(cores, estimate.parallel_shards);
    const { core_hours, input_bytes, shards } = estimate;
    const transfer_bytes = { workers: busy * input_bytes, pods: shards * input_bytes };
    const data = { ...estimate, cores, hours: core_hours / busy, transfer_bytes };
    return { data, show: (out) => showEstimate(out, data) };
  },
});
