import { Command, CommanderError, Option } from 'commander';
import { ServiceError } from '../errors.ts';
import { SETTINGS, environmentName, flagName, type SettingKey } from '../settings.ts';
import type {
  ArgumentValues,
  Arguments,
  Completion,
  OptionSpec,
  OptionValues,
  Options,
  Verb,
} from './verb.ts';
import { VERBS, type VerbEntry } from './verbs.ts';

/** Options of every verb. All are flags, so that they may also stand before the verb. */
export const GLOBAL_FLAGS: readonly TypedOption[] = [
  { long: '--json', description: 'print one JSON document on stdout, also on failure' },
  { long: '--quiet', description: 'no progress and no messages; errors are still told' },
  { long: '--no-color', description: 'no colours (NO_COLOR does the same)' },
  { long: '--no-input', description: 'never ask; fail where an answer would be needed' },
];

/** One option as it is typed. */
export interface TypedOption {
  readonly long: string;
  readonly short?: string | undefined;
  /** Name of the value in help; a flag has none. */
  readonly value?: string | undefined;
  readonly description: string;
  readonly repeat?: true | undefined;
  readonly choices?: readonly string[] | undefined;
  readonly complete?: Completion | undefined;
}

/** What was typed after a verb: its help was wanted, or it is to be run. */
export type Invocation =
  | { readonly help: string }
  | {
      readonly args: ArgumentValues<Arguments>;
      readonly options: OptionValues<Options>;
      readonly flags: ReadonlyMap<SettingKey, { readonly text: string; readonly origin: string }>;
      readonly quiet: boolean;
      readonly input: boolean;
    };

const OPTIONS_HEADING = 'Options:';
const SETTINGS_HEADING = 'Settings:';
const GLOBAL_HEADING = 'Everywhere:';

/** The verb's own options, the options of its settings and those of every verb. */
export function optionsOf(verb: Verb): readonly TypedOption[] {
  const own = Object.entries(verb.options ?? {}).map(([key, spec]) => typedOption(key, spec));
  return [...own, ...(verb.settings ?? []).map(settingOption), ...GLOBAL_FLAGS];
}

