import type { SettingSources } from '../base/resolve-settings.ts';
import type { FlagSetting, Settings } from '../base/settings.ts';
import type { ServiceError } from '../base/errors.ts';
import type { Output, Progress } from './output.ts';

/**
 * A verb is one file in `src/cli/verbs/`, and the path of the file is what a person types:
 * `bots/deploy/status.ts` is `bots deploy status`. The file exports `verb`: its summary, arguments and
 * options, and a function that returns data and a way to print them. The CLI does the rest: parsing,
 * help, completion, `--json`, exit codes.
 *
 * ```ts
 * import { ServiceError } from '../../base/errors.ts';
 * import { defineVerb } from '../verb.ts';
 *
 * export const verb = defineVerb({
 *   summary: 'run a bot over its history',
 *   arguments: {
 *     spec: { description: 'bot file', complete: 'file' },                  // args.spec: string
 *   },
 *   options: {
 *     out: { value: 'dir', description: '…', complete: 'directory' },       // string | undefined
 *     name: { value: 'text', description: '…', required: true },            // string
 *     assert: { value: 'gate', description: '…', repeat: true },            // string[]
 *     profile: { value: 'name', description: '…', choices: ['lean', 'native'], default: 'native' },
 *     from: { value: 'time', description: '…', parse: parseTime },          // what parseTime returns
 *     verifyLock: { description: '…' },                                     // --verify-lock: boolean
 *   },
 *   settings: ['workers'],                 // adds --workers; read as context.settings.workers
 *   examples: ['backtest bot.yaml --out ./result', 'backtest bot.yaml --json | jq .risk.sharpe'],
 *   async run(context, args, options) {
 *     const { checkBot } = await import('../../bots/load.ts');
 *     const { bot, problems } = checkBot(args.spec);
 *     return {
 *       data: { hash: bot?.hash ?? null, problems },    // the document of --json
 *       show: (out) => out.table([{ title: 'problems', align: 'right' }], [['2']]),
 *       failure: bot ? undefined : new ServiceError('invalid_spec', '…', { problems }),
 *     };
 *   },
 * });
 * ```
 *
 * Rules. A verb file is loaded for its help and for completion too, so what is slow to load and
 * only `run` needs is imported inside `run`. Data go to stdout through the answer only; everything
 * else a person may want to read goes to stderr through `context.message` and `context.progress`.
 * An expected failure is a thrown `ServiceError`; one that comes together with data (a gate not
 * met, a sweep interrupted half-way) is the answer's `failure`. `parse` throws
 * `ServiceError('usage', …)`; the frame adds the option's name.
 */
export function defineVerb<
  const A extends Readonly<Record<string, ArgumentSpec>> = NoSpecs,
  const O extends Readonly<Record<string, OptionSpec>> = NoSpecs,
>(verb: Verb<A, O>): Verb<A, O> {
  return verb;
}

export interface Verb<A = Arguments, O = Options> {
  /** One line for the list of verbs, without a period. */
  readonly summary: string;
  /** A paragraph for the verb's own help, below its summary. */
  readonly description?: string;
  /** By name, in the order they are typed. */
  readonly arguments?: A;
  /** By name in camel case: `verifyLock` is typed `--verify-lock`. */
  readonly options?: O;
  /** Settings the verb honours: each becomes an option, the strongest of its sources. */
  readonly settings?: readonly FlagSetting[];
  /** Runs, without the settings of the user file, where this user may not read that file. */
  readonly runsWithoutUserFile?: true;
  /** Command lines as typed after `service-local `; at least one. */
  readonly examples: readonly string[];
  run(
    context: Context,
    args: ArgumentValues<A>,
    options: OptionValues<O>,
  ): Answer | Promise<Answer>;
}

/** A verb that is not loaded yet. */
export interface VerbEntry {
  /** The words that call it. A longer path wins: `backtest sweep` over `backtest`. */
  readonly path: readonly string[];
  readonly load: () => Promise<{ readonly verb: Verb }>;
}

export interface LoadedVerb {
  readonly path: readonly string[];
  readonly verb: Verb;
}

export async function loadVerbs(entries: readonly VerbEntry[]): Promise<LoadedVerb[]> {
  return Promise.all(entries.map(async ({ path, load }) => ({ path, verb: (await load()).verb })));
}

