import { relative, resolve, sep } from 'node:path';
import { namesFor, planProblems, slugOf, type BotPlan } from '../bots/init.ts';
import { ServiceError } from '../base/errors.ts';
import { promptOn } from './ask.ts';
import type { Context } from './verb.ts';

/** Options of `init`, completed by the answers to its prompts. */
type Given = {
  readonly [K in 'name' | 'slug' | 'strategy' | 'symbol' | 'data' | 'cash']: string | undefined;
} & Pick<BotPlan, 'columns' | 'repair'>;

export async function makePlan(
  directory: string,
  given: Given,
  context: Context,
): Promise<BotPlan> {
  const preset = namesFor(directory);
  const { name = preset.name, data, strategy = 'module', cash = '100000' } = given;
  const slug = given.slug ?? (given.name === undefined ? preset.slug : slugOf(name));
  const plan = { name, slug, strategy, cash, symbol: given.symbol ?? symbolOf(data) };
  if (data === undefined) return plan;
  const { columns, repair } = given;
  const reading = { columns, repair };
  return { ...plan, ...reading, ...(await readSource(data, reading, directory, context)) };
}

/** Reads the data, to check them and to find the timeframe. */
async function readSource(
  data: string,
  reading: Pick<BotPlan, 'columns' | 'repair'>,
  directory: string,
  { cwd, settings }: Context,
): Promise<Pick<BotPlan, 'source' | 'timeframe'>> {
  const { isCatalogued } = await import('../market/catalogue.ts');
  const { loadDataset } = await import('../market/load-dataset.ts');
  const source = isCatalogued(data) ? data : resolve(cwd, data);
  const catalogueDir = settings.catalogue_dir;
  const { timeframe } = await loadDataset({ source, catalogueDir, ...reading });
  const path = relative(directory, source).split(sep).join('/');
  const written = path.startsWith('.') || path.startsWith('/') ? path : `./${path}`;
  return { source: isCatalogued(data) ? data : written, timeframe: timeframe.name };
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

/** @throws ServiceError `usage` with the options that are invalid */
export function checkPlan(plan: BotPlan): void {
  const problems = planProblems(plan);
  if (problems.length === 0) return;
  const faults = problems.map(
    ({ pointer, message }) => `${FLAGS[pointer ?? ''] ?? pointer} ${message}`,
  );
  throw new ServiceError('usage', faults.join('; '));
}

/** Prompts for all values that the options do not give. */
export async function askForMissing(
  directory: string,
  given: Given,
  strategies: readonly string[],
  context: Context,
): Promise<Given> {
  const { input, select } = await import('@inquirer/prompts');
  const preset = namesFor(directory);
  const sample: BotPlan = { ...preset, strategy: 'module', symbol: 'SPX', cash: '100000' };
  const question = (
    message: string,
    field: 'name' | 'slug' | 'symbol' | 'cash',
    standard: string,
  ) =>
    given[field] ??
    promptOn(context.io, (terminal) =>
      input(
        {
          message,
          default: standard,
          validate: (value) => planProblems({ ...sample, [field]: value })[0]?.message ?? true,
        },
        terminal,
      ),
    );
  const isReadable = (file: string) =>
    file === '' ||
    readSource(file, given, directory, context).then(
      () => true,
      (error: unknown) => (error instanceof ServiceError ? error.message : Promise.reject(error)),
    );

  const name = await question('Name of the bot?', 'name', preset.name);
  const slug = await question('Slug, for files and commands?', 'slug', slugOf(name));
  const choices = strategies.map((value) => ({
    value,
    name: value === 'module' ? 'my own file, in TypeScript' : value,
  }));
  const strategy =
    given.strategy ??
    (await promptOn(context.io, (terminal) =>
      select({ message: 'Which strategy?', choices }, terminal),
    ));
  const message = 'CSV or Parquet file with prices? (empty: the bundled S&P 500)';
  const prices =
    given.data ??
    (await promptOn(context.io, (terminal) => input({ message, validate: isReadable }, terminal)));
  const data = prices === '' ? undefined : prices;
  const symbol = await question('Symbol of these prices?', 'symbol', symbolOf(data));
  const cash = await question('Starting cash?', 'cash', sample.cash);
  return { ...given, name, slug, strategy, data, symbol, cash };
}