function typedOption(key: string, spec: OptionSpec): TypedOption {
  const { short, default: preset } = spec;
  return {
    ...spec,
    long: `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    short: short && `-${short}`,
    description:
      preset === undefined ? spec.description : `${spec.description} (default: ${String(preset)})`,
  };
}

function settingOption(key: SettingKey): TypedOption {
  const { type, description, defaultText } = SETTINGS[key];
  return {
    long: flagName(key),
    value: type.choices ? 'choice' : type.complete === 'directory' ? 'dir' : 'number',
    description: `${description} (default: ${defaultText}; env: ${environmentName(key)})`,
    choices: type.choices,
    complete: type.complete,
  };
}

/**
 * Reads what was typed after the verb.
 * @throws ServiceError `usage`
 */
export function parseInvocation(
  entry: VerbEntry,
  verb: Verb,
  words: readonly string[],
  columns: number | undefined,
): Invocation {
  let help = '';
  const command = verbCommand(entry, verb)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => (help += text),
      writeErr: () => {},
      getOutHelpWidth: () => columns ?? 80,
    });
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { help };
    throw usageError(error, command.name());
  }
  const typed = command.opts<Record<string, string | string[] | boolean>>();
  const flags = (verb.settings ?? []).flatMap((key) => {
    const text = typed[attribute(flagName(key))];
    return typeof text === 'string' ? ([[key, { text, origin: flagName(key) }]] as const) : [];
  });
  return {
    args: Object.fromEntries(
      Object.keys(verb.arguments ?? {}).map((name, i) => [name, command.processedArgs[i]]),
    ) as ArgumentValues<Arguments>,
    options: Object.fromEntries(
      Object.entries(verb.options ?? {}).map(([key, spec]) => [
        key,
        optionValue(typedOption(key, spec).long, spec, typed[key]),
      ]),
    ) as OptionValues<Options>,
    flags: new Map<SettingKey, { text: string; origin: string }>([
      ...flags,
      ...(typed['color'] === false
        ? [['color', { text: 'never', origin: '--no-color' }] as const]
        : []),
    ]),
    quiet: typed['quiet'] === true,
    input: typed['input'] !== false,
  };
}

function optionValue(long: string, spec: OptionSpec, typed: unknown): unknown {
  if (spec.value === undefined) return typed === true;
  const parse = (text: string): unknown => {
    try {
      return spec.parse ? spec.parse(text) : text;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const { code, message, remedy, problems } = error;
      throw new ServiceError(code, `${long}: ${message}`, {
        problems,
        ...(remedy !== undefined && { remedy }),
      });
    }
  };
  if (spec.repeat) return ((typed as string[] | undefined) ?? []).map(parse);
  return typed === undefined ? spec.default : parse(typed as string);
}

function attribute(long: string): string {
  return new Option(long).attributeName();
}

function verbCommand(entry: VerbEntry, verb: Verb): Command {
  const command = new Command(`service-local ${entry.path.join(' ')}`)
    .description([sentence(entry.summary), verb.description].filter(Boolean).join('\n\n'))
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', examplesText(verb.examples));
  for (const [name, spec] of Object.entries(verb.arguments ?? {})) {
    const dots = spec.variadic ? '...' : '';
    const form = spec.optional ? `[${name}${dots}]` : `<${name}${dots}>`;
    const argument = command.createArgument(form, spec.description);
    if (spec.choices) argument.choices(spec.choices);
    command.addArgument(argument);
  }
  const ownCount = Object.keys(verb.options ?? {}).length;
  const settingCount = verb.settings?.length ?? 0;
  for (const [i, typed] of optionsOf(verb).entries()) {
    const heading =
      i < ownCount
        ? OPTIONS_HEADING
        : i < ownCount + settingCount
          ? SETTINGS_HEADING
          : GLOBAL_HEADING;
    command.addOption(commanderOption(typed).helpGroup(heading));
  }
  command.helpOption('-h, --help', 'show this help');
  return command;
}

function commanderOption({
  long,
  short,
  value,
  description,
  choices,
  repeat,
}: TypedOption): Option {
  const names = short === undefined ? long : `${short}, ${long}`;
  const option = new Option(value === undefined ? names : `${names} <${value}>`, description);
  if (choices) option.choices(choices);
  if (repeat) {
    option.argParser((text: string, earlier: string[] | undefined) => [...(earlier ?? []), text]);
  }
  return option;
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((line) => `  $ service-local ${line}`).join('\n')}`;
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

/** Commander says `error: what` and, on a second line, what was probably meant. */
function usageError(error: CommanderError, name: string): ServiceError {
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n');
  return new ServiceError('usage', message, {
    remedy: suggestion ? suggestion.slice(1, -1) : `See \`${name} --help\`.`,
  });
}

/** The list of verbs under `path`, or of all verbs. */
export function listHelp(path: readonly string[], columns: number | undefined): string {
  const command = new Command(['service-local', ...path].join(' '))
    .usage(path.length === 0 ? '<verb> [options]' : '<verb> [options]')
    .helpCommand(false)
    .helpOption('-h, --help', 'show this help, or that of a verb')
    .configureHelp({ subcommandTerm: (sub) => sub.name() })
    .configureOutput({ getOutHelpWidth: () => columns ?? 80 });
  if (path.length === 0) {
    command
      .description('Describe a trading bot in a file, backtest it, and believe the numbers.')
      .option('-V, --version', 'print the version');
  }
  for (const { long, description } of GLOBAL_FLAGS) command.option(long, description);
  for (const entry of VERBS.filter((candidate) => startsWith(candidate.path, path))) {
    const words = entry.path.slice(path.length).join(' ') || '(alone)';
    command.addCommand(new Command(words).summary(entry.summary));
  }
  return command.helpInformation();
}

/** Whether `path` begins with all of `words`. */
export function startsWith(path: readonly string[], words: readonly string[]): boolean {
  return words.every((word, i) => path[i] === word);
}
