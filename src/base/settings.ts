import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Scalar } from 'yaml';
import { closest } from './closest.ts';
import { ServiceError, isSystemError, type Problem } from './errors.ts';

/** What the settings are called and mean in the code, parsed and checked. Paths are absolute. */
export interface Settings {
  readonly home: string;
  readonly runs_dir: string;
  readonly catalogue_dir: string;
  readonly exchanges_file: string;
  readonly cloud_file: string;
  readonly clusters_file: string;
  readonly knowledge_file: string;
  readonly workers: number;
  readonly paper_sessions: number;
  readonly production_deployments: number;
  readonly strategy_timeout_seconds: number;
  readonly strategy_memory_mb: number;
  readonly custom_code: boolean;
  readonly custom_code_memory_mb: number;
  readonly color: 'auto' | 'always' | 'never';
  readonly server_host: string;
  readonly server_port: number;
  readonly server_public_url: string;
  readonly server_trusted_proxies: string;
  readonly server_tasks: boolean;
  readonly server_url: string;
  readonly server_insecure: boolean;
  readonly chat_provider: 'none' | 'openai_compatible' | 'anthropic';
  readonly chat_model: string;
  readonly chat_base_url: string;
  readonly chat_turns: number;
  readonly chat_seconds: number;
  readonly chat_tokens: number;
  readonly license_enforcement_enabled: boolean;
  readonly license_registry_enforced: boolean;
  readonly license_clone_policy: 'alert' | 'refuse';
  readonly license_ttl_seconds: number;
  readonly license_ttl_max_seconds: number;
  readonly license_grace_period_seconds: number;
  readonly license_grace_period_max_seconds: number;
  readonly license_issuer: string;
  readonly license_product: string;
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
  readonly complete?: 'directory' | 'file';
  /** `undefined` when the text is no such value. `base` is what a relative path is relative to. */
  parse(text: string, base: string): T | undefined;
}

interface SettingSpec<T> {
  readonly type: SettingType<T>;
  readonly description: string;
  /** Its option, where that is not `--` and its name with dashes. */
  readonly flag?: string;
  /** The default, for a user who reads about it. */
  readonly defaultText: string;
  default(cwd: string, home: string): T;
  /**
   * Which files can set it, where not both can: a project is something that others made, and must
   * not decide where secrets are sent; and no file can say where the user file is.
   */
  readonly files?: 'user' | 'none';
}

const path: SettingType<string> = {
  name: 'a directory',
  placeholder: 'dir',
  complete: 'directory',
  parse: (text, base) =>
    text === '~' || text.startsWith('~/') ? join(homedir(), text.slice(1)) : resolve(base, text),
};

const filePath: SettingType<string> = {
  ...path,
  name: 'a file',
  placeholder: 'file',
  complete: 'file',
};

const count: SettingType<number> = {
  name: 'a whole number from 1',
  placeholder: 'number',
  parse: (text) => (/^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : undefined),
};

const seconds: SettingType<number> = {
  name: 'a number of seconds from 0.001 to 86400',
  placeholder: 'seconds',
  parse(text) {
    const value = /^[0-9]{1,5}(\.[0-9]{1,9})?$/.test(text) ? Number(text) : 0;
    return value >= 0.001 && value <= 86_400 ? value : undefined;
  },
};

/** The bounds in use keep TTL and grace together within what `src/lease` takes. */
function wholeSeconds(least: number, most: number): SettingType<number> {
  return {
    name: `a whole number of seconds from ${least} to ${most}`,
    placeholder: 'seconds',
    parse(text) {
      const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
      return value >= least && value <= most ? value : undefined;
    },
  };
}

const DAY = 86_400;
const ttl = wholeSeconds(300, 4 * 365 * DAY);
const gracePeriod = wholeSeconds(0, 365 * DAY);

