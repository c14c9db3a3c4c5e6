/** Reads what bots sent and received in the last six months, for RTS 6 Article 10(a) and (b). */
import { ServiceError } from '../../base/errors.ts';
import { DAY } from '../../base/durations.ts';
import { readPackedBars } from '../../events/packed-bar-rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';
import { findHead, formatInstant, rangeOf } from '../report/period.ts';
import { Activity, MESSAGE_KINDS, type Target } from './peaks.ts';

/** A part of the period for which the log is incomplete. */
export interface LogGap {
  readonly bot_id: string;
  readonly why: 'data_gap' | 'data_refused' | 'log_lost';
  readonly count: number;
  /** RFC 3339 UTC. */
  readonly first: string;
}

/** Explanation in the result of what counts as a message and what the log cannot show. */
const COUNTED =
  'Each event in the log counts as one message: orders and cancels are outgoing; venue reports are incoming; closed bars are market data, one message per instrument. All actions of a strategy at one bar count at the same time. The log does not contain, and the count omits: heartbeats, order status requests, retries of unanswered requests, and market data within a bar.';

const GAPS: Readonly<Record<string, LogGap['why']>> = {
  'data.gap': 'data_gap',
  'data.refused': 'data_refused',
};
const KINDS = [...MESSAGE_KINDS, ...Object.keys(GAPS)];

/** SQLite blocks the server's thread while it reads; this number of events takes a few milliseconds. */
const EVENTS_AT_ONCE = 4096;
/** Bounds the memory used in a server that also trades; each message takes 24 bytes, and each fill 72. */
const MOST_ROWS = 2 ** 25;

export interface HistoryRequest {
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
  { read }: Storage,
  { bot_id, asOf, eventsAtOnce = EVENTS_AT_ONCE, mostRows = MOST_ROWS }: HistoryRequest,
) {
  const window = { from: sixMonthsBefore(asOf), to: asOf };
  const runs = await listRuns(read, bot_id, window);
  const made = { k8s: new Activity('k8s'), paper: new Activity('paper') };
  const gaps = new Map<string, LogGap>();
  const addGap = (id: string, why: LogGap['why'], time: number): void => {
    const { count, first } = gaps.get(`${id} ${why}`) ?? { count: 0, first: formatInstant(time) };
    const earliest = [first, formatInstant(time)].sort()[0]!;
    gaps.set(`${id} ${why}`, { bot_id: id, why, count: count + 1, first: earliest });
  };
  const logs: object[] = [];
  for (const [id, own] of [...Map.groupBy(runs, (run) => run.bot_id)].toSorted(byFirst)) {
    const range = await rangeOf(read, id, window);
    const head = await findHead(read, id, range);
    logs.push({ bot_id: id, ...range, hash: head?.hash ?? null });
    const targets = new Map(own.map(({ task_id, target }) => [task_id, target]));
    const currencies = await readCurrencies(read, id);
    for (let after = range.after_seq; after < range.through_seq; after += eventsAtOnce) {
      const through = Math.min(after + eventsAtOnce, range.through_seq);
      for (const row of await readPage(read, id, after, through)) {
        const target = targets.get(row.run_id ?? '');
        if (target === undefined || row.occurred_at < window.from || row.occurred_at >= asOf)
          continue;
        const why = GAPS[row.kind];
        if (why === undefined) made[target].add(row, currencies.get(row.version) ?? '');
        else if (target === 'k8s') addGap(id, why, row.occurred_at);
      }
      if (made.k8s.rows + made.paper.rows > mostRows) throw tooMuchHistory(mostRows);
      await new Promise(setImmediate);
    }
    for (const { target, ended_at, error } of own) {
      if (target === 'k8s' && isLogLost(error)) addGap(id, 'log_lost', ended_at ?? asOf);
    }
  }
  const scope = bot_id === undefined ? ('firm' as const) : ('bot' as const);
  const params = { scope, ...window, kinds: KINDS, logs };
  const [production, paper] = [await made.k8s.findPeaks(), await made.paper.findPeaks()];
  const ran = runs.filter(({ target }) => target === 'k8s');
  const days = Math.round((asOf - window.from) / DAY);
  return {
    scope,
    /** RFC 3339 UTC; `to` is exclusive. */
    window: { from: formatInstant(window.from), to: formatInstant(asOf) },
    production,
    /** Peaks of paper sessions, which are used only for assumptions. */
    paper,
    /** Number of days on which a production run was open. The first and the last day are only partly in the window. */
    coverage_days: Math.min(countDays(ran), days),
    /** Length of the window. */
    days,
    /** Start of the first production run within the window; null without production runs. */
    since: ran.length === 0 ? null : formatInstant(Math.min(...ran.map(({ begun }) => begun))),
    gaps: [...gaps.values()] as readonly LogGap[],
    counted: COUNTED,
    /** The query, so that it can be repeated; `hash` covers its parameters and the peaks. */
    query: {
      name: 'stress.peaks' as const,
      params: params as object,
      hash: digest({ params, production, paper }),
    },
  };
}

