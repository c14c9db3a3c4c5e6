import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Params } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { writeRemedy } from '../base/system-errors.ts';
import type { ColumnNames } from '../market/header.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { parseSpec } from './parse.ts';

export interface BotPlan {
  readonly name: string;
  readonly slug: string;
  /** Name of a built-in strategy, or `module` for a file with a custom one. */
  readonly strategy: string;
  readonly symbol: string;
  /** Account currency, decimal text. */
  readonly cash: string;
  /** Path relative to the bot's directory, or `catalog://NAME`. Default: the bundled S&P 500 data. */
  readonly source?: string;
  /** Timeframe of the source. Default: `1d`. */
  readonly timeframe?: string;
  /** See `data` of the spec. */
  readonly columns?: ColumnNames | undefined;
  readonly repair?: 'drop' | undefined;
}

/** Example: `My bot` and `my-bot` for the directory `~/bots/my_bot`. */
export function namesFor(directory: string): Pick<BotPlan, 'name' | 'slug'> {
  const words =
    basename(resolve(directory))
      .replaceAll(/[-_.\s]+/g, ' ')
      .trim() || 'bot';
  return { name: words[0]!.toUpperCase() + words.slice(1), slug: slugOf(words) };
}

/** Converts a name to a valid slug; `bot` if no letter or digit remains. */
export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{Mark}/gu, '')
    .toLowerCase();
  const words = plain.split(/[^a-z0-9]+/).filter((word) => word !== '');
  return words.join('-').slice(0, 64).replace(/-$/, '') || 'bot';
}

export function planProblems(plan: BotPlan): readonly Problem[] {
  return parseSpec(specText(plan), 'bot.yaml').problems;
}

const BUNDLED = 'sp500-daily.csv';

/** Files of a new bot by path relative to its directory. Expects a plan without problems. */
export function botFiles(plan: BotPlan): ReadonlyMap<string, string> {
  const files = new Map([
    ['bot.yaml', specText(plan)],
    ['README.md', readmeText(plan)],
    ['.gitignore', 'node_modules/\nruns/\n'],
  ]);
  if (plan.strategy === 'module') {
    files.set('strategy.ts', exampleStrategy());
    files.set('tsconfig.json', `${JSON.stringify(TSCONFIG, null, 2)}\n`);
  }
  if (plan.source === undefined) {
    files.set(`data/${BUNDLED}`, example(`data/${BUNDLED}`));
    files.set('data/README.md', example('data/README.md'));
  }
  return files;
}

/** Code of a strategy to start from; `startingParams('module')` has its parameters. */
export function exampleStrategy(): string {
  return example('strategies/my-strategy.ts');
}

/** @throws ServiceError `conflict` that lists the files that exist. */
export function refuseToOverwrite(directory: string, names: Iterable<string>): void {
  const present = [...names]
    .map((name) => join(directory, name))
    .filter((path) => existsSync(path));
  if (present.length === 0) return;
  throw new ServiceError('conflict', `files exist already: ${present.join(', ')}`, {
    remedy: 'Choose another directory, or overwrite these files with --force.',
  });
}

/**
 * Writes the files and overwrites existing ones.
 *
 * @returns the paths written.
 * @throws ServiceError `output_not_writable`.
 */
export function writeBot(directory: string, files: ReadonlyMap<string, string>): readonly string[] {
  try {
    for (const [name, content] of files) {
      const path = join(directory, name);
      makeDirectory(dirname(path));
      writeFileSync(path, content);
    }
  } catch (cause) {
    throw new ServiceError('output_not_writable', `cannot write to ${directory}`, {
      remedy: writeRemedy(cause, 'Choose a directory that you may write to.'),
      cause,
    });
  }
  return [...files.keys()].map((name) => join(directory, name));
}

function example(path: string): string {
  const manifest = createRequire(import.meta.url).resolve('service-local/package.json');
  return readFileSync(join(dirname(manifest), 'examples', path), 'utf8');
}

/** A JSON string is valid YAML, whatever characters it contains. */
const quoted = (text: string): string => JSON.stringify(text);

function specText({
  name,
  slug,
  strategy,
  symbol,
  cash,
  source,
  timeframe = '1d',
  columns,
  repair,
}: BotPlan): string {
  const data = [
    `source: ${quoted(source ?? `./data/${BUNDLED}`)}`,
    `timeframe: ${timeframe}`,
    ...(columns === undefined ? [] : [`columns: ${JSON.stringify(columns)}`]),
    ...(repair === undefined ? [] : [`repair: ${repair}`]),
  ];
  return `# The instruments, data, strategy and costs of this bot.
# \`service-local schema\` prints a JSON Schema of this file for your editor.
apiVersion: bots/v1
kind: Bot
metadata:
  name: ${quoted(name)}
  slug: ${quoted(slug)}
spec:
  kind: trading
  universe: { symbols: [${quoted(symbol)}], currency: USD }
  data: { ${data.join(', ')} }
  strategy: { ${strategyText(strategy)} }
  engine:
    cash: ${quoted(cash)}
    fill: next_open # orders placed at a close are filled at the next open
    units: fractional # or whole
    fees: { model: percent, rate: "0.001" } # 0.1 % of the traded value
    slippage: { model: basis_points, bps: 2 } # 0.02 % against every order
    seed: 1
  # metrics: # a result outside these bounds fails the run: exit code 5
  #   - { name: sharpe, min: 0.1 }
  #   - { name: max_drawdown, min: -0.5 }
`;
}

/** The parameters of the strategy in `examples/strategies/my-strategy.ts`. */
const MODULE_PARAMS = { fast: 10, slow: 30 };

function strategyText(strategy: string): string {
  const choice = strategy === 'module' ? 'module: ./strategy.ts' : `name: ${quoted(strategy)}`;
  const params = Object.entries(startingParams(strategy)).map(([key, value]) => `${key}: ${value}`);
  return params.length === 0 ? choice : `${choice}, params: { ${params.join(', ')} }`;
}

/** Default parameters of a built-in strategy, or of `module`. */
export function startingParams(
  strategy: string,
): Readonly<Record<string, string | number | boolean>> {
  if (strategy === 'module') return MODULE_PARAMS;
  const declared: Params = BUILT_IN_STRATEGIES.get(strategy)?.params ?? {};
  return Object.fromEntries(Object.entries(declared).map(([key, param]) => [key, param.default]));
}

function readmeText({ name, strategy }: BotPlan): string {
  const [swept] = Object.entries(startingParams(strategy));
  const third =
    typeof swept?.[1] === 'number'
      ? `backtest sweep bot.yaml -p ${swept[0]}=${swept[1] / 2}:${swept[1] * 2}:${swept[1] / 2}`
      : 'backtest bot.yaml --json';
  return `# ${name}

\`bot.yaml\` describes the bot${strategy === 'module' ? ', `strategy.ts` contains its strategy' : ''}.

\`\`\`sh
service-local validate bot.yaml
service-local backtest bot.yaml
service-local ${third}
\`\`\`

Results are written to \`runs/\`. Open the \`report.html\` whose path a backtest prints.
`;
}

/** Types that strategies import: declarations in the installed package, sources in a checkout. */
const STRATEGY_TYPES = new URL(
  import.meta.url.endsWith('.ts') ? '../engine/api.ts' : '../engine/api.d.ts',
  import.meta.url,
);

/** For editors only: strategies run without a build, with their types erased. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'preserve',
    strict: true,
    noEmit: true,
    types: [],
    skipLibCheck: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    paths: { 'service-local/strategy': [fileURLToPath(STRATEGY_TYPES)] },
  },
  include: ['**/*.ts'],
};
