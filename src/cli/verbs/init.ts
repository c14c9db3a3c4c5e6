import { relative, resolve, sep } from 'node:path';
import {
  INITIAL_STRATEGIES,
  botFiles,
  namesFor,
  planProblems,
  refuseToOverwrite,
  slugOf,
  writeBot,
  type BotPlan,
} from '../../bots/init.ts';
import { ServiceError } from '../../errors.ts';
import { defineVerb, type Context } from '../verb.ts';

type Given = {
  readonly [K in 'name' | 'slug' | 'strategy' | 'symbol' | 'data' | 'cash']: string | undefined;
};

export const verb = defineVerb({
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
      choices: INITIAL_STRATEGIES,
    },
    data: {
      value: 'file',
      description: 'CSV or Parquet file, or catalog://NAME, in place of the S&P 500',
      complete: 'file',
    },
    symbol: { value: 'symbol', description: 'what the data are the prices of' },
    cash: { value: 'amount', description: 'money at the start' },
    force: { description: 'overwrite files that are there already' },
  },
  settings: ['catalogue_dir'],
  examples: ['init my-bot', 'init my-bot --no-input --strategy rsi_reversion --data ./btc.parquet'],
  async run(context, args, options) {
    const directory = resolve(context.cwd, args.dir ?? '.');
    // Before anything is asked: answers that lead nowhere are a waste.
    if (!options.force) refuseToOverwrite(directory, ['bot.yaml']);
    const given = context.interactive ? await ask(directory, options, context) : options;
    const plan = await planFor(directory, given, context);
    refuse(plan);
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

async function planFor(directory: string, given: Given, context: Context): Promise<BotPlan> {
  const preset = namesFor(directory);
  const { name = preset.name, data, strategy = 'module', cash = '100000' } = given;
  const slug = given.slug ?? (given.name === undefined ? preset.slug : slugOf(name));
  const plan = { name, slug, strategy, cash, symbol: given.symbol ?? symbolOf(data) };
  return data === undefined ? plan : { ...plan, ...(await sourceOf(data, directory, context)) };
}

/** Reads the data, so that what is written runs at once, and finds out how long a bar is. */
async function sourceOf(
  data: string,
  directory: string,
  { cwd, settings }: Context,
): Promise<Pick<BotPlan, 'source' | 'timeframe'>> {
  const { loadDataset } = await import('../../market/load.ts');
  const isCatalogue = data.startsWith('catalog://');
  const source = isCatalogue ? data : resolve(cwd, data);
  const { timeframe } = await loadDataset({ source, catalogueDir: settings.catalogue_dir });
  const path = relative(directory, source).split(sep).join('/');
  const written = path.startsWith('.') || path.startsWith('/') ? path : `./${path}`;
  return { source: isCatalogue ? data : written, timeframe: timeframe.name };
}

/** `BTC-USD` for `./prices/btc-usd.csv`. */
function symbolOf(data: string | undefined): string {
  if (data === undefined) return 'SPX';
  const name = data
    .split(/[/\\]/)
    .at(-1)!
    .replace(/\.(csv|parquet)(\.gz)?$/i, '');
  return name.toUpperCase().replaceAll(/[^!-~]+/g, '_') || 'SYMBOL';
}

const FLAGS: Readonly<Record<string, string>> = {
  '/metadata/name': '--name',
  '/metadata/slug': '--slug',
  '/spec/universe/symbols/0': '--symbol',
  '/spec/engine/cash': '--cash',
};

function refuse(plan: BotPlan): void {
  const problems = planProblems(plan);
  if (problems.length === 0) return;
  const faults = problems.map(
    ({ pointer, message }) => `${FLAGS[pointer ?? ''] ?? pointer} ${message}`,
  );
  throw new ServiceError('usage', faults.join('; '));
}

/** Asks a person for all that the options leave open. */
async function ask(directory: string, given: Given, context: Context): Promise<Given> {
  const { input, select } = await import('@inquirer/prompts');
  const { stdin, stderr } = context.io;
  const terminal = { input: stdin, output: stderr };
  const preset = namesFor(directory);
  const sample: BotPlan = { ...preset, strategy: 'module', symbol: 'SPX', cash: '100000' };
  const question = (
    message: string,
    field: 'name' | 'slug' | 'symbol' | 'cash',
    standard: string,
  ) =>
    given[field] ??
    input(
      {
        message,
        default: standard,
        validate: (value) => planProblems({ ...sample, [field]: value })[0]?.message ?? true,
      },
      terminal,
    );
  const isReadable = (file: string) =>
    file === '' ||
    sourceOf(file, directory, context).then(
      () => true,
      (error: unknown) => (error instanceof ServiceError ? error.message : Promise.reject(error)),
    );

  const name = await question('What is the bot called?', 'name', preset.name);
  const slug = await question('And in files and commands?', 'slug', slugOf(name));
  const choices = INITIAL_STRATEGIES.map((value) => ({
    value,
    name: value === 'module' ? 'a file of my own, in TypeScript' : value,
  }));
  const strategy =
    given.strategy ?? (await select({ message: 'Which strategy?', choices }, terminal));
  const message = 'CSV or Parquet file of prices? (empty: the bundled S&P 500)';
  const prices = given.data ?? (await input({ message, validate: isReadable }, terminal));
  const data = prices === '' ? undefined : prices;
  const symbol = await question('What are these the prices of?', 'symbol', symbolOf(data));
  const cash = await question('Money at the start?', 'cash', sample.cash);
  return { name, slug, strategy, data, symbol, cash };
}
