/** Finds the peaks of the last six months in the event log, for RTS 6 Article 10(a) and (b). */
import { ServiceError } from '../../base/errors.ts';
import { DAY } from '../../market/bar-time.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';
import { findHead, formatInstant, rangeOf } from '../report/period.ts';
import { busiestWindow, Columns, orderInTime, type Series } from './windows.ts';

/** Outgoing messages, incoming messages about orders, and incoming market data. */
export const CLASSES = ['out', 'in_order', 'in_md'] as const;
export type MessageClass = (typeof CLASSES)[number];

/** Window lengths in seconds. RTS 6 names none, so they are our choice; the longest stands for a trading day. */
export const WINDOWS = [1, 60, 86_400] as const;
export type WindowSeconds = (typeof WINDOWS)[number];

export interface Mix {
  readonly kind: string;
  readonly instrument: string;
  readonly count: number;
}

export interface MessagePeak {
  readonly class: MessageClass;
  readonly window_s: WindowSeconds;
  /** Maximum number of messages in any window of that length. */
  readonly M: number;
  /** Start of the window, RFC 3339 UTC; null without messages. */
  readonly peak_ts: string | null;
  readonly instruments: readonly string[];
  /** The messages in that window, by kind and instrument. */
  readonly mix: readonly Mix[];
}

export interface VolumePeak {
  readonly measure: 'value' | 'quantity' | 'fills';
  /** Currency of a value, instrument of a quantity; null for fills. */
  readonly of: string | null;
  readonly window_s: WindowSeconds;
  readonly M: number;
  readonly peak_ts: string | null;
  readonly instruments: readonly string[];
}

export interface Peaks {
  readonly messages: readonly MessagePeak[];
  readonly volume: readonly VolumePeak[];
}

/** A part of the period for which the log is incomplete. */
export interface LogGap {
  readonly bot_id: string;
  readonly why: 'data_gap' | 'data_refused' | 'log_lost';
  readonly count: number;
  /** RFC 3339 UTC. */
  readonly first: string;
}

export interface History {
  readonly scope: 'bot' | 'firm';
  /** RFC 3339 UTC; `to` is exclusive. */
  readonly window: { readonly from: string; readonly to: string };
  readonly production: Peaks;
  /** Peaks of paper sessions, which are used only for assumptions. */
  readonly paper: Peaks;
  /** Number of days within the window on which a production run was open. */
  readonly coverage_days: number;
  /** Length of the window. */
  readonly days: number;
  /** Start of the first production run within the window; null without production runs. */
  readonly since: string | null;
  readonly gaps: readonly LogGap[];
  readonly counted: string;
  /** The query, so that it can be repeated; `hash` covers its parameters and the peaks. */
  readonly query: { readonly name: 'stress.peaks'; readonly params: object; readonly hash: string };
}

/**
 * States what counts as a message, and what the log cannot show. A paper session receives no venue reports,
 * so its order events count instead.
 */
const COUNTED =
  'Each event in the log counts as one message: orders and cancels are outgoing; venue reports are incoming; closed bars are market data, one message per instrument. All actions of a strategy at one bar count at the same time. The log does not contain, and the count omits: heartbeats, order status requests, retries of unanswered requests, and market data within a bar.';

const OUT: Readonly<Record<Target, readonly string[]>> = {
  k8s: ['order.submitted', 'order.pending_cancel'],
  paper: ['order.submitted', 'order.canceled'],
};
const IN_ORDER: Readonly<Record<Target, readonly string[]>> = {
  k8s: ['venue.report'],
  paper: ['order.submitted', 'order.filled', 'order.canceled', 'order.expired', 'order.rejected'],
};
const FILL = 'order.filled';
const BARS = 'data.bars';
const GAPS: Readonly<Record<string, LogGap['why']>> = {
  'data.gap': 'data_gap',
  'data.refused': 'data_refused',
};
const KINDS = [
  ...new Set([...OUT.k8s, ...OUT.paper, ...IN_ORDER.k8s, ...IN_ORDER.paper]),
  BARS,
  ...Object.keys(GAPS),
];

type Target = 'k8s' | 'paper';

/** SQLite blocks the server's thread while it reads; this number of events takes a few milliseconds. */
const EVENTS_AT_ONCE = 4096;
/** Bounds the memory used in a server that also trades; each message or fill takes 16 to 32 bytes. */
const MOST_ROWS = 2 ** 25;

