import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Params } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import { ServiceError, writeRemedy, type Problem } from '../base/errors.ts';
import type { ColumnNames } from '../market/header.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { parseSpec } from './parse.ts';

/** What a new bot is made from. */
export interface BotPlan {
  readonly name: string;
  readonly slug: string;
  /** Name of a built-in strategy, or `module` for one of one's own. */
  readonly strategy: string;
  readonly symbol: string;
  /** Account currency, as a decimal number. */
  readonly cash: string;
  /** Relative to the bot's directory, or `catalog://`; the bundled S&P 500 when absent. */
  readonly source?: string;
  /** Of the source; a day when absent. */
  readonly timeframe?: string;
  /** How the source is read, see `data` of the spec. */
  readonly columns?: ColumnNames | undefined;
  readonly repair?: 'drop' | undefined;
}

/** `My bot` and `my-bot` for the directory `~/bots/my_bot`. */
export function namesFor(directory: string): Pick<BotPlan, 'name' | 'slug'> {
  const words =
    basename(resolve(directory))
      .replaceAll(/[-_.\s]+/g, ' ')
      .trim() || 'bot';
  return { name: words[0]!.toUpperCase() + words.slice(1), slug: slugOf(words) };
}

/** Lower-case words joined by hyphens, whatever the name is written in. */
export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{Mark}/gu, '')
    .toLowerCase();
  const words = plain.split(/[^a-z0-9]+/).filter((word) => word !== '');
  return words.join('-').slice(0, 64).replace(/-$/, '') || 'bot';
}

/** What keeps a plan from being a valid bot. */
export function planProblems(plan: BotPlan): readonly Problem[] {
  return parseSpec(specText(plan), 'bot.yaml').problems;
}

const BUNDLED = 'sp500-daily.csv';

/** The files of a new bot by path relative to its directory. The plan has no problems. */
export function botFiles(plan: BotPlan): ReadonlyMap<string, string> {
  const example = (path: string): string => readFileSync(join(examples(), path), 'utf8');
  const files = new Map([
    ['bot.yaml', specText(plan)],
    ['README.md', readmeText(plan)],
    ['.gitignore', 'node_modules/\nruns/\n'],
  ]);
  if (plan.strategy === 'module') {
    files.set('strategy.ts', example('strategies/my-strategy.ts'));
    files.set('tsconfig.json', `${JSON.stringify(TSCONFIG, null, 2)}\n`);
  }
  if (plan.source === undefined) {
    files.set(`data/${BUNDLED}`, example(`data/${BUNDLED}`));
    files.set('data/README.md', example('data/README.md'));
  }
  return files;
}

/** @throws ServiceError `conflict` naming every one of the files that is there already. */
export function refuseToOverwrite(directory: string, names: Iterable<string>): void {
  const present = [...names]
    .map((name) => join(directory, name))
    .filter((path) => existsSync(path));
  if (present.length === 0) return;
  throw new ServiceError('conflict', `already there: ${present.join(', ')}`, {
    remedy: 'Choose another directory, or overwrite these files with --force.',
  });
}

/**
 * Writes the files, over any that are there.
 *
 * @returns their paths.
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
    throw new ServiceError('output_not_writable', `cannot write into ${directory}`, {
      remedy: writeRemedy(cause, 'Choose a directory that you may write to.'),
      cause,
    });
  }
  return [...files.keys()].map((name) => join(directory, name));
}

function examples(): string {
  const manifest = createRequire(import.meta.url).resolve('service-local/package.json');
  return join(dirname(manifest), 'examples');
}

/** JSON strings are YAML too, and need no thought about what a name may hold. */
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
  return `# What this bot trades, on which data, by which strategy, at which costs.
# \`service-local schema\` prints the JSON Schema of this file for your editor.
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
    fill: next_open # an order placed on a close is filled at the next open
    units: fractional # or whole
    fees: { model: percent, rate: "0.001" } # 0.1 % of what is traded
    slippage: { model: basis_points, bps: 2 } # 0.02 % against every order
    seed: 1
  # metrics: # a result outside of these fails the run: exit code 5
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

function startingParams(strategy: string): Readonly<Record<string, string | number | boolean>> {
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

\`bot.yaml\` describes the bot${strategy === 'module' ? ', `strategy.ts` is what it does' : ''}.

\`\`\`sh
service-local validate bot.yaml
service-local backtest bot.yaml
service-local ${third}
\`\`\`

Results go to \`runs/\`; open the \`report.html\` that a backtest names.
`;
}

/** What strategies import, as it lies on this machine: declarations beside compiled code, else source. */
const STRATEGY_TYPES = new URL(
  import.meta.url.endsWith('.ts') ? '../engine/api.ts' : '../engine/api.d.ts',
  import.meta.url,
);

/** For editors only: strategies are run as they are, their types erased. */
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
