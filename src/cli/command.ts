import { Command, CommanderError, Help, Option } from 'commander';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import {
  SETTINGS,
  defaultText,
  environmentName,
  flagName,
  type SettingKey,
} from '../base/settings.ts';
import { DEFAULT_WIDTH } from './output.ts';
import {
  type ArgumentValues,
  type Arguments,
  type Completion,
  loadVerbs,
  type OptionSpec,
  type OptionValues,
  type Options,
  type Verb,
  type VerbEntry,
} from './verb.ts';

export interface TypedOption {
  readonly long: string;
  readonly short?: string | undefined;
  /** Name of the value in help; undefined for a flag. */
  readonly value?: string | undefined;
  readonly description: string;
  readonly required?: true | undefined;
  readonly repeat?: true | undefined;
  readonly choices?: readonly string[] | undefined;
  readonly complete?: Completion | undefined;
}

/** Options of every verb. All are flags, so they may also precede the verb. */
export const GLOBAL_FLAGS: readonly TypedOption[] = [
  { long: '--json', description: 'print one JSON document on stdout, also on failure' },
  { long: '--quiet', description: 'print results and errors only, without progress and messages' },
  { long: '--no-color', description: 'print without color, as with NO_COLOR=1' },
  { long: '--no-input', description: 'never prompt; fail if input is needed' },
];

export function isGlobalFlag(word: string): boolean {
  return GLOBAL_FLAGS.some(({ long }) => long === word);
}

/** Returns the verb's own options, then those of its settings. */
export function optionsOf(verb: Verb): readonly TypedOption[] {
  const own = Object.entries(verb.options ?? {}).map(([key, spec]) => typedOption(key, spec));
  return [...own, ...(verb.settings ?? []).map(settingOption)];
}

function typedOption(key: string, spec: OptionSpec): TypedOption {
  const { short, default: preset, description, required } = spec;
  const note = required ? ' (required)' : preset === undefined ? '' : ` (default: ${preset})`;
  return {
    ...spec,
    long: longName(key),
    short: short && `-${short}`,
    description: `${description}${note}`,
  };
}

function settingOption(key: SettingKey): TypedOption {
  const { type, description } = SETTINGS[key];
  return {
    long: flagName(key),
    value: type.placeholder,
    description: `${description} (default: ${defaultText(key)}; ${environmentName(key)})`,
    choices: type.choices,
    complete: type.complete,
  };
}

function longName(key: string): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The words after a verb: a request for help, or the values to run the verb with. */
export type Invocation =
  | 'help'
  | {
      readonly args: ArgumentValues<Arguments>;
      readonly options: OptionValues<Options>;
      readonly flags: ReadonlyMap<SettingKey, { readonly text: string; readonly origin: string }>;
      readonly quiet: boolean;
      readonly noInput: boolean;
    };

/** A key id (RFC 7638 thumbprint) that starts with a hyphen and so looks like an option. */
const DASHED_ID = /^-[\w-]{42}$/;

/**
 * Parses the words after a verb.
 * @throws ServiceError `usage`
 */
export function parseInvocation(
  path: readonly string[],
  verb: Verb,
  words: readonly string[],
): Invocation {
  const command = verbCommand(path, verb)
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} });
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return 'help';
    const id =
      error.code === 'commander.unknownOption' && words.find((word) => DASHED_ID.test(word));
    if (id && !words.includes('--')) {
      const others = words.filter((word) => word !== id);
      return parseInvocation(path, verb, [...others, '--', id]);
    }
    throw usageError(error, command.name());
  }

  const args = Object.keys(verb.arguments ?? {}).map((name, i) => [name, command.processedArgs[i]]);
  const options = Object.entries(verb.options ?? {}).map(([key, spec]) => {
    const long = longName(key);
    return [key, optionValue(long, spec, typedValue(command, long))];
  });
  const flags = new Map<SettingKey, { text: string; origin: string }>();
  for (const key of verb.settings ?? []) {
    const text = typedValue(command, flagName(key));
    if (typeof text === 'string') flags.set(key, { text, origin: flagName(key) });
  }
  if (typedValue(command, '--no-color')) {
    flags.set('color', { text: 'never', origin: '--no-color' });
  }
  return {
    args: Object.fromEntries(args) as ArgumentValues<Arguments>,
    options: Object.fromEntries(options) as OptionValues<Options>,
    flags,
    quiet: typedValue(command, '--quiet') === true,
    noInput: typedValue(command, '--no-input') === true,
  };
}

/** Returns true or false for a flag, otherwise the text, or the texts of a repeatable option. */
function typedValue(command: Command, long: string): boolean | string | string[] | undefined {
  const option = command.options.find((candidate) => candidate.long === long)!;
  const value = command.getOptionValue(option.attributeName()) as
    | boolean
    | string
    | string[]
    | undefined;
  return option.negate ? value === false : value;
}

function optionValue(
  long: string,
  spec: OptionSpec,
  typed: boolean | string | string[] | undefined,
): unknown {
  const { parse = (text: string) => text } = spec;
  const parseNamed = (text: string): unknown => {
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const { code, message, remedy, problems } = error;
      throw new ServiceError(code, `${long}: ${message}`, {
        problems,
        ...(remedy !== undefined && { remedy }),
      });
    }
  };
  if (spec.value === undefined) return typed === true;
  if (spec.repeat) return Array.isArray(typed) ? typed.map(parseNamed) : [];
  return typeof typed === 'string' ? parseNamed(typed) : spec.default;
}