export interface PeaksRequest {
  /** Undefined for all bots, including archived ones. */
  readonly bot_id?: string | undefined;
  /** End of the six months, ms since the epoch. */
  readonly asOf: number;
  readonly eventsAtOnce?: number;
  readonly mostRows?: number;
}

/**
 * Reads the log of `[asOf − 6 calendar months, asOf)` in pages, between which other work of the thread
 * continues. Outliers count as well, because the Article requires the highest figures.
 *
 * @throws ServiceError `conflict` with the reason `too_much_history`.
 */
export async function readHistory(
  storage: Storage,
  { bot_id, asOf, eventsAtOnce = EVENTS_AT_ONCE, mostRows = MOST_ROWS }: PeaksRequest,
): Promise<History> {
  const from = sixMonthsBefore(asOf);
  const made = { k8s: newCounts(), paper: newCounts() };
  const runs = await listRuns(storage.read, bot_id, from, asOf);
  const bots = [...Map.groupBy(runs, (run) => run.bot_id)].sort(([a], [b]) => (a < b ? -1 : 1));
  const logs: object[] = [];
  const gaps = new LogGaps();
  for (const [id, own] of bots) {
    const range = await rangeOf(storage.read, id, { from, to: asOf });
    const head = await findHead(storage.read, id, range);
    logs.push({ bot_id: id, ...range, hash: head?.hash ?? null });
    const targets = new Map(own.map(({ task_id, target }) => [task_id, target]));
    const currencies = await readCurrencies(storage.read, id);
    for (let after = range.after_seq; after < range.through_seq; after += eventsAtOnce) {
      const through = Math.min(after + eventsAtOnce, range.through_seq);
      for (const row of await readPage(storage.read, id, after, through)) {
        const target = targets.get(row.run_id ?? '');
        if (target === undefined || row.occurred_at < from || row.occurred_at >= asOf) continue;
        const why = GAPS[row.kind];
        if (why === undefined) {
          countEvent(made[target], target, row, currencies.get(row.version) ?? '');
        } else if (target === 'k8s') gaps.add(id, why, row.occurred_at);
      }
      if (countRows(made.k8s) + countRows(made.paper) > mostRows) throw tooMuchHistory(mostRows);
      await yieldThread();
    }
    for (const { target, ended_at, error } of own) {
      if (target === 'k8s' && isLogLost(error)) gaps.add(id, 'log_lost', ended_at ?? asOf);
    }
  }
  const ran = runs.filter(({ target }) => target === 'k8s');
  const params = {
    scope: bot_id === undefined ? 'firm' : 'bot',
    from,
    to: asOf,
    kinds: KINDS,
    logs,
  };
  const production = await findPeaks(made.k8s);
  const paper = await findPeaks(made.paper);
  const days = Math.round((asOf - from) / DAY);
  const since = ran.length === 0 ? undefined : Math.min(...ran.map(({ begun }) => begun));
  return {
    scope: bot_id === undefined ? 'firm' : 'bot',
    window: { from: formatInstant(from), to: formatInstant(asOf) },
    production,
    paper,
    // The first and the last day are only partly in the window.
    coverage_days: Math.min(countDays(ran), days),
    days,
    since: since === undefined ? null : formatInstant(since),
    gaps: gaps.list(),
    counted: COUNTED,
    query: { name: 'stress.peaks', params, hash: digest({ params, production, paper }) },
  };
}

function countRows({ messages, fills }: Counts): number {
  return CLASSES.reduce((sum, one) => sum + messages[one].count, fills.count);
}

function tooMuchHistory(most: number): ServiceError {
  return new ServiceError(
    'conflict',
    `the last six months have more than ${most} messages, more than the server can hold in memory`,
    { reason: 'too_much_history', remedy: 'Test each bot separately with scope bot.' },
  );
}

/** Lets other work of this thread run. */
function yieldThread(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Returns the same UTC time six calendar months earlier, on the last day of a month without that day. */
export function sixMonthsBefore(time: number): number {
  const date = new Date(time);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() - 6);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime();
}

// ---- Database queries ---------------------------------------------------------------------------

interface Run {
  readonly bot_id: string;
  readonly task_id: string;
  readonly target: Target;
  /** Start and end, ms since the epoch, clipped to the window. */
  readonly begun: number;
  readonly over: number;
  readonly ended_at: number | null;
  readonly error: string | null;
}

