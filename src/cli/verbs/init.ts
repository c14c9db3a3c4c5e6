import { relative, resolve } from 'node:path';
import { BUILT_IN_STRATEGIES } from '../../engine/strategies/built-in.ts';
import { DATA_OPTIONS } from '../data-options.ts';
import { defineVerb } from '../verb.ts';

/** A file of one's own, and the built-in strategies that run on the one symbol of a new bot. */
const STRATEGIES: readonly string[] = [
  'module',
  ...[...BUILT_IN_STRATEGIES.values()]
    .filter(
      ({ instruments, shorts, signals }) =>
        (instruments?.min ?? 1) === 1 && shorts !== true && signals === undefined,
    )
    .map(({ name }) => name),
];

export const verb = defineVerb({
  summary: 'write a bot that runs at once',
  description:
    'Writes a bot that runs at once: bot.yaml, a strategy in TypeScript, 20 years of daily S&P 500 ' +
    'bars. Asks for what no option gives; with --no-input it takes the defaults.',
  arguments: {
    dir: {
      description: 'where to write, the current directory by default',
      optional: true,
      complete: 'directory',
    },
  },
  options: {
    name: { value: 'text', description: 'what people call the bot' },
    slug: { value: 'words', description: 'what files and commands call it: lower-case-words' },
    strategy: {
      value: 'name',
      description: 'a file of your own (module), or a built-in strategy',
      choices: STRATEGIES,
    },
    data: {
      value: 'file',
      description: 'CSV or Parquet file, or catalog://NAME, in place of the S&P 500',
      complete: 'file',
    },
    ...DATA_OPTIONS,
    symbol: { value: 'symbol', description: 'what the data are the prices of' },
    cash: { value: 'amount', description: 'money at the start' },
    force: { description: 'overwrite files that are there already' },
  },
  settings: ['catalogue_dir'],
  examples: ['init my-bot', 'init my-bot --no-input --strategy rsi_reversion --data ./btc.parquet'],
  async run(context, args, options) {
    const { botFiles, refuseToOverwrite, writeBot } = await import('../../bots/init.ts');
    const { askForMissing, makePlan, checkPlan } = await import('../new-bot.ts');
    const directory = resolve(context.cwd, args.dir ?? '.');
    // Before anything is asked: answers that lead nowhere are a waste.
    if (!options.force) refuseToOverwrite(directory, ['bot.yaml']);
    const given = context.interactive
      ? await askForMissing(directory, options, STRATEGIES, context)
      : options;
    const plan = await makePlan(directory, given, context);
    checkPlan(plan);
    const draft = botFiles(plan);
    if (!options.force) refuseToOverwrite(directory, draft.keys());
    const files = writeBot(directory, draft);
    const place = relative(context.cwd, directory);
    return {
      data: { directory, files },
      show(out) {
        for (const file of files) out.line(relative(context.cwd, file));
        out.line();
        out.line('Next:');
        if (place !== '') out.line(`  cd ${place}`);
        out.line('  service-local backtest bot.yaml');
      },
    };
  },
});
