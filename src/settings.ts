import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { closest } from './closest.ts';
import { ServiceError, type ErrorCode, type Problem } from './errors.ts';

/** What the settings are called and mean in the code, parsed and checked. Paths are absolute. */
export interface Settings {
  readonly home: string;
  readonly runs_dir: string;
  readonly catalogue_dir: string;
  readonly workers: number;
  readonly strategy_timeout_seconds: number;
  readonly color: 'auto' | 'always' | 'never';
}

export type SettingKey = keyof Settings;

/** Settings that a verb can take as an option. Colour has `--no-color`, which every verb takes. */
export type FlagSetting = Exclude<SettingKey, 'home' | 'color'>;

interface SettingType<T> {
  /** What a value looks like, for help and for errors: `needs <name>`. */
  readonly name: string;
  /** The same in one word, for a line of help: `--workers <number>`. */
  readonly placeholder: string;
  readonly choices?: readonly string[];
  readonly complete?: 'directory';
  /** `undefined` when the text is no such value. `base` is what a relative path is relative to. */
  parse(text: string, base: string): T | undefined;
}

interface SettingSpec<T> {
  readonly type: SettingType<T>;
  readonly description: string;
  /** The default, for a user who reads about it. */
  readonly defaultText: string;
  default(cwd: string, home: string): T;
  /** It says where the user file is, so no file and no flag can set it. */
  readonly environmentOnly?: true;
}

const path: SettingType<string> = {
  name: 'a directory',
  placeholder: 'dir',
  complete: 'directory',
  parse: (text, base) =>
    text === '~' || text.startsWith('~/') ? join(homedir(), text.slice(1)) : resolve(base, text),
};

const count: SettingType<number> = {
  name: 'a whole number from 1',
  placeholder: 'number',
  parse: (text) => (/^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : undefined),
};

const seconds: SettingType<number> = {
  name: 'a number of seconds above 0',
  placeholder: 'seconds',
  parse: (text) =>
    /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text) && Number(text) > 0 ? Number(text) : undefined,
};

function oneOf<const T extends string>(...choices: readonly T[]): SettingType<T> {
  return {
    name: choices.join(' or '),
    placeholder: 'choice',
    choices,
    parse: (text) => choices.find((choice) => choice === text),
  };
}

/** Every setting there is: its type, its meaning and its default. */
export const SETTINGS: { readonly [K in SettingKey]: SettingSpec<Settings[K]> } = {
  home: {
    type: path,
    description: 'directory of the user file and of everything kept between runs',
    defaultText: '~/.service-local',
    default: () => join(homedir(), '.service-local'),
    environmentOnly: true,
  },
  runs_dir: {
    type: path,
    description: 'where a backtest writes its results',
    defaultText: './runs',
    default: (cwd) => join(cwd, 'runs'),
  },
  catalogue_dir: {
    type: path,
    description: 'where imported market data are kept',
    defaultText: '<home>/catalogue',
    default: (_cwd, home) => join(home, 'catalogue'),
  },
  workers: {
    type: count,
    description: 'worker threads of a sweep',
    defaultText: 'the number of processors',
    default: () => availableParallelism(),
  },
  strategy_timeout_seconds: {
    type: seconds,
    description: 'how long a strategy may take over one bar before the run is stopped',
    defaultText: '30',
    default: () => 30,
  },
  color: {
    type: oneOf('auto', 'always', 'never'),
    description: 'colours in the output; auto follows the terminal, NO_COLOR and FORCE_COLOR',
    defaultText: 'auto',
    default: () => 'auto',
  },
};

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

export const FLAG_SETTINGS = SETTING_KEYS.filter((key) => key !== 'home' && key !== 'color');

/** `SERVICE_LOCAL_RUNS_DIR` for `runs_dir`. */
export function environmentName(key: SettingKey): string {
  return `SERVICE_LOCAL_${key.toUpperCase()}`;
}