async function listRuns(
  db: Db,
  bot_id: string | undefined,
  from: number,
  to: number,
): Promise<readonly Run[]> {
  const rows = await db
    .selectFrom('bot_deployments as deployment')
    .leftJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .select(['deployment.bot_id', 'deployment.task_id', 'target', 'deployment.created_at'])
    .select(['deployment.ended_at', 'tasks.error'])
    .where('target', 'in', ['k8s', 'paper'])
    .where('deployment.created_at', '<', to)
    .where((is) =>
      is.or([is('deployment.ended_at', 'is', null), is('deployment.ended_at', '>=', from)]),
    )
    .$if(bot_id !== undefined, (query) => query.where('deployment.bot_id', '=', bot_id!))
    .orderBy('deployment.deployment_id')
    .execute();
  return rows.map(({ created_at, target, ended_at, ...row }) => ({
    ...row,
    target: target as Target,
    ended_at,
    begun: Math.max(created_at, from),
    over: Math.min(ended_at ?? to, to),
  }));
}

async function readCurrencies(db: Db, bot_id: string): Promise<ReadonlyMap<number, string>> {
  const rows = await db
    .selectFrom('bot_versions')
    .select(['version', 'document'])
    .where('bot_id', '=', bot_id)
    .execute();
  return new Map(rows.map(({ version, document }) => [version, readCurrency(document)]));
}

function readCurrency(document: string): string {
  const { spec } = JSON.parse(document) as {
    readonly spec?: { readonly universe?: { readonly currency?: string } };
  };
  return spec?.universe?.currency ?? '';
}

async function readPage(db: Db, bot_id: string, after: number, through: number) {
  return db
    .selectFrom('bot_events')
    .select(['kind', 'run_id', 'version', 'occurred_at', 'payload'])
    .where('bot_id', '=', bot_id)
    .where('seq', '>', after)
    .where('seq', '<=', through)
    .where('kind', 'in', KINDS)
    .execute();
}

type Row = Awaited<ReturnType<typeof readPage>>[number];

function isLogLost(error: string | null): boolean {
  return (
    error !== null && (JSON.parse(error) as { readonly reason?: string }).reason === 'log_lost'
  );
}

/** Counts the UTC days on which at least one run was open. */
function countDays(runs: readonly Run[]): number {
  let days = 0;
  let last = -Infinity;
  for (const { begun, over } of runs.toSorted((a, b) => a.begun - b.begun)) {
    const first = Math.max(Math.floor(begun / DAY), last + 1);
    const end = Math.ceil(over / DAY) - 1;
    if (end < first) continue;
    days += end - first + 1;
    last = end;
  }
  return days;
}

class LogGaps {
  readonly #all = new Map<string, Omit<LogGap, 'first'> & { readonly first: number }>();

  add(bot_id: string, why: LogGap['why'], time: number): void {
    const key = `${bot_id} ${why}`;
    const { count, first } = this.#all.get(key) ?? { count: 0, first: time };
    this.#all.set(key, { bot_id, why, count: count + 1, first: Math.min(first, time) });
  }

