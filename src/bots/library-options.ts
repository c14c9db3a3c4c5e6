import { inspect } from 'node:util';
import { z } from 'zod';
import { PROFILES, type Profile } from '../backtest/profiles.ts';
import type { SearchMethod } from '../backtest/search/search-method.ts';
import { SAMPLING_DEFAULTS } from '../backtest/search/search-method.ts';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';

/** Value of a parameter of a strategy. */
export type ParamValue = number | string | boolean;

/** Options of every function. */
export interface BotOptions {
  /** Directory to which relative paths of a spec object refer; the working directory by default. */
  readonly directory?: string | undefined;
  /** First day of the run, UTC, such as `2010-01-04`; overrides the spec. */
  readonly from?: string | undefined;
  /** Last day of the run, UTC, inclusive; overrides the spec. */
  readonly to?: string | undefined;
  /** Length of the last part of the data to leave out: a number and `y`, `mo`, `w` or `d`, such as `1y`. */
  readonly holdout?: string | undefined;
  /** Directory of `catalog://` datasets, and of the trial ledger; `~/.service-local` by default. */
  readonly home?: string | undefined;
  /** Time after which a strategy that does not return is stopped, in seconds; 30 by default. */
  readonly timeoutSeconds?: number | undefined;
  /** Memory of one run of your own strategy, MB; 1024 by default. */
  readonly memoryMb?: number | undefined;
  /** Stops the work. The promise then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `backtest`. */
export interface BacktestOptions extends BotOptions {
  /** Parameters of the strategy, which override the spec. */
  readonly params?: Readonly<Record<string, ParamValue>> | undefined;
  /** Series to compare with: a symbol of the bot, a file or `catalog://NAME`; overrides the spec. */
  readonly benchmark?: string | undefined;
  /** Includes the holdout in the run, and records that it was opened. */
  readonly openHoldout?: boolean | undefined;
  /** Gates in addition to those of the spec, such as `sharpe>=0.5`; `summary.gates` has the results. */
  readonly assert?: readonly string[] | undefined;
  /** Also computes figures by the conventions of another library, in `summary.profile`. */
  readonly profile?: Profile | undefined;
  /** Directory for the result files, such as `equity.parquet`; by default, none are written. */
  readonly out?: string | undefined;
}

/** Runs every combination, or chooses `trials` of them with a `seed`; 100 and 1 by default. */
export type SearchChoice =
  | { readonly kind: 'grid' }
  | {
      /** At random, or from earlier results with a tree-structured Parzen estimator. */
      readonly kind: 'random' | 'tpe';
      readonly trials?: number | undefined;
      /** Whole number below 2^32. */
      readonly seed?: number | undefined;
    };

/** A list, whose repeated values count once, or a text: `5:50:5`, `5:50`, `5:500:log` or `5,10,20`. */
export type ParamChoice = string | readonly ParamValue[];

/** Options of functions that search for parameters. */
export interface SearchOptions extends BotOptions {
  /** Values of each parameter to search. */
  readonly params: Readonly<Record<string, ParamChoice>>;
  /** A grid by default. */
  readonly search?: SearchChoice | undefined;
  /** Figures by which trials are ranked; `sharpe` by default. Several give a Pareto front. */
  readonly objective?: readonly string[] | undefined;
  /** Conditions that a trial must meet, such as `trades>=30`. */
  readonly where?: readonly string[] | undefined;
  /** Ends trials early if they rank low over the first part of the bars. */
  readonly prune?: boolean | undefined;
  /** Number of threads; the number of processors by default. The results do not depend on it. */
  readonly workers?: number | undefined;
}

/** Options of `sweep`. */
export interface SweepOptions extends SearchOptions {
  /** Directory for the result files, and for the trials from which the sweep resumes. */
  readonly out?: string | undefined;
  /** Called with the number of finished trials and the total number. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Options of `walkForward`. */
export interface WalkForwardOptions extends SweepOptions {
  /** Length of a training window: a number and `y`, `mo`, `w` or `d`, such as `3y`. */
  readonly train: string;
  /** Length of a test window, in the format of `train`. */
  readonly test: string;
  /** Time between training and test that neither uses, such as `5d`; none by default. */
  readonly embargo?: string | undefined;
  /** Whether every training window begins at the first bar; by default, all have the length `train`. */
  readonly anchored?: boolean | undefined;
}

/** Options of `robustness`. */
export interface RobustnessOptions extends Omit<SearchOptions, 'params' | 'prune'> {
  /** Values of each parameter to search; by default, the parameters of the bot are the only trial. */
  readonly params?: SearchOptions['params'] | undefined;
  /** Number of permutations of the price changes, 0 for none; 1000 by default, or none for a bot with models. */
  readonly permutations?: number | undefined;
  /** Blocks into which cross-validation splits the history, even, 4 to 24; 16 by default. */
  readonly blocks?: number | undefined;
  /** Seed of permutations and resamples, and of the search if it has none; 1 by default. */
  readonly seed?: number | undefined;
  /** Directory for the result files, and for the runs from which a test resumes. */
  readonly out?: string | undefined;
  /** Called with the name of a phase, the number of its finished runs, and the total number. */
  readonly onProgress?: ((phase: string, done: number, total: number) => void) | undefined;
}

// The message of each schema is what the option accepts.
const text = (accepts: string) => z.string(accepts).min(1, accepts);
const whole = (accepts: string, least: number, most: number) =>
  z.int(accepts).min(least, accepts).max(most, accepts);
const positive = (accepts: string) => z.number(accepts).positive(accepts);
const flag = z.boolean('true or false');
const path = text('the path of a directory');
const span = text('a length of time, such as 3y, 6mo, 2w or 5d');
const date = text('a date, such as 2010-01-04');
const callback = z.custom<(...given: unknown[]) => void>(
  (value) => typeof value === 'function',
  'a function',
);
const seed = whole('a whole number from 0 to 4294967295', 0, 2 ** 32 - 1);
const list = (accepts: string) => z.array(text(accepts), accepts).min(1, accepts);
const paramValue = z.union([z.number(), z.string(), z.boolean()], 'a number, text, true or false');
const CHOICE = 'a list of at least one value, or a text such as 5:50:5, 5:50 or 5:500:log';
const paramChoice = z.union(
  [z.array(paramValue).min(1, CHOICE), z.string().min(1, CHOICE)],
  CHOICE,
);
const paramChoices = z.record(
  z.string(),
  paramChoice,
  'an object with the values of each parameter',
);

/** Requires a schema for each option. */
type Shape<Options> = { readonly [Name in keyof Options]-?: z.ZodType<Options[Name]> };

const BOT = {
  directory: path.optional(),
  from: date.optional(),
  to: date.optional(),
  holdout: span.optional(),
  home: path.optional(),
  timeoutSeconds: positive('a number of seconds above 0').optional(),
  memoryMb: positive('a number of megabytes above 0').optional(),
  signal: z.instanceof(AbortSignal, { error: 'an AbortSignal' }).optional(),
} satisfies Shape<BotOptions>;

const SEARCH = {
  ...BOT,
  params: paramChoices.refine(
    (params) => Object.keys(params).length > 0,
    'an object with the values of at least one parameter',
  ),
  search: z
    .discriminatedUnion(
      'kind',
      [
        z.strictObject({ kind: z.literal('grid') }),
        z.strictObject({
          kind: z.enum(['random', 'tpe']),
          trials: whole('a whole number from 1 to 100000', 1, 100_000).optional(),
          seed: seed.optional(),
        }),
      ],
      "{ kind: 'grid' }, or { kind: 'random' } or { kind: 'tpe' } with trials and seed",
    )
    .optional(),
  objective: list('a list of at least one figure').optional(),
  where: z
    .array(text('a condition, such as trades>=30'), 'a list of conditions, such as trades>=30')
    .optional(),
  prune: flag.optional(),
  workers: whole('a whole number of threads from 1 to 1024', 1, 1024).optional(),
} satisfies Shape<SearchOptions>;

const SWEEP = {
  ...SEARCH,
  out: path.optional(),
  onProgress: callback.optional(),
} satisfies Shape<SweepOptions>;

const GATE = 'a gate, such as sharpe>=0.5';

export const backtestOptions = z.strictObject({
  ...BOT,
  params: z.record(z.string(), paramValue, 'an object with a value for each parameter').optional(),
  benchmark: text('a symbol of the bot, the path of a file, or catalog://NAME').optional(),
  openHoldout: flag.optional(),
  assert: z.array(text(GATE), 'a list of gates, such as sharpe>=0.5').optional(),
  profile: z.enum(PROFILES, `one of ${PROFILES.join(', ')}`).optional(),
  out: path.optional(),
} satisfies Shape<BacktestOptions>);

export const sweepOptions = z.strictObject(SWEEP);

export const walkForwardOptions = z.strictObject({
  ...SWEEP,
  train: span,
  test: span,
  embargo: span.optional(),
  anchored: flag.optional(),
} satisfies Shape<WalkForwardOptions>);

const { prune: _, ...UNPRUNED } = SEARCH;
const BLOCKS = 'an even whole number from 4 to 24';

export const robustnessOptions = z.strictObject({
  ...UNPRUNED,
  params: paramChoices.optional(),
  permutations: whole('a whole number from 0 to 1000000', 0, 1_000_000).optional(),
  blocks: whole(BLOCKS, 4, 24).multipleOf(2, BLOCKS).optional(),
  seed: seed.optional(),
  out: path.optional(),
  onProgress: callback.optional(),
} satisfies Shape<RobustnessOptions>);

/** @throws ServiceError `usage` that names the first wrong option, its value, and what it accepts */
export function checkOptions(schema: z.ZodObject, given: unknown): void {
  const { error } = schema.safeParse(given);
  if (error === undefined) return;
  const [issue] = error.issues as [z.core.$ZodIssue];
  if (issue.code === 'unrecognized_keys') throw unknownOption(issue, schema);
  const [at, value] = [issue.path.map(String).join('.'), valueAt(given, issue.path)];
  const accepts = issue.message;
  const what = at === '' ? 'the options are' : `option ${at} is`;
  throw new ServiceError('usage', `${what} ${write(value)}`, {
    remedy: `It accepts ${at === '' ? 'an object' : accepts}.`,
  });
}

function unknownOption(
  { path: at, keys }: { readonly path: readonly PropertyKey[]; readonly keys: readonly string[] },
  schema: z.ZodObject,
): ServiceError {
  const name = [...at, keys[0]!].join('.');
  const known = at.length > 0 ? ['kind', 'trials', 'seed'] : Object.keys(schema.shape);
  const near = closest(keys[0]!, known);
  return new ServiceError('usage', `unknown option ${name}`, {
    remedy:
      near !== undefined && near !== keys[0]
        ? `Did you mean ${near}?`
        : at.length > 0
          ? 'A grid has only kind; random and tpe also have trials and seed.'
          : `The options are ${known.join(', ')}.`,
  });
}

function valueAt(value: unknown, at: readonly PropertyKey[]): unknown {
  return at.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown>)[key], value);
}

