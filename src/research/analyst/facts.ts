import { DAY } from '../../base/durations.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatInstant } from '../../base/format.ts';
import { at, ifExists, LONGEST_FILE, read, withQuery, type Ask } from '../call-api.ts';
import type { Conventions } from '../../backtest/summary.ts';
import type { Citation } from '../answering.ts';
import type { RunWanted } from './query.ts';

/** A document of the API, and the path where it was read. */
export interface Source<T = unknown> {
  readonly path: string;
  readonly data: T;
}

/** The sources of an answer: the question, and the API as the caller sees it. */
export interface Facts {
  readonly ask: Ask;
  readonly signal: AbortSignal;
  /** Id or slug of the bot. */
  readonly bot: string;
  /** Role of the agent that is asked. */
  readonly role: string | undefined;
  readonly text: string;
  /** Versions and ids of runs in the question. */
  readonly versions: readonly number[];
  readonly ids: readonly string[];
  /** Reads a path once. @throws ServiceError that of the API. */
  readonly get: <T = unknown>(path: string) => Promise<Source<T>>;
}

export function openFacts(
  ask: Ask,
  about: Pick<Facts, 'bot' | 'role' | 'text'>,
  signal: AbortSignal,
): Facts {
  const known = new Map<string, Promise<unknown>>();
  const get = async (path: string): Promise<Source> => {
    const reading = known.get(path) ?? read(ask, path, signal);
    known.set(path, reading);
    return { path, data: await reading };
  };
  return { ask, signal, ...about, versions: [], ids: [], get: get as Facts['get'] };
}

/**
 * Cites a figure by its path and a JSON pointer (RFC 6901) into the response. The value of a list is its
 * length, and that of an object is its JSON.
 */
export function cite({ path, data }: Source, pointer: string, figure?: string): Citation {
  const name = figure ?? pointer.slice(1).replaceAll('/', '.');
  return { figure: name, value: scalar(valueAt(data, pointer)), source: `${path}#${pointer}` };
}

/** Cites fields of the object at a pointer; `figureOf` names each, by default by its pointer. */
export function citeFields(
  source: Source,
  pointer: string,
  fields: readonly string[],
  figureOf?: (field: string) => string,
): Citation[] {
  return fields.map((field) => cite(source, `${pointer}/${field}`, figureOf?.(field)));
}

/** Cites a cell of a CSV file (RFC 7111). Rows and columns count from 1; the header is the first row. */
export function citeCell(
  path: string,
  row: number,
  column: number,
  figure: string,
  value: number | string,
): Citation {
  return { figure, value, source: `${path}#cell=${row},${column}` };
}

/** Cites a run by its own path, because its place in a list changes. */
export function citeTask(task: Task, pointer: string, figure: string): Citation {
  return cite({ path: at`/tasks/${task.task_id}`, data: task }, pointer, figure);
}

/** Cites an event by its own path. */
export function citeEvent(bot: string, event: Event, pointer = '/kind', figure?: string): Citation {
  const path = withQuery(at`/bots/${bot}/state/events`, { after_seq: event.seq - 1, limit: 1 });
  const name = figure ?? `event ${event.seq} ${pointer.slice(1).replaceAll('/', '.')}`;
  const value = scalar(valueAt(event, pointer));
  return { figure: name, value, source: `${path}#/items/0${pointer}` };
}

