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
 *     file: { description: 'bot file', complete: 'file' },                  // args.file: string
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
 *     const { checkBot } = await import('../../bots/load-bot.ts');
 *     const { bot, problems } = checkBot(args.file);
 *     return {
 *       data: { hash: bot?.hash ?? null, problems },    // the document of --json
 *       show: (out) => out.table([{ title: 'problems', align: 'right' }], [['2']]),
 *       failure: bot ? undefined : new ServiceError('invalid_spec', '…', { problems }),
 *     };
 *   },
 * });
 * ```
 *
 * A verb file is also loaded for help and for completion, so it imports slow modules inside `run`.
 * Only the answer goes to stdout; `context.message` and `context.progress` print on stderr. An
 * expected failure is a thrown `ServiceError`; if there are data as well (a gate is not met, a sweep
 * was interrupted), it is the answer's `failure`. `parse` throws `ServiceError('usage', …)`, to which
 * the CLI adds the name of the option.
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
  /** In the order in which they are typed. */
  readonly arguments?: A;
  /** Keys in camel case: `verifyLock` is typed `--verify-lock`. */
  readonly options?: O;
  /** Settings that the verb reads. Each also becomes an option, which overrides all other sources. */
  readonly settings?: readonly FlagSetting[];
  /** If this user may not read the user file, the verb runs without its settings. */
  readonly runsWithoutUserFile?: true;
  /** Command lines without the leading `service-local`; at least one. */
  readonly examples: readonly string[];
  run(
    context: Context,
    args: ArgumentValues<A>,
    options: OptionValues<O>,
  ): Answer | Promise<Answer>;
}

/** A verb that is not loaded yet. */
export interface VerbEntry {
  /** The words of the verb. The longest path wins: `backtest sweep` over `backtest`. */
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
  /** Takes all remaining words; the value is an array. Only for the last argument. */
  readonly variadic?: true;
  readonly choices?: readonly string[];
  readonly complete?: Completion;
}

export interface OptionSpec {
  readonly description: string;
  /** One letter: `p` is typed `-p`. */
  readonly short?: string;
  /** With this flag, the verb returns a `stream`, so `--json` prints an error on one line, too. */
  readonly streams?: true;
  readonly value?: string;
  /** Only for an option with a value. */
  readonly required?: true;
  /** May be given several times; the value is an array, empty if the option is absent. */
  readonly repeat?: true;
  readonly choices?: readonly string[];
  /** Converts the text, or throws a `ServiceError` that says what is wrong with it. */
  readonly parse?: (text: string) => unknown;
  readonly default?: string | number;
  readonly complete?: Completion;
}

/** Values that the shell suggests: files, directories or these words. It always suggests `choices`. */
export type Completion = 'file' | 'directory' | readonly string[];

export interface Answer {
  /** Document printed by `--json`. */
  readonly data: unknown;
  /** Documents printed by `--json` instead of `data`, one per line, as they arrive. */
  readonly stream?: AsyncIterable<unknown> | undefined;
  /** Prints the same for a person; if there is a stream, until it ends. */
  readonly show: (out: Output) => void | Promise<void>;
  /** Printed on stderr after the data or the stream; its code decides the exit code. Read only then. */
  readonly failure?: ServiceError | undefined;
  /** Exit code if there is no failure; default 0. */
  readonly exitCode?: number;
}

export interface Context {
  readonly verbs: readonly VerbEntry[];
  /** Absolute path. */
  readonly cwd: string;
  readonly io: Io;
  readonly settings: Settings;
  readonly settingSources: SettingSources;
  /** False with `--no-input` or `--json`, or if standard input is not a terminal. */
  readonly interactive: boolean;
  /**
   * Aborted by Ctrl-C or SIGTERM, with a `ServiceError('interrupted')` as reason; a second Ctrl-C
   * kills the process. The first access installs the handlers, so the first Ctrl-C kills a verb
   * that never reads this signal.
   */
  readonly signal: AbortSignal;
  /** Prints a line on stderr unless `--quiet` is given. */
  readonly message: (text: string) => void;
  /**
   * Draws a progress bar on stderr, only on a terminal and without `--quiet`. `before` is the part
   * of the total that an earlier run has done.
   */
  readonly progress: (label: string, total: number, before?: number) => Progress;
}

/** The parts of `process` that the CLI uses. */
export type Io = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'cwd' | 'exit'>;

export type NoSpecs = { readonly [name in never]: never };
export type Arguments = Readonly<Record<string, ArgumentSpec>>;
export type Options = Readonly<Record<string, OptionSpec>>;

/** Values by name; if the specs are not known statically, the union of all possible values. */
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