/** `--runs-dir` for `runs_dir`. */
export function flagName(key: SettingKey): string {
  return `--${key.replaceAll('_', '-')}`;
}

/** One place that gives a setting a value. */
export interface SettingSource {
  readonly value: string | number;
  /** As a person finds it: `--workers`, `SERVICE_LOCAL_WORKERS`, `/a/service-local.yaml:3`, `default`. */
  readonly origin: string;
}

/** For every setting its sources, the one in force first. The default is always the last. */
export type SettingSources = Readonly<
  Record<SettingKey, readonly [SettingSource, ...SettingSource[]]>
>;

export interface ResolvedSettings {
  readonly values: Settings;
  readonly sources: SettingSources;
}

/** A value as it was written, before it is checked. `base` is what a relative path is relative to. */
interface Written {
  readonly text: string;
  readonly origin: string;
  readonly base: string;
  /** Where to point when the value is wrong. */
  readonly place: Pick<Problem, 'file' | 'line' | 'column' | 'pointer'>;
}

type Layer = ReadonlyMap<SettingKey, Written>;

/**
 * Settles every setting: flag, else environment, else project file (`service-local.yaml` in `cwd`
 * or the nearest parent), else user file (`config.yaml` in `home`), else default. A value that is
 * wrong is an error even where a stronger one hides it.
 *
 * @param flags what was typed, by setting; the origin is how it was typed.
 * @throws ServiceError `unknown_setting` or `invalid_setting`, with all problems of all sources.
 */
export function resolveSettings(
  cwd: string,
  env: NodeJS.ProcessEnv,
  flags: ReadonlyMap<SettingKey, { readonly text: string; readonly origin: string }> = new Map(),
): ResolvedSettings {
  const problems: Problem[] = [];
  const check = (key: SettingKey, written: Written): SettingSource[] => {
    const { type } = SETTINGS[key];
    const value = type.parse(written.text, written.base);
    if (value !== undefined) return [{ value, origin: written.origin }];
    problems.push(invalidValue(key, written));
    return [];
  };

  const flagLayer = new Map([...flags].map(([key, flag]) => [key, typed(flag, cwd)] as const));
  const environment = readEnvironment(env, cwd);
  const written = environment.get('home');
  const home =
    (written && SETTINGS.home.type.parse(written.text, cwd)) ?? SETTINGS.home.default(cwd, '');
  const layers: readonly Layer[] = [
    flagLayer,
    environment,
    readNearest(cwd, 'service-local.yaml', problems),
    readFile(join(home, 'config.yaml'), problems) ?? new Map<SettingKey, Written>(),
  ];

  const values: Partial<Record<SettingKey, string | number>> = {};
  const sources: Partial<Record<SettingKey, readonly SettingSource[]>> = {};
  for (const key of SETTING_KEYS) {
    const all = layers.flatMap((layer) => {
      const found = layer.get(key);
      return found ? check(key, found) : [];
    });
    all.push({ value: SETTINGS[key].default(cwd, home), origin: 'default' });
    values[key] = all[0]!.value;
    sources[key] = Object.freeze(all);
  }
  if (problems.length > 0) throw settingsError(problems);
  return Object.freeze({
    values: Object.freeze(values) as unknown as Settings,
    sources: Object.freeze(sources) as unknown as SettingSources,
  });
}

function typed(flag: { readonly text: string; readonly origin: string }, cwd: string): Written {
  return { ...flag, base: cwd, place: {} };
}

/**
 * Variables that name no setting are left alone: Kubernetes sets `SERVICE_LOCAL_PORT` and
 * `SERVICE_LOCAL_SERVICE_HOST` in every pod beside a Service called `service-local`.
 */
function readEnvironment(env: NodeJS.ProcessEnv, cwd: string): Layer {
  const layer = new Map<SettingKey, Written>();
  for (const key of SETTING_KEYS) {
    const origin = environmentName(key);
    const text = env[origin];
    if (text) layer.set(key, { text, origin, base: cwd, place: {} });
  }
  return layer;
}

