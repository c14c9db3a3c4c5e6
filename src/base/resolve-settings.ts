import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Scalar } from 'yaml';
import { closest } from './closest.ts';
import { ServiceError, type Problem } from './errors.ts';
import { isSystemError } from './system-errors.ts';
import {
  SETTINGS,
  SETTING_KEYS,
  defaultValue,
  environmentName,
  type SettingKey,
  type Settings,
} from './settings.ts';

interface SettingSource {
  readonly value: string | number | boolean;
  /** `--workers`, `SERVICE_LOCAL_WORKERS`, `/a/service-local.yaml:3` or `default`. */
  readonly origin: string;
}

/** Sources of each setting that have a value: the one in force first, the default last. */
export type SettingSources = Readonly<
  Record<SettingKey, readonly [SettingSource, ...SettingSource[]]>
>;

export interface ResolvedSettings {
  readonly values: Settings;
  readonly sources: SettingSources;
}

type Layer = ReadonlyMap<SettingKey, SettingSource>;

interface RawValue {
  readonly key: string;
  /** Undefined if the value is a list, an object or null. */
  readonly text: string | undefined;
  readonly origin: string;
  /** Directory against which a relative path is resolved. */
  readonly base: string;
  /** Position in a file, for error messages. */
  readonly place?: { readonly kind: FileKind; readonly key: Place; readonly value: Place };
}

type FileKind = 'project' | 'user';
type Place = Pick<Problem, 'file' | 'line' | 'column' | 'pointer'>;

/**
 * Determines every setting from the first source that has a value: command line, environment,
 * project file (`service-local.yaml` in `cwd` or the nearest parent), user file (`config.yaml` in
 * `home`), default. An invalid value is an error even if another source takes precedence.
 *
 * @param flags values from the command line, with the option as origin.
 * @throws ServiceError `unknown_setting` or `invalid_setting`, with the problems of all sources;
 *   `invalid_data`, reason `unreadable`, for a file that this user may not read.
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
    const preset = { value: defaultValue(key, cwd, home), origin: 'default' };
    const all = [...layers.flatMap((layer) => layer.get(key) ?? []), preset];
    values[key] = all[0]!.value;
    sources[key] = Object.freeze(all);
  }
  return {
    values: Object.freeze(values) as unknown as Settings,
    sources: Object.freeze(sources) as unknown as SettingSources,
  };
}

/** Determines the home directory alone, which only the environment can set. */
export function homeFrom(env: NodeJS.ProcessEnv, cwd: string): string {
  const text = readVariable('home', env);
  const given = text === undefined ? undefined : SETTINGS.home.type.parse(text, cwd);
  return given ?? defaultValue('home', cwd, '');
}

const NOTHING: Layer = new Map();

/** Returns the valid values, and adds the invalid ones to `problems`. */
function check(values: readonly RawValue[], problems: Problem[]): Layer {
  const layer = new Map<SettingKey, SettingSource>();
  for (const { key, text, origin, base, place } of values) {
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

function readEnvironment(env: NodeJS.ProcessEnv, cwd: string, problems: Problem[]): Layer {
  const values = SETTING_KEYS.flatMap((key) => {
    const text = readVariable(key, env);
    return text === undefined ? [] : [{ key, text, origin: environmentName(key), base: cwd }];
  });
  return check(values, problems);
}

/**
 * Ignores variables that Kubernetes sets: a Service named `service-local-server` makes
 * `SERVICE_LOCAL_SERVER_PORT` a `tcp://` URL in every pod of its namespace.
 */
function readVariable(key: SettingKey, env: NodeJS.ProcessEnv): string | undefined {
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
 * Returns undefined if the file does not exist.
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
      remedy: 'Make the file and the directories above it readable for this user.',
      cause,
    });
  }
  const why = `${foreign.path} belongs to user ${foreign.uid}, but this process runs as user ${user}`;
  return new ServiceError('invalid_data', `${message}: ${why}`, {
    reason: 'unreadable',
    remedy: 'Run the command as that user, or set SERVICE_LOCAL_HOME to another directory.',
    cause,
  });
}

/** The file, or the nearest accessible directory above it, if another user owns it. */
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
  // Loaded only if a file exists, so that most commands start without the YAML parser.
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
    const message = 'the file must consist of lines such as `workers: 4`';
    problems.push({ code: 'invalid_setting', ...at(contents.range[0]), message });
    return NOTHING;
  }

  const values = contents.items.map(({ key: keyNode, value: valueNode }) => {
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
  return check(values, problems);
}

/** Returns numbers as they are written: a directory may be named 007. */
function scalarText({ value, source }: Scalar): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return source;
  return typeof value === 'string' ? value : undefined;
}

function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}

/** @throws ServiceError `unknown_setting`, with the most similar name. */
export function requireSettingKey(text: string): SettingKey {
  if (isSettingKey(text)) return text;
  const { message, suggestion } = unknownSetting(text);
  throw new ServiceError('unknown_setting', message, {
    remedy: suggestion
      ? `Did you mean ${suggestion}?`
      : 'Run `service-local config list` to see all settings.',
  });
}

function unknownSetting(key: string): Problem {
  const suggestion = closest(key, SETTING_KEYS);
  const message = `unknown setting '${key}'`;
  return { code: 'unknown_setting', message, ...(suggestion && { suggestion }) };
}

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
  const message =
    problems.length === 1 ? 'a setting is invalid' : `${problems.length} settings are invalid`;
  return new ServiceError(code, message, {
    problems,
    remedy: 'Correct or remove each invalid setting.',
  });
}