function valueAt(data: unknown, pointer: string): unknown {
  let value = data;
  for (const part of pointer.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** Escapes a step of a JSON pointer. */
export function step(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function scalar(value: unknown): NonNullable<Citation['value']> | null {
  if (Array.isArray(value)) return value.length;
  if (value === undefined || value === null) return null;
  if (typeof value === 'object') return JSON.stringify(value);
  return value as number | string | boolean;
}

// The fields of responses that answers use.

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string | null;
}

export interface Bot {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly status: string;
  readonly current_version: number;
  readonly version_hash: string;
  readonly document: { readonly metadata: Named; readonly spec: Spec };
  readonly active_deployments: readonly Deployment[];
  readonly halted: {
    readonly scope: string;
    readonly at: string;
    readonly by: string;
    readonly by_name: string | null;
    readonly reason: string;
  } | null;
}

interface Named {
  readonly owner?: string;
  readonly description?: string;
}

export interface Spec {
  readonly kind: string;
  readonly universe: { readonly symbols: readonly string[]; readonly currency: string };
  readonly data: {
    readonly timeframe: string;
    readonly source?: string;
    readonly sources?: Readonly<Record<string, string>>;
  };
  readonly strategy: {
    readonly name?: string;
    readonly module?: string;
    readonly params?: Readonly<Record<string, unknown>>;
  };
  readonly engine?: Readonly<Record<string, unknown>>;
  readonly risk?: Readonly<Record<string, unknown>>;
  readonly ml_models?: readonly { readonly name: string; readonly digest: string }[];
  readonly agents?: readonly { readonly role: string }[];
}

export interface Deployment {
  readonly deployment_id: string;
  readonly version: number;
  readonly target: string;
  readonly status: string;
  readonly created_at: string;
}

export interface Task {
  readonly task_id: string;
  readonly kind: string;
  readonly bot_id: string;
  readonly version: number;
  readonly status: string;
  readonly input: {
    readonly params?: Readonly<Record<string, unknown>>;
    readonly patch?: Readonly<Record<string, unknown>>;
    readonly bundle_hash?: string | null;
  };
  readonly error: { readonly code: string; readonly detail: string } | null;
  readonly created_by: string;
  readonly created_by_name: string | null;
  readonly created_at: string;
  readonly ended_at: string | null;
}

export interface Event {
  readonly seq: number;
  readonly kind: string;
  readonly version: number | null;
  readonly run_id: string | null;
  readonly occurred_at: string;
  readonly recorded_at: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The `summary.json` of a run. */
export interface Result {
  readonly bot: { readonly slug: string };
  readonly window: { readonly from: string; readonly to: string; readonly bars: number };
  readonly equity: { readonly start: number; readonly end: number };
  readonly benchmark?: { readonly name: string } & Readonly<
    Record<'total' | 'cagr' | 'volatility' | 'sharpe' | 'max_drawdown', number | null>
  >;
  readonly conventions: Conventions;
  readonly orders: {
    /** Absent in results of earlier versions. */
    readonly refused?: number;
    readonly reasons: Readonly<Record<string, number>>;
  };
  readonly gates: readonly {
    readonly name: string;
    readonly op: string;
    readonly threshold: number;
    readonly value: number | null;
    readonly pass: boolean;
  }[];
  readonly findings: readonly {
    readonly code: string;
    readonly severity: string;
    readonly issue: string;
  }[];
  readonly lock: { readonly data: Readonly<Record<string, string>> };
  readonly undefined: Readonly<Record<string, string>>;
}

export function botOf({ get, bot }: Facts): Promise<Source<Bot>> {
  return get(at`/bots/${bot}`);
}

/** Items read of a list. */
const MOST = 1000;

/** Tasks of the bot, the newest first. */
export function tasksOf(
  { get, bot }: Facts,
  { limit = MOST, ...only }: TasksWanted = {},
): Promise<Source<Page<Task>>> {
  return get(withQuery('/tasks', { bot, ...only, limit }));
}

interface TasksWanted {
  readonly status?: string;
  /** Kinds, joined by commas. */
  readonly kind?: string;
  readonly limit?: number;
  readonly cursor?: string | undefined;
}

/** The last events of the kinds, in their order. */
export function eventsOf(
  { get, bot }: Facts,
  kinds: readonly string[],
  limit = MOST,
): Promise<Source<Page<Event> & { readonly head_seq: number }>> {
  const kind = kinds.length === 0 ? undefined : kinds.join(',');
  return get(withQuery(at`/bots/${bot}/state/events`, { kind, last: true, limit }));
}

/** A run with a result. */
export interface Run {
  readonly task: Task;
  readonly result: Source<Result>;
  /** Names the run in an answer. */
  readonly said: string;
}

const isRun = ({ kind }: Task): boolean => kind === 'backtest' || kind === 'paper';

/** Few runs a page, because the input of a run can be long. */
const RUNS_AT_ONCE = 50;
const MOST_PAGES = 20;
const RUNS = { status: 'success', kind: 'backtest,paper', limit: RUNS_AT_ONCE };

/** Characters of changed values in an answer. */
const LONGEST_VALUES = 300;

/** Values that a run used in place of its version's values, such as `fast: 5, slow: 200`. */
export function otherValues({ input }: Task): string | undefined {
  const { params = {}, patch = {}, bundle_hash } = input;
  const values = [
    ...Object.entries(params).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
    ...(Object.keys(patch).length === 0 ? [] : [JSON.stringify(patch)]),
    ...(bundle_hash === undefined ? [] : ['unsaved code']),
  ].join(', ');
  if (values === '') return undefined;
  return values.length > LONGEST_VALUES ? `${values.slice(0, LONGEST_VALUES)}…` : values;
}

/**
 * The wanted run. By default, it is the newest successful run: runs of the current version come before
 * others, and runs with the values of their version before those with other values.
 * @throws ServiceError `not_found`
 */
export async function runOf(facts: Facts, wanted: RunWanted = {}): Promise<Run> {
  const asked = wanted.id ?? facts.ids[0];
  if (asked !== undefined) return runNamed(facts, asked);
  return newestRun(facts, wanted.version ?? facts.versions[0], wanted.kind);
}

export async function newestRun(
  facts: Facts,
  asked?: number,
  wanted?: RunWanted['kind'],
): Promise<Run> {
  const version = asked ?? (await botOf(facts)).data.current_version;
  let older: Task | undefined;
  let other: Task | undefined;
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next_cursor } = (await tasksOf(facts, { ...RUNS, cursor })).data;
    const runs = items.filter(
      (one) =>
        isRun(one) &&
        (asked === undefined || one.version === asked) &&
        (wanted === undefined || (one.kind === 'backtest') === (wanted === 'backtest')),
    );
    const own = runs.filter((one) => otherValues(one) === undefined);
    const task = own.find((one) => one.version === version);
    if (task !== undefined) return runWith(facts, task);
    older ??= own[0];
    other ??= runs.find((one) => one.version === version) ?? runs[0];
    cursor = next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  const found = older ?? other;
  if (found === undefined) throw await noRun(facts, asked);
  const run = await runWith(facts, found);
  const none = `version ${version}${asked === undefined ? ', the current one,' : ''} has no run with its own values yet`;
  return { ...run, said: `${run.said} (${none})` };
}

async function noRun(facts: Facts, version?: number): Promise<ServiceError> {
  const { slug } = (await botOf(facts)).data;
  const what = version === undefined ? 'this bot' : `version ${version} of this bot`;
  return missing(
    `no run of ${what} has been successful yet`,
    `Make one with \`service-local bots backtest ${slug}${version === undefined ? '' : ` --version ${version}`}\`.`,
  );
}

export async function runNamed(facts: Facts, id: string): Promise<Run> {
  const { data: task } = await facts.get<Task>(at`/tasks/${id}`);
  const { data: bot } = await botOf(facts);
  if (task.bot_id !== bot.id) throw missing(`the run ${id} is not one of this bot`);
  if (!isRun(task)) throw missing(`the ${task.kind} task ${id} has no such result`);
  if (task.status === 'success') return runWith(facts, task);
  throw missing(`the run ${id} has no result: it is ${task.status}`);
}

async function runWith({ get }: Facts, task: Task): Promise<Run> {
  const result = await get<Result>(at`/tasks/${task.task_id}/result`);
  const { from, to } = result.data.window;
  const kind = task.kind === 'paper' ? 'paper session' : 'backtest';
  const others = otherValues(task);
  const values = others === undefined ? '' : ` with other values than its spec (${others})`;
  const of = `${result.data.bot.slug}, version ${task.version}${values}`;
  const said = `the ${kind} ${task.task_id} of ${of}, ${day(from)} to ${day(to)}`;
  return { task, result, said };
}

/** The two newest successful runs, the older one first. @throws ServiceError `not_found` */
export async function twoNewestRuns(facts: Facts): Promise<readonly [Run, Run]> {
  const { items } = (await tasksOf(facts, RUNS)).data;
  const [newest, before] = items.filter(isRun);
  if (newest === undefined) throw await noRun(facts);
  if (before !== undefined) return [await runWith(facts, before), await runWith(facts, newest)];
  throw missing(
    'there is only one successful run',
    'Backtest it again, with other parameters or as another version.',
  );
}

/** A complete file of a run. A long run has no `equity.csv`. @throws ServiceError `not_found` */
export async function fileOf({ get }: Facts, run: Run, name: string): Promise<Source<string>> {
  const file = await ifExists(get<string>(at`/tasks/${run.task.task_id}/files/${name}`));
  if (file !== undefined && file.data.length < LONGEST_FILE) return file;
  throw missing(
    `${name} of this run is ${file === undefined ? 'missing' : 'longer than I read'}`,
    `Its report contains the figures: see \`GET /tasks/${run.task.task_id}/files/report.html\`.`,
  );
}

export function missing(message: string, remedy?: string): ServiceError {
  const reason = 'no_fact';
  return new ServiceError('not_found', message, {
    reason,
    ...(remedy !== undefined && { remedy }),
  });
}

/** `2000-01-03`, with the time where it is not midnight. */
export function day(instant: string): string {
  const ms = Date.parse(instant);
  return formatInstant(ms, ms % DAY === 0);
}

/** Quotes what others wrote, so that a reader sees where it begins and ends. */
export function quoted(text: unknown): string {
  return JSON.stringify(text) ?? 'nothing';
}