export interface ArgumentSpec {
  readonly description: string;
  readonly optional?: true;
  /** Takes all that follow; the value is an array. Only the last argument can. */
  readonly variadic?: true;
  readonly choices?: readonly string[];
  readonly complete?: Completion;
}

export interface OptionSpec {
  readonly description: string;
  /** One letter: `p` is typed `-p`. */
  readonly short?: string;
  /** Of a flag with which the verb answers with a `stream`: an error is then a line, too. */
  readonly streams?: true;
  /** What to call the value in help. Without it the option is a flag. */
  readonly value?: string;
  /** Of an option with a value: there is no verb without it. */
  readonly required?: true;
  /** May be given several times; the value is an array, empty when never given. */
  readonly repeat?: true;
  readonly choices?: readonly string[];
  /** Turns the text into the value, or throws `ServiceError('usage', what is wrong with it)`. */
  readonly parse?: (text: string) => unknown;
  readonly default?: string | number;
  readonly complete?: Completion;
}

/** What the shell offers for a value: names of files, of directories, or these words. `choices` are offered anyway. */
export type Completion = 'file' | 'directory' | readonly string[];

/** What a verb hands back. */
export interface Answer {
  /** Printed by `--json`: one document. */
  readonly data: unknown;
  /** Printed by `--json` instead: one document a line, as they come. For what ends only with Ctrl-C. */
  readonly stream?: AsyncIterable<unknown> | undefined;
  /** Shows the same to a person, on stdout; also what is still to come, until that has ended. */
  readonly show: (out: Output) => void | Promise<void>;
  /** Told on stderr after the data; its code decides the exit code. */
  readonly failure?: ServiceError | undefined;
  /** What the answer is to a script that asked; 0 unless there is a failure. */
  readonly exitCode?: number;
}

/** What a verb is given besides its arguments. */
export interface Context {
  /** All verbs. */
  readonly verbs: readonly VerbEntry[];
  /** Absolute. */
  readonly cwd: string;
  readonly io: Io;
  readonly settings: Settings;
  readonly settingSources: SettingSources;
  /** False with `--no-input` or `--json`, or when a script and not a person is on the terminal. */
  readonly interactive: boolean;
  /**
   * Aborted, with a `ServiceError('interrupted')` as its reason, by Ctrl-C or SIGTERM; a second
   * Ctrl-C kills. A verb that never reads it is killed by the first: only reading it promises to
   * stop in good order.
   */
  readonly signal: AbortSignal;
  /** A line on stderr, silenced by `--quiet`. */
  readonly message: (text: string) => void;
  /**
   * A bar on stderr, drawn only on a terminal and without `--quiet`. `before` is how much of the
   * total an earlier run has done.
   */
  readonly progress: (label: string, total: number, before?: number) => Progress;
}

/** The parts of `process` that the CLI touches. */
export type Io = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'cwd' | 'exit'>;

type NoSpecs = { readonly [name in never]: never };
export type Arguments = Readonly<Record<string, ArgumentSpec>>;
export type Options = Readonly<Record<string, OptionSpec>>;

/** Of arguments not known one by one, only what all can be is known. */
export type ArgumentValues<A> = string extends keyof A
  ? Readonly<Record<string, string | readonly string[] | undefined>>
  : { readonly [K in keyof A]: ArgumentValue<A[K]> };
type ArgumentValue<S> = S extends { variadic: true }
  ? readonly Choice<S>[]
  : S extends { optional: true }
    ? Choice<S> | undefined
    : Choice<S>;

export type OptionValues<O> = string extends keyof O
  ? Readonly<Record<string, unknown>>
  : { readonly [K in keyof O]: OptionValue<O[K]> };
type OptionValue<S> = S extends { value: string }
  ? S extends { repeat: true }
    ? readonly Parsed<S>[]
    : S extends { default: Parsed<S> } | { required: true }
      ? Parsed<S>
      : Parsed<S> | undefined
  : boolean;

type Parsed<S> = S extends { parse: (text: string) => infer T } ? T : Choice<S>;
type Choice<S> = S extends { choices: readonly (infer C)[] } ? C : string;