  list(): LogGap[] {
    return [...this.#all.values()].map((gap) => ({ ...gap, first: formatInstant(gap.first) }));
  }
}

// ---- Peaks --------------------------------------------------------------------------------------

interface Counts {
  /** Columns: time; index of kind and instrument in `keys`. */
  readonly messages: Readonly<Record<MessageClass, Columns>>;
  /** Columns: time; index of currency and instrument in `keys`; value; quantity. */
  readonly fills: Columns;
  readonly keys: Map<string, number>;
}

function newCounts(): Counts {
  const messages = { out: new Columns(2), in_order: new Columns(2), in_md: new Columns(2) };
  return { messages, fills: new Columns(4), keys: new Map() };
}

function countEvent(
  { messages, fills, keys }: Counts,
  target: Target,
  { kind, occurred_at: time, payload }: Row,
  currency: string,
): void {
  const fields = parsePayload(payload);
  const keyOf = (what: string, instrument: string): number => {
    const key = `${what} ${instrument}`;
    if (!keys.has(key)) keys.set(key, keys.size);
    return keys.get(key)!;
  };
  if (kind === BARS) {
    for (const symbol of Object.keys(fields.bars ?? {})) {
      messages.in_md.push(time, keyOf('bar', symbol));
    }
    return;
  }
  const symbol = fields.symbol ?? '';
  if (OUT[target].includes(kind)) messages.out.push(time, keyOf(kind, symbol));
  if (IN_ORDER[target].includes(kind)) {
    // A venue report names only the order; its instrument is in another event.
    const what = fields.status === undefined ? kind : `report.${fields.status}`;
    messages.in_order.push(time, keyOf(what, symbol));
  }
  if (kind === FILL) {
    const quantity = Math.abs(fields.quantity ?? 0);
    fills.push(time, keyOf(currency, symbol), quantity * (fields.price ?? 0), quantity);
  }
}

interface EventPayload {
  readonly symbol?: string;
  readonly status?: string;
  readonly quantity?: number;
  readonly price?: number;
  readonly bars?: object;
}

/** A payload that was tampered with may not be JSON; its event still counts as a message. */
function parsePayload(payload: string): EventPayload {
  try {
    return (JSON.parse(payload) as EventPayload | null) ?? {};
  } catch {
    return {};
  }
}

async function findPeaks({ messages, fills, keys }: Counts): Promise<Peaks> {
  const names = [...keys.keys()].map((key) => {
    const [what = '', ...symbol] = key.split(' ');
    return [what, symbol.join(' ')] as const;
  });
  return {
    messages: await findMessagePeaks(messages, names),
    volume: await findVolumePeaks(fills, names),
  };
}

type Names = readonly (readonly [what: string, instrument: string])[];

async function findMessagePeaks(
  messages: Counts['messages'],
  names: Names,
): Promise<MessagePeak[]> {
  const peaks: MessagePeak[] = [];
  for (const one of CLASSES) {
    const [times, keys] = [messages[one].column(0), messages[one].column(1)];
    const order = await orderInTime(times);
    for (const window_s of WINDOWS) {
      await yieldThread();
      const { amount: M, from } = busiestWindow({ times }, order, window_s * 1000);
      const mix = countMix(times, keys, names, from, window_s);
      const instruments = [...new Set(mix.map(({ instrument }) => instrument))].filter(Boolean);
      const peak_ts = from === undefined ? null : formatInstant(from);
      peaks.push({ class: one, window_s, M, peak_ts, instruments: instruments.sort(), mix });
    }
  }
  return peaks;
}

function countMix(
  times: Float64Array,
  keys: Float64Array,
  names: Names,
  from: number | undefined,
  window_s: number,
): Mix[] {
  if (from === undefined) return [];
  const counts = new Map<number, number>();
  for (const [at, time] of times.entries()) {
    if (time < from || time >= from + window_s * 1000) continue;
    counts.set(keys[at]!, (counts.get(keys[at]!) ?? 0) + 1);
  }
  return [...counts]
    .map(([key, number]) => ({ kind: names[key]![0], instrument: names[key]![1], count: number }))
    .sort(
      (a, b) =>
        b.count - a.count || (`${a.kind} ${a.instrument}` < `${b.kind} ${b.instrument}` ? -1 : 1),
    );
}

async function findVolumePeaks(fills: Columns, names: Names): Promise<VolumePeak[]> {
  const [times, keys] = [fills.column(0), fills.column(1)];
  const [values, quantities] = [fills.column(2), fills.column(3)];
  const rows = [...times.keys()];
  const peaks: VolumePeak[] = [];
  const add = async (
    measure: VolumePeak['measure'],
    of: string | null,
    some: readonly number[],
    amounts: Float64Array | undefined,
  ): Promise<void> => {
    const series: Series = {
      times: Float64Array.from(some, (row) => times[row]!),
      ...(amounts && { amounts: Float64Array.from(some, (row) => amounts[row]!) }),
    };
    const order = await orderInTime(series.times);
    for (const window_s of WINDOWS) {
      await yieldThread();
      const { amount, from } = busiestWindow(series, order, window_s * 1000);
      const isIn = (row: number): boolean =>
        from !== undefined && times[row]! >= from && times[row]! < from + window_s * 1000;
      const instruments = new Set(some.filter(isIn).map((row) => names[keys[row]!]![1]));
      peaks.push({
        measure,
        of,
        window_s,
        M: Number(amount.toPrecision(12)),
        peak_ts: from === undefined ? null : formatInstant(from),
        instruments: [...instruments].sort(),
      });
    }
  };
  await add('fills', null, rows, undefined);
  // Values in different currencies, and quantities of different instruments, cannot be added.
  for (const [currency, some] of Map.groupBy(rows, (row) => names[keys[row]!]![0])) {
    await add('value', currency, some, values);
  }
  for (const [symbol, some] of Map.groupBy(rows, (row) => names[keys[row]!]![1])) {
    await add('quantity', symbol, some, quantities);
  }
  return peaks;
}