function readNearest(directory: string, name: string, problems: Problem[]): Layer {
  const layer = readFile(join(directory, name), problems);
  if (layer) return layer;
  const parent = dirname(directory);
  return parent === directory
    ? new Map<SettingKey, Written>()
    : readNearest(parent, name, problems);
}

/** `undefined` when there is no such file. */
function readFile(file: string, problems: Problem[]): Layer | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined;
    problems.push({ code: 'invalid_setting', file, message: (error as Error).message });
    return new Map<SettingKey, Written>();
  }
  return parseFile(file, text, problems);
}

function parseFile(file: string, text: string, problems: Problem[]): Layer {
  // Loaded here and not above: most runs have no such file, and `yaml` costs more than they do.
  const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
  const layer = new Map<SettingKey, Written>();
  const lines = new yaml.LineCounter();
  const at = (offset: number): { file: string; line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  for (const error of document.errors) {
    problems.push({ code: 'invalid_setting', ...at(error.pos[0]), message: error.message });
  }
  const { contents } = document;
  if (document.errors.length > 0 || contents === null) return layer;
  if (!yaml.isMap(contents)) {
    const message = 'needs lines of `setting: value`';
    problems.push({ code: 'invalid_setting', ...at(contents.range[0]), message });
    return layer;
  }
  for (const { key: keyNode, value: valueNode } of contents.items) {
    const key = yaml.isScalar(keyNode) ? String(keyNode.value) : String(keyNode);
    const place = { ...at(yaml.isNode(keyNode) ? keyNode.range![0] : 0), pointer: `/${key}` };
    if (!isSettingKey(key)) {
      problems.push(unknownSetting(key, place));
    } else if (SETTINGS[key].environmentOnly) {
      const message = `can be set only by ${environmentName(key)}`;
      problems.push({ code: 'invalid_setting', ...place, message });
    } else {
      const value = yaml.isScalar(valueNode) ? valueNode.value : undefined;
      const isText = typeof value === 'string' || typeof value === 'number';
      const written = {
        text: isText ? String(value) : '',
        origin: `${file}:${place.line}`,
        base: dirname(file),
        place: yaml.isNode(valueNode) ? { ...place, ...at(valueNode.range![0]) } : place,
      };
      if (isText) layer.set(key, written);
      else problems.push(invalidValue(key, written));
    }
  }
  return layer;
}

function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}

/** The setting of that name. @throws ServiceError `unknown_setting`, with what was probably meant. */
export function settingKey(text: string): SettingKey {
  if (isSettingKey(text)) return text;
  const { message, suggestion } = unknownSetting(text, {});
  throw new ServiceError('unknown_setting', message, {
    remedy: suggestion
      ? `Did you mean ${suggestion}?`
      : 'See `service-local config list` for all settings.',
  });
}

function unknownSetting(key: string, place: Written['place']): Problem {
  const suggestion = closest(key, SETTING_KEYS);
  const message = `there is no setting '${key}'`;
  return { code: 'unknown_setting', ...place, message, ...(suggestion && { suggestion }) };
}

function invalidValue(key: SettingKey, { text, origin, place }: Written): Problem {
  const { type } = SETTINGS[key];
  const suggestion = type.choices && closest(text, type.choices);
  const subject = place.file === undefined ? `${origin}: ` : '';
  const message = `${subject}${key} needs ${type.name}, not ${JSON.stringify(text)}`;
  return { code: 'invalid_setting', ...place, message, ...(suggestion && { suggestion }) };
}

function settingsError(problems: readonly Problem[]): ServiceError {
  const [first] = problems;
  const message =
    problems.length === 1 ? 'a setting is wrong' : `${problems.length} settings are wrong`;
  return new ServiceError((first?.code ?? 'invalid_setting') as ErrorCode, message, {
    problems,
    remedy: 'Correct or remove them; `service-local config list --help` names every setting.',
  });
}