function verbCommand(path: readonly string[], verb: Verb): Command {
  const command = new Command(fullName(path)).description(
    [sentence(verb.summary), verb.description].filter(Boolean).join('\n\n'),
  );
  for (const [name, spec] of Object.entries(verb.arguments ?? {})) {
    const dots = spec.variadic ? '...' : '';
    const form = spec.optional ? `[${name}${dots}]` : `<${name}${dots}>`;
    const argument = command.createArgument(form, spec.description);
    command.addArgument(spec.choices ? argument.choices(spec.choices) : argument);
  }
  for (const option of optionsOf(verb)) command.addOption(commanderOption(option));
  return addGlobalFlags(command, 'show this help');
}

function commanderOption(typed: TypedOption): Option {
  const { long, short, value, description, required = false, choices, repeat } = typed;
  const names = short === undefined ? long : `${short}, ${long}`;
  const option = new Option(value === undefined ? names : `${names} <${value}>`, description);
  option.makeOptionMandatory(required);
  if (choices) option.choices(choices);
  if (repeat) {
    option.argParser((text: string, earlier: string[] | undefined) => [...(earlier ?? []), text]);
  }
  return option;
}

function addGlobalFlags(command: Command, helpDescription: string): Command {
  command.optionsGroup('Global options:').helpOption('-h, --help', helpDescription);
  for (const flag of GLOBAL_FLAGS) command.addOption(commanderOption(flag));
  return command;
}

/**
 * Help of one verb: arguments, options, examples and the longer verbs that begin with its words.
 * @param columns width of the terminal.
 */
export async function verbHelp(
  verbs: readonly VerbEntry[],
  { path, load }: VerbEntry,
  columns: number | undefined,
): Promise<string> {
  const { verb } = await load();
  const longer = await loadVerbs(
    verbs.filter((other) => other.path.length > path.length && startsWith(other.path, path)),
  );
  const command = withWidth(verbCommand(path, verb), columns);
  command.createHelp = () => new VerbHelp();
  return [
    command.helpInformation(),
    'Examples:',
    ...verb.examples.map((example) => `  $ service-local ${example}`),
    ...(longer.length > 0 ? ['', 'See also:'] : []),
    ...longer.map((other) => `  ${fullName(other.path)}: ${other.verb.summary}`),
    '',
  ].join('\n');
}

/**
 * Prints a long option on a line of its own. Commander would indent all descriptions by the longest
 * option and then not wrap them.
 */
class VerbHelp extends Help {
  override padWidth(command: Command, helper: Help): number {
    return Math.min(super.padWidth(command, helper), LONGEST_NAME);
  }

  override formatItem(name: string, width: number, description: string, helper: Help): string {
    if (name.length <= width) return super.formatItem(name, width, description, helper);
    return `  ${name}\n${super.formatItem('', width, description, helper)}`;
  }
}

/** Leaves room for the longest name of an environment variable in a line of 80 characters. */
const LONGEST_NAME = 28;

function withWidth(command: Command, columns: number | undefined): Command {
  return command.configureOutput({ getOutHelpWidth: () => columns || DEFAULT_WIDTH });
}

/** `['config', 'list']` → `service-local config list`. */
export function fullName(path: readonly string[]): string {
  return ['service-local', ...path].join(' ');
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

/** Commander's message for a value that is not among the choices. */
const NOT_A_CHOICE =
  /^(?:option '.*?(--[\w-]+).*?' argument|command-argument value) '(.*)' is invalid(?: for argument '(.*)')?\. Allowed choices are (.*)\.$/;

/** Converts a message of Commander: `error: …` and, on a second line, `(Did you mean …?)`. */
function usageError(error: CommanderError, name: string): ServiceError {
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n');
  const [, option, value, argument, choices] = NOT_A_CHOICE.exec(message) ?? [];
  if (value !== undefined && choices !== undefined) {
    const meant = closest(value, choices.split(', '));
    return new ServiceError('usage', `${option ?? argument}: '${value}' is not one of ${choices}`, {
      remedy: meant === undefined ? `See \`${name} --help\`.` : `Did you mean ${meant}?`,
    });
  }
  return new ServiceError('usage', message, {
    remedy: suggestion ? suggestion.slice(1, -1) : `See \`${name} --help\`.`,
  });
}

/** Lists the verbs under `path`; all verbs if it is empty. */
export async function listHelp(
  verbs: readonly VerbEntry[],
  path: readonly string[],
  columns: number | undefined,
): Promise<string> {
  const command = withWidth(new Command(fullName(path)), columns)
    .usage('<command> [options]')
    .helpCommand(false)
    .commandsGroup('Commands:')
    .configureHelp({ subcommandTerm: (verb) => verb.name() });
  if (path.length === 0) {
    command
      .description('Describe a trading bot in a file, backtest it, and believe the numbers.')
      .option('-V, --version', 'print the version');
  }
  addGlobalFlags(command, 'show this help, or the help of a command');
  const listed = await loadVerbs(verbs.filter((entry) => startsWith(entry.path, path)));
  for (const { path: words, verb } of listed) {
    command.addCommand(new Command(words.slice(path.length).join(' ')).summary(verb.summary));
  }
  return command.helpInformation();
}

/** Whether `path` begins with all of `words`. */
export function startsWith(path: readonly string[], words: readonly string[]): boolean {
  return words.every((word, i) => path[i] === word);
}
