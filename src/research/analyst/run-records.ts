/** Records of a run, or of a trading session that has no result yet. */
import { isoTime } from '../../base/iso-time.ts';
import type { Citation } from '../answering.ts';
import { at, ifExists, withQuery } from '../call-api.ts';
import {
  botOf,
  cite,
  citeEvent,
  day,
  missing,
  newestRun,
  runOf,
  type Event,
  type Facts,
  type Page,
  type Run,
  type Task,
} from './facts.ts';
import type { Days } from './dates.ts';
import type { RunWanted } from './query.ts';
import {
  momentOf,
  readCurve,
  readTrades,
  tradesIn,
  type Curve,
  type TradeRow,
} from './result-files.ts';
import { readRunEvents, type RunEvents } from './run-events.ts';

export interface RunRecord {
  /** Names the run in an answer. */
  readonly said: string;
  /** First and last bar. */
  readonly window: Days;
  /** Equity before the first bar. */
  readonly start: number;
  /** Undefined for a session that has no result yet. */
  readonly run: Run | undefined;
  /** Cites figures of the result; none of a session. */
  readonly cite: (...pointers: readonly string[]) => Citation[];
  readonly citeStart: (figure: string) => Citation;
  /** @throws ServiceError `not_found` if it lacks the file or has no bars. */
  readonly curve: () => Promise<Curve>;
  /** In the order of their exit. @throws ServiceError `not_found` */
  readonly trades: () => Promise<readonly TradeRow[]>;
  /** @throws ServiceError `not_found` if it lacks the file, as a session does. */
  readonly events: () => Promise<RunEvents>;
}

/**
 * The wanted run. If a question names none, it is about the session that runs, else about the newest run;
 * see `runOf`.
 * @throws ServiceError `not_found`
 */
export async function recordOf(facts: Facts, wanted: RunWanted): Promise<RunRecord> {
  const { id, version, kind } = wanted;
  const asked = id ?? facts.ids[0];
  if (asked !== undefined) {
    const session = await openSession(facts, asked);
    return session ?? resultRecord(facts, await runOf(facts, wanted));
  }
  if (version === undefined && kind !== 'backtest') {
    const running = await runningSession(facts);
    if (running !== undefined) return running;
  }
  return resultRecord(facts, await newestRun(facts, version, kind));
}

export function resultRecord(facts: Facts, run: Run): RunRecord {
  const { result, said } = run;
  return {
    said,
    window: result.data.window,
    get start() {
      return result.data.equity.start;
    },
    run,
    cite: (...pointers) => pointers.map((pointer) => cite(result, pointer)),
    citeStart: (figure) => cite(result, '/equity/start', figure),
    curve: once(() => readCurve(facts, run)),
    trades: once(() => readTrades(facts, run)),
    events: once(() => readRunEvents(facts, run)),
  };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => (reading ??= read());
}

/** The newest session that runs. */
async function runningSession(facts: Facts): Promise<RunRecord | undefined> {
  if ((await botOf(facts)).data.document.spec.kind !== 'trading') return undefined;
  const path = at`/bots/${facts.bot}/state/snapshot`;
  const { data } = await facts.get<{ readonly state: { readonly sessions: object } }>(path);
  const newest = Object.keys(data.state.sessions).toSorted().at(-1);
  return newest === undefined ? undefined : openSession(facts, newest);
}

/** A session without a result: one that runs, or one in production. */
async function openSession(facts: Facts, id: string): Promise<RunRecord | undefined> {
  const task = (await ifExists(facts.get<Task>(at`/tasks/${id}`)))?.data;
  const isOpen = task?.kind === 'production' || (task?.kind === 'paper' && task.ended_at === null);
  const bot = await botOf(facts);
  if (!isOpen || task.bot_id !== bot.data.id) return undefined;
  const opened = await eventOf(facts, id, 'session.state', 'first');
  const first = await eventOf(facts, id, 'data.bars', 'first');
  const last = await eventOf(facts, id, 'data.bars', 'last');
  if (opened === undefined || first === undefined || last === undefined)
    throw missing(`the session ${id} has seen no bars yet`);
  const name = task.kind === 'paper' ? 'paper' : 'production';
  const [from, to] = [first.occurred_at, last.occurred_at];
  return {
    said: `the ${name} session ${id} of ${bot.data.slug}, version ${task.version}, ${day(from)} to ${day(to)} so far`,
    window: { from, to },
    start: Number(opened.payload['equity']),
    run: undefined,
    cite: () => [],
    citeStart: (figure) => citeEvent(facts.bot, opened, '/payload/equity', figure),
    curve: once(() => readSessionCurve(facts, id, first)),
    trades: once(() => readSessionTrades(facts, id)),
    async events() {
      throw missing(
        `the session ${id} has no result yet, so its costs and exit reasons are not available`,
      );
    },
  };
}

/** The first or the last event of a kind. */
async function eventOf(
  facts: Facts,
  run_id: string,
  kind: string,
  end: 'first' | 'last',
): Promise<Event | undefined> {
  const query = { run_id, kind, limit: 1, last: end === 'last' ? true : undefined };
  const path = withQuery(at`/bots/${facts.bot}/state/events`, query);
  return (await facts.get<Page<Event>>(path)).data.items[0];
}

/** The part of the chart of a session in use; times in seconds since the Unix epoch. */
interface SessionChart {
  readonly equity: Readonly<Record<'time' | 'equity' | 'drawdown', readonly number[]>>;
}

/** @throws ServiceError `not_found` if the session has more steps than its chart. */
async function readSessionCurve(facts: Facts, run_id: string, first: Event): Promise<Curve> {
  const chart = at`/bots/${facts.bot}/state/chart`;
  const { data } = await facts.get<SessionChart>(withQuery(chart, { run_id }));
  const { time, equity, drawdown } = data.equity;
  if (time.length === 0 || time[0]! * 1000 > Date.parse(first.occurred_at)) {
    throw missing(
      `the session ${run_id} has more steps than I read`,
      'Its trades are on the page of the bot, and its result has the figures when it ends.',
    );
  }
  const times = time.map((seconds) => isoTime(seconds * 1000));
  const columns = { time, equity, drawdown };
  return {
    time: times,
    equity: Float64Array.from(equity),
    drawdown: Float64Array.from(drawdown),
    cite(place, column, figure) {
      // The path returns the cited point first, also after further bars.
      const after = new Date(time[place]! * 1000 - 1).toISOString();
      const path = withQuery(chart, { run_id, after });
      return {
        figure,
        value: columns[column][place]!,
        source: `${path}#/equity/${column}/0`,
        times: momentOf(times[place]!),
      };
    },
  };
}

async function readSessionTrades(facts: Facts, run_id: string): Promise<readonly TradeRow[]> {
  const query = { run_id, sort: 'entry_time', order: 'asc', format: 'csv' };
  const path = withQuery(at`/bots/${facts.bot}/state/trades`, query);
  const { data } = await facts.get<string>(path);
  return tradesIn(path, data, data.slice(0, data.indexOf('\n')).split(','));
}