export type History = Awaited<ReturnType<typeof readHistory>>;

function byFirst([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function tooMuchHistory(most: number): ServiceError {
  return new ServiceError(
    'conflict',
    `the last six months have more than ${most} messages, more than the server can hold in memory`,
    { reason: 'too_much_history', remedy: 'Test each bot separately with scope bot.' },
  );
}

/** Returns the same UTC time six calendar months earlier, on the last day of a month without that day. */
export function sixMonthsBefore(time: number): number {
  const date = new Date(time);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() - 6);
  return date.getUTCDate() === day ? date.getTime() : date.setUTCDate(0);
}

async function listRuns(
  db: Db,
  bot_id: string | undefined,
  { from, to }: { readonly from: number; readonly to: number },
) {
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
    .$narrowType<{ target: Target }>()
    .execute();
  return rows.map(({ created_at, ...row }) => ({
    ...row,
    /** Start and end, ms since the epoch, clipped to the window. */
    begun: Math.max(created_at, from),
    over: Math.min(row.ended_at ?? to, to),
  }));
}

type Run = Awaited<ReturnType<typeof listRuns>>[number];

/** Account currencies by version. */
async function readCurrencies(db: Db, bot_id: string): Promise<ReadonlyMap<number, string>> {
  const rows = await db
    .selectFrom('bot_versions')
    .select(['version', 'document'])
    .where('bot_id', '=', bot_id)
    .execute();
  return new Map(
    rows.map(({ version, document }) => {
      const { spec } = JSON.parse(document) as {
        readonly spec?: { readonly universe?: { readonly currency?: string } };
      };
      return [version, spec?.universe?.currency ?? ''];
    }),
  );
}

async function readPage(db: Db, bot_id: string, after: number, through: number) {
  const whole = await db
    .selectFrom('bot_events')
    .select(['kind', 'run_id', 'version', 'occurred_at', 'payload'])
    .where('bot_id', '=', bot_id)
    .where('seq', '>', after)
    .where('seq', '<=', through)
    .where('kind', 'in', KINDS)
    .execute();
  const range = { bot_id, after_seq: after, until_seq: through, limit: through - after };
  return [...whole, ...(await readPackedBars(db, { ...range, kinds: ['data.bars'] }, 'asc'))];
}

function isLogLost(error: string | null): boolean {
  return (
    error !== null && (JSON.parse(error) as { readonly reason?: string }).reason === 'log_lost'
  );
}

/** Counts the UTC days on which at least one run was open. */
function countDays(runs: readonly Run[]): number {
  const days = new Set<number>();
  for (const { begun, over } of runs) {
    for (let day = Math.floor(begun / DAY); day * DAY < over; day += 1) days.add(day);
  }
  return days.size;
}
