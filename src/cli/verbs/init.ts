import { relative, resolve } from 'node:path';
import { BUILT_IN_STRATEGIES } from '../../engine/strategies/built-in.ts';
import { DATA_OPTIONS } from '../data-options.ts';
import { defineVerb } from '../verb.ts';

/** A custom file, or a built-in strategy that needs only one symbol. */
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
  summary: 'write a bot that is ready to run',
  description:
    'Writes a bot that is ready to run: bot.yaml, a strategy in TypeScript and 20 years of daily ' +
    'S&P 500 bars. Asks for missing options; with --no-input, it uses the defaults.',
  arguments: {
    dir: {
      description: 'where to write, the current directory by default',
      optional: true,
      complete: 'directory',
    },
  },
  options: {
    name: { value: 'text', description: 'display name of the bot' },
    slug: { value: 'words', description: 'name in files and commands: lower-case-words' },
    strategy: {
      value: 'name',
      description: 'a file of your own (module), or a built-in strategy',
      choices: STRATEGIES,
    },
    data: {
      value: 'file',
      description: 'CSV or Parquet file, or catalog://NAME (default: the S&P 500)',
      complete: 'file',
    },
    ...DATA_OPTIONS,
    symbol: { value: 'symbol', description: 'symbol of the instrument in the data' },
    cash: { value: 'amount', description: 'initial cash' },
    force: { description: 'overwrite existing files' },
  },
  settings: ['catalogue_dir'],
  examples: ['init my-bot', 'init my-bot --no-input --strategy rsi_reversion --data ./btc.parquet'],
  async run(context, args, options) {
    const { botFiles, refuseToOverwrite, writeBot } = await import('../../bots/init.ts');
    const { askForMissing, makePlan, checkPlan } = await import('../new-bot.ts');
    const directory = resolve(context.cwd, args.dir ?? '.');
    // Checked first, so that the user does not answer questions in vain.
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
        if (place !== '') out.line(`  cd ${shellWord(place)}`);
        out.line('  service-local backtest bot.yaml');
      },
    };
  },
});

/** Quotes a path for a POSIX shell, if that is necessary. */
function shellWord(path: string): string {
  return /^[\w./+@%:][\w./+@%:-]*$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