/**
 * Writes the content of a bot as JSON.
 *
 * @throws ServiceError `usage` for a value without JSON
 */
export function writeContent(bot: unknown): string {
  let cause: unknown;
  try {
    const content = JSON.stringify(bot) as string | undefined;
    if (content !== undefined) return content;
  } catch (error) {
    cause = error;
  }
  throw new ServiceError('usage', `the bot is ${write(bot)}`, {
    remedy: 'Give the path of a bot file, or its content without BigInts and circular objects.',
    cause,
  });
}

/** A value as its author would write it, on one line of at most 60 characters. */
function write(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  const written =
    typeof value === 'string'
      ? JSON.stringify(value)
      : inspect(value, { depth: 2, customInspect: false }).replaceAll(/\s+/g, ' ');
  return written.length > 60 ? `${written.slice(0, 59)}…` : written;
}

/** Runs some work that uses an option, and names the option in its error. */
export function inOption<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message, remedy } = error;
    throw new ServiceError(code, `option ${name}: ${message}`, {
      ...(remedy !== undefined && { remedy }),
      cause: error,
    });
  }
}

export function searchMethodOf(
  search: SearchChoice = { kind: 'grid' },
  defaultSeed: number = SAMPLING_DEFAULTS.seed,
): SearchMethod {
  if (search.kind === 'grid') return search;
  const { kind, trials = SAMPLING_DEFAULTS.trials, seed: own = defaultSeed } = search;
  return { kind, trials, seed: own };
}