const boolean: SettingType<boolean> = {
  name: 'true or false',
  placeholder: 'boolean',
  choices: ['true', 'false'],
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

const megabytes: SettingType<number> = {
  name: 'a whole number of megabytes from 128 to 65536',
  placeholder: 'megabytes',
  parse(text) {
    const value = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
    return value >= 128 && value <= 65_536 ? value : undefined;
  },
};

const host: SettingType<string> = {
  name: 'the name or the address of a host',
  placeholder: 'host',
  parse: (text) => (/^[\w.:-]{1,253}$/.test(text) ? text : undefined),
};

const port: SettingType<number> = {
  name: 'a port from 0 to 65535',
  placeholder: 'port',
  parse: (text) => (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
};

const webOrigin: SettingType<string> = {
  name: 'an origin such as https://licenses.example',
  placeholder: 'url',
  parse(text) {
    const url = URL.parse(text);
    // With a path, a query or a password it would be longer.
    const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    return isOrigin ? url.origin : undefined;
  },
};

const webOriginOrAuto: SettingType<string> = {
  ...webOrigin,
  name: `auto or ${webOrigin.name}`,
  parse: (text, base) => (text === 'auto' ? text : webOrigin.parse(text, base)),
};

const proxies: SettingType<string> = {
  name: 'auto, none, or addresses and networks such as 10.0.0.0/8,fd00::1',
  placeholder: 'addresses',
  parse(text) {
    if (text === 'auto' || text === 'none') return text;
    const parts = text.split(',').map((part) => part.trim());
    return parts.every(isNetwork) ? parts.join(',') : undefined;
  },
};

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const bits = isIP(address) === 6 ? 128 : 32;
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  return isIP(address) !== 0 && !address.includes('%') && isPrefix && more.length === 0;
}

const webUrlOrAuto: SettingType<string> = {
  name: 'auto or a URL such as http://127.0.0.1:11434/v1',
  placeholder: 'url',
  parse(text) {
    if (text === 'auto') return text;
    const url = URL.parse(text);
    // A password, or a key in the query, would be shown with the setting.
    const isPlain =
      url !== null && /^https?:$/.test(url.protocol) && `${url.origin}${url.pathname}` === url.href;
    return isPlain ? url.href.replace(/\/$/, '') : undefined;
  },
};

const visible: SettingType<string> = {
  name: '1 to 128 visible ASCII characters',
  placeholder: 'name',
  parse: (text) => (/^[!-~]{1,128}$/.test(text) ? text : undefined),
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
    files: 'none',
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
  exchanges_file: {
    type: filePath,
    description: 'the exchanges that live market data come from, and orders in production go to',
    files: 'user',
    defaultText: '<home>/exchanges.yaml',
    default: (_cwd, home) => join(home, 'exchanges.yaml'),
  },
  cloud_file: {
    type: filePath,
    description: 'the installs at customers that get their lease through a secret store',
    flag: '--config',
    files: 'user',
    defaultText: '<home>/cloud.yaml',
    default: (_cwd, home) => join(home, 'cloud.yaml'),
  },
  clusters_file: {
    type: filePath,
    description: 'the Kubernetes clusters that bots are deployed to',
    files: 'user',
    defaultText: '<home>/clusters.yaml',
    default: (_cwd, home) => join(home, 'clusters.yaml'),
  },
  knowledge_file: {
    type: filePath,
    description: 'the other servers whose knowledge is searched along with the own',
    files: 'user',
    defaultText: '<home>/knowledge.yaml',
    default: (_cwd, home) => join(home, 'knowledge.yaml'),
  },
  workers: {
    type: count,
    description: 'worker threads of a sweep, and tasks that a server or worker does at a time',
    defaultText: 'the number of processors',
    default: () => availableParallelism(),
  },
  paper_sessions: {
    type: count,
    description: 'paper sessions that a server runs at a time',
    defaultText: '1000',
    default: () => 1000,
  },
  production_deployments: {
    type: count,
    description: 'production deployments that a server looks after at a time',
    defaultText: '100',
    default: () => 100,
  },
  strategy_timeout_seconds: {
    type: seconds,
    description: 'how long a strategy may keep the run from going on',
    defaultText: '30',
    default: () => 30,
  },
  strategy_memory_mb: {
    type: megabytes,
    description: 'memory limit of your own strategy in a run, including typed arrays and buffers',
    flag: '--strategy-memory',
    defaultText: '1024',
    default: () => 1024,
  },
  custom_code: {
    type: boolean,
    description: 'whether the server takes strategies that come with a bot, and runs their code',
    files: 'user',
    defaultText: 'false',
    default: () => false,
  },
  custom_code_memory_mb: {
    type: megabytes,
    description: 'memory that a strategy that came with a bot may take on the server',
    files: 'user',
    defaultText: '512',
    default: () => 512,
  },
  color: {
    type: oneOf('auto', 'always', 'never'),
    description: 'colours in the output; auto follows the terminal, NO_COLOR and FORCE_COLOR',
    defaultText: 'auto',
    default: () => 'auto',
  },
  server_host: {
    type: host,
    description: 'where the server listens',
    flag: '--host',
    files: 'user',
    defaultText: '127.0.0.1',
    default: () => '127.0.0.1',
  },
  server_port: {
    type: port,
    description: 'on which port the server listens; 0 takes a free one',
    flag: '--port',
    files: 'user',
    defaultText: '8787',
    default: () => 8787,
  },
  server_public_url: {
    type: webOriginOrAuto,
    description: 'under which origin clients know the server; auto makes it of host and port',
    flag: '--public-url',
    files: 'user',
    defaultText: 'auto',
    default: () => 'auto',
  },
  server_trusted_proxies: {
    type: proxies,
    description:
      'which proxies report the address of a client in X-Forwarded-For; auto trusts those on this machine if server_public_url is set',
    flag: '--trusted-proxies',
    files: 'user',
    defaultText: 'auto',
    default: () => 'auto',
  },
  server_tasks: {
    type: boolean,
    description: 'whether the server works on tasks itself; false leaves them to workers',
    files: 'user',
    defaultText: 'true',
    default: () => true,
  },
  server_url: {
    type: webOrigin,
    description: 'which server to talk to',
    flag: '--url',
    files: 'user',
    defaultText: 'http://127.0.0.1:8787',
    default: () => 'http://127.0.0.1:8787',
  },
  server_insecure: {
    type: boolean,
    description: 'whether license verbs and the daemon may use http:// to another host',
    files: 'user',
    defaultText: 'false',
    default: () => false,
  },
  chat_provider: {
    type: oneOf('none', 'openai_compatible', 'anthropic'),
    description:
      'whose language model research bots talk with; none is the embedded analyst. Its key is in SERVICE_CHAT_API_KEY',
    files: 'user',
    defaultText: 'none',
    default: () => 'none',
  },
  chat_model: {
    type: visible,
    description: 'which of its models',
    files: 'user',
    defaultText: 'none',
    default: () => 'none',
  },
  chat_base_url: {
    type: webUrlOrAuto,
    description: "where its API is; auto is the provider's own",
    files: 'user',
    defaultText: 'auto',
    default: () => 'auto',
  },
  chat_turns: {
    type: count,
    description: 'requests to the model that one answer may take',
    files: 'user',
    defaultText: '8',
    default: () => 8,
  },
  chat_seconds: {
    type: wholeSeconds(1, 3600),
    description: 'how long one answer may take',
    files: 'user',
    defaultText: '120',
    default: () => 120,
  },
  chat_tokens: {
    type: count,
    description: 'tokens that one answer may take, of what the model is sent and says together',
    files: 'user',
    defaultText: '100000',
    default: () => 100_000,
  },
  license_enforcement_enabled: {
    type: boolean,
    description: 'whether the server refuses what its own license does not give',
    files: 'user',
    defaultText: 'true',
    default: () => true,
  },
  license_registry_enforced: {
    type: boolean,
    description: 'whether the server denies renewal of what is revoked',
    files: 'user',
    defaultText: 'true',
    default: () => true,
  },
  license_clone_policy: {
    type: oneOf('alert', 'refuse'),
    description: 'what the server does when a lease is renewed a second time',
    files: 'user',
    defaultText: 'alert',
    default: () => 'alert',
  },
  license_ttl_seconds: {
    type: ttl,
    description: 'how long a lease lasts when nothing else says so',
    files: 'user',
    defaultText: '604800, 7 days',
    default: () => 7 * DAY,
  },
  license_ttl_max_seconds: {
    type: ttl,
    description: 'how long a lease lasts at most',
    files: 'user',
    defaultText: '7776000, 90 days',
    default: () => 90 * DAY,
  },
  license_grace_period_seconds: {
    type: gracePeriod,
    description: 'how long a lease works after its end when nothing else says so',
    files: 'user',
    defaultText: '259200, 3 days',
    default: () => 3 * DAY,
  },
  license_grace_period_max_seconds: {
    type: gracePeriod,
    description: 'how long a lease works after its end at most',
    files: 'user',
    defaultText: '2592000, 30 days',
    default: () => 30 * DAY,
  },
  license_issuer: {
    type: visible,
    description: 'who issues the leases, as they name it',
    files: 'user',
    defaultText: 'service-local',
    default: () => 'service-local',
  },
  license_product: {
    type: visible,
    description:
      'product of the leases that the server issues, where the plan names none, and of the lease that it needs itself',
    files: 'user',
    defaultText: 'service-local',
    default: () => 'service-local',
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
  return SETTINGS[key].flag ?? `--${key.replaceAll('_', '-')}`;
}

/** One place that gives a setting a value. */
interface SettingSource {
  readonly value: string | number | boolean;
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

/** The values that one place gives, checked. */
type Layer = ReadonlyMap<SettingKey, SettingSource>;

/** A value as it was written. */
interface Written {
  readonly key: string;
  /** `undefined` where something stands that is no text and no number. */
  readonly text: string | undefined;
  readonly origin: string;
  /** What a relative path is relative to. */
  readonly base: string;
  /** Where it is in a file, to point at when it is wrong. */
  readonly place?: { readonly kind: FileKind; readonly key: Place; readonly value: Place };
}

type FileKind = 'project' | 'user';
type Place = Pick<Problem, 'file' | 'line' | 'column' | 'pointer'>;

/**
 * Settles every setting: flag, else environment, else project file (`service-local.yaml` in `cwd`
 * or the nearest parent), else user file (`config.yaml` in `home`), else default. A value that is
 * wrong is an error even where a stronger one hides it.
 *
 * @param flags what was typed, by setting; the origin is how it was typed.
 * @throws ServiceError `unknown_setting` or `invalid_setting`, with the problems of all sources;
 * `invalid_data`, reason `unreadable`, for a file that this user may not read.
 */
export function resolveSettings(
  cwd: string,
  env: NodeJS.ProcessEnv,
  flags: ReadonlyMap<SettingKey, { readonly text: string; readonly origin: string }> = new Map(),
  { runsWithoutUserFile = false }: { readonly runsWithoutUserFile?: boolean } = {},
): ResolvedSettings {
  const problems: Problem[] = [];
  const typed = [...flags].map(([key, flag]) => ({ key, ...flag, base: cwd }));
  const environment = readEnvironment(env, cwd, problems);
  const home = homeFrom(env, cwd);
  const layers: readonly Layer[] = [
    check(typed, problems),
    environment,
    readNearestFile(cwd, problems),
    readUserFile(join(home, 'config.yaml'), problems, runsWithoutUserFile),
  ];
  if (problems.length > 0) throw settingsError(problems);

  const values: Partial<Record<SettingKey, SettingSource['value']>> = {};
  const sources: Partial<Record<SettingKey, readonly SettingSource[]>> = {};
  for (const key of SETTING_KEYS) {
    const preset = { value: SETTINGS[key].default(cwd, home), origin: 'default' };
    const all = [...layers.flatMap((layer) => layer.get(key) ?? []), preset];
    values[key] = all[0]!.value;
    sources[key] = Object.freeze(all);
  }
  return {
    values: Object.freeze(values) as unknown as Settings,
    sources: Object.freeze(sources) as unknown as SettingSources,
  };
}

/**
 * The home directory, which only a variable can set: for whoever needs no other setting.
 * @param cwd what a relative path is relative to.
 */
export function homeFrom(env: NodeJS.ProcessEnv, cwd: string): string {
  const text = variableOf('home', env);
  const given = text === undefined ? undefined : SETTINGS.home.type.parse(text, cwd);
  return given ?? SETTINGS.home.default(cwd, '');
}

const NOTHING: Layer = new Map();

/** Keeps what is right, and adds what is wrong to the problems. */
function check(written: readonly Written[], problems: Problem[]): Layer {
  const layer = new Map<SettingKey, SettingSource>();
  for (const { key, text, origin, base, place } of written) {
    if (!isSettingKey(key)) {
      problems.push({ ...place?.key, ...unknownSetting(key) });
      continue;
    }
    const { type, files } = SETTINGS[key];
    const value = text === undefined ? undefined : type.parse(text, base);
    if (place && files !== undefined && files !== place.kind) {
      const others = files === 'user' ? ` or the user file` : '';
      const message = `${key} can be set only by ${environmentName(key)}${others}`;
      problems.push({ ...place.key, code: 'invalid_setting', message });
    } else if (value === undefined) {
      problems.push(invalidValue(key, text, origin, place?.value));
    } else {
      layer.set(key, { value, origin });
    }
  }
  return layer;
}

/** Variables that name no setting are left alone. */
function readEnvironment(env: NodeJS.ProcessEnv, cwd: string, problems: Problem[]): Layer {
  const written = SETTING_KEYS.flatMap((key) => {
    const text = variableOf(key, env);
    return text === undefined ? [] : [{ key, text, origin: environmentName(key), base: cwd }];
  });
  return check(written, problems);
}

/**
 * What is not meant for us counts as not there: Kubernetes sets `SERVICE_LOCAL_PORT` and
 * `SERVICE_LOCAL_SERVICE_HOST` in every pod beside a Service called `service-local`; and beside one
 * called `service-local-server`, the variable of a setting to what is none of its values.
 */
function variableOf(key: SettingKey, env: NodeJS.ProcessEnv): string | undefined {
  const text = env[environmentName(key)];
  return text && !text.startsWith('tcp://') ? text : undefined;
}

function readNearestFile(directory: string, problems: Problem[]): Layer {
  const parent = dirname(directory);
  return (
    readFile(join(directory, 'service-local.yaml'), 'project', problems) ??
    (parent === directory ? NOTHING : readNearestFile(parent, problems))
  );
}

function readUserFile(file: string, problems: Problem[], isOptional: boolean): Layer {
  try {
    return readFile(file, 'user', problems) ?? NOTHING;
  } catch (error) {
    if (isOptional && error instanceof ServiceError) return NOTHING;
    throw error;
  }
}

/**
 * Returns undefined if there is no such file.
 * @throws ServiceError `invalid_data`, reason `unreadable`, if this user may not read it.
 */
function readFile(file: string, kind: FileKind, problems: Problem[]): Layer | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
    if (isSystemError(error, 'EACCES', 'EPERM')) throw notAllowed(file, error);
    problems.push({ code: 'invalid_setting', file, message: (error as Error).message });
    return NOTHING;
  }
  return parseFile(file, kind, text, problems);
}

function notAllowed(file: string, cause: NodeJS.ErrnoException): ServiceError {
  const user = process.getuid?.();
  const foreign = foreignOwner(file, user);
  const message = `${file} cannot be read (${cause.code})`;
  if (foreign === undefined) {
    return new ServiceError('invalid_data', message, {
      reason: 'unreadable',
      remedy: 'Change its permissions, or those of the directories above it.',
      cause,
    });
  }
  const why = `${foreign.path} belongs to the user ${foreign.uid}, and this runs as ${user}`;
  return new ServiceError('invalid_data', `${message}: ${why}`, {
    reason: 'unreadable',
    remedy: 'Run this as that user, or name another home directory in SERVICE_LOCAL_HOME.',
    cause,
  });
}

/** The file, or the nearest directory above it that can be examined, if another user owns it. */
function foreignOwner(
  place: string,
  user: number | undefined,
): { readonly path: string; readonly uid: number } | undefined {
  try {
    const { uid } = statSync(place);
    return user === undefined || uid === user ? undefined : { path: place, uid };
  } catch {
    return place === dirname(place) ? undefined : foreignOwner(dirname(place), user);
  }
}

function parseFile(file: string, kind: FileKind, text: string, problems: Problem[]): Layer {
  // Loaded here and not above: most runs have no such file, and need no YAML.
  const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
  const lines = new yaml.LineCounter();
  const at = (offset: number): { file: string; line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  for (const { pos, message } of document.errors) {
    problems.push({ code: 'invalid_setting', ...at(pos[0]), message });
  }
  const { contents } = document;
  if (document.errors.length > 0 || contents === null) return NOTHING;
  if (!yaml.isMap(contents)) {
    const message = 'needs lines of `setting: value`';
    problems.push({ code: 'invalid_setting', ...at(contents.range[0]), message });
    return NOTHING;
  }

  const written = contents.items.map(({ key: keyNode, value: valueNode }) => {
    const key = String(keyNode);
    const place = { ...at(yaml.isNode(keyNode) ? keyNode.range[0] : 0), pointer: `/${key}` };
    return {
      key,
      text: yaml.isScalar(valueNode) ? scalarText(valueNode) : undefined,
      origin: `${file}:${place.line}`,
      base: dirname(file),
      place: {
        kind,
        key: place,
        value: yaml.isNode(valueNode) ? { ...place, ...at(valueNode.range[0]) } : place,
      },
    };
  });
  return check(written, problems);
}

/** A number counts as it was typed: a directory may be called 007. */
function scalarText({ value, source }: Scalar): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return source;
  return typeof value === 'string' ? value : undefined;
}

function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}

/** The setting of that name. @throws ServiceError `unknown_setting`, with what was probably meant. */
export function settingKey(text: string): SettingKey {
  if (isSettingKey(text)) return text;
  const { message, suggestion } = unknownSetting(text);
  throw new ServiceError('unknown_setting', message, {
    remedy: suggestion
      ? `Did you mean ${suggestion}?`
      : 'See `service-local config list` for all settings.',
  });
}

function unknownSetting(key: string): Problem {
  const suggestion = closest(key, SETTING_KEYS);
  const message = `there is no setting '${key}'`;
  return { code: 'unknown_setting', message, ...(suggestion && { suggestion }) };
}

/** Without a place in a file the message begins with the origin. */
function invalidValue(
  key: SettingKey,
  text: string | undefined,
  origin: string,
  place: Place | undefined,
): Problem {
  const { name, choices } = SETTINGS[key].type;
  const subject = place ? key : `${origin}: ${key}`;
  const shown = text?.replace(/\/\/.*@/, '//…@');
  const message = `${subject} needs ${name}${shown === undefined ? '' : `, not '${shown}'`}`;
  const suggestion = text && choices && closest(text, choices);
  return { ...place, code: 'invalid_setting', message, ...(suggestion && { suggestion }) };
}

function settingsError(problems: readonly Problem[]): ServiceError {
  const code = problems.every((problem) => problem.code === 'unknown_setting')
    ? 'unknown_setting'
    : 'invalid_setting';
  const what =
    problems.length === 1 ? 'a setting is wrong' : `${problems.length} settings are wrong`;
  return new ServiceError(code, what, { problems, remedy: 'Correct or remove what is wrong.' });
}
