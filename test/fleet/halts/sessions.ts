import { v7 as uuidv7 } from 'uuid';
import { appendToMany } from '../../../src/events/append.ts';
import { NO_EVENTS, type NewEvent } from '../../../src/events/event.ts';
import { prepareBatchQuery } from '../../../src/storage/prepare-batch-query.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import type { Tables } from '../../../src/storage/tables.ts';
import type { SessionState } from '../../../src/events/session-state.ts';
import { CREATED } from '../../events/bots.ts';

const NOW = CREATED.occurred_at;

/** A worker of another machine, so that no server considers it dead. */
export const WORKER = 'other-machine/1/0198c0de-0000-7000-8000-00000000bbbb';

/** A session that was put into the database as its worker would have. */
export interface MadeSession {
  readonly bot_id: string;
  readonly deployment_id: string;
  readonly task_id: string;
}

/** State of a session whose strategy has a working stop and target. */
export const STATE: SessionState = {
  status: 'running',
  time: '2026-01-02T00:00:00Z',
  seq: 5,
  cash: 91_234.5,
  equity: 100_321.25,
  positions: { SPX: 2 },
  working: [
    order({ order: 3, type: 'stop', stop: 4200 }),
    order({ order: 4, type: 'limit', limit: 4800 }),
  ],
};

function order(
  own: Pick<SessionState['working'][number], 'order' | 'type' | 'stop' | 'limit'>,
): SessionState['working'][number] {
  return {
    symbol: 'SPX',
    side: 'sell',
    time_in_force: 'gtc',
    quantity: 2,
    filled: 0,
    triggered: false,
    ...own,
  };
}

export interface SessionsToMake {
  /** One for each bot. */
  readonly count: number;
  /** Slug of the bots, before their number. */
  readonly slug?: string;
  /** Whether the sessions are queued instead of running. */
  readonly waiting?: boolean;
}

/** Puts sessions into the database, each of a bot of its own. */
export async function makeSessions(
  storage: Storage,
  { count, slug = 'bot', waiting = false }: SessionsToMake,
): Promise<readonly MadeSession[]> {
  const made = Array.from({ length: count }, () => ({
    bot_id: uuidv7(),
    deployment_id: uuidv7(),
    task_id: uuidv7(),
  }));
  for (let done = 0; done < count; done += AT_ONCE) {
    const some = made.slice(done, done + AT_ONCE).map((ids, i) => ({ ids, n: done + i }));
    await storage.write(async (tx) => {
      await inserts.bots(
        tx,
        some.map(({ ids: { bot_id }, n }) => botOf(bot_id, `${slug}-${n}`)),
      );
      await inserts.bot_versions(
        tx,
        some.map(({ ids: { bot_id } }) => versionOf(bot_id)),
      );
      await inserts.bot_deployments(
        tx,
        some.map(({ ids }) => deploymentOf(ids, waiting)),
      );
      await inserts.tasks(
        tx,
        some.map(({ ids }) => taskOf(ids, waiting)),
      );
      const logs = some.map(({ ids, n }) => ({
        bot_id: ids.bot_id,
        events: eventsOf(ids, `${slug}-${n}`, waiting),
      }));
      await appendToMany(tx, NOW, logs);
      await inserts.trading_sessions(
        tx,
        some.map(({ ids }) => sessionOf(ids, waiting)),
      );
    });
  }
  return made;
}

const AT_ONCE = 500;

const COLUMNS = {
  bots: [
    'bot_id',
    'slug',
    'name',
    'kind',
    'status',
    'current_version',
    'created_at',
    'updated_at',
    'event_seq',
    'event_hash',
  ],
  bot_versions: [
    'bot_id',
    'version',
    'hash',
    'document',
    'created_at',
    'created_by',
    'bundle_hash',
  ],
  bot_deployments: [
    'deployment_id',
    'bot_id',
    'version',
    'target',
    'status',
    'task_id',
    'result_summary',
    'created_at',
    'ended_at',
  ],
  tasks: [
    'task_id',
    'kind',
    'bot_id',
    'version',
    'deployment_id',
    'status',
    'input',
    'progress_done',
    'progress_total',
    'result',
    'error',
    'attempts',
    'worker_id',
    'heartbeat_at',
    'cancel_requested_at',
    'created_by',
    'created_at',
    'started_at',
    'ended_at',
  ],
  trading_sessions: [
    'task_id',
    'bot_id',
    'first_seq',
    'batches',
    'steps',
    'state',
    'failures',
    'stop_requested_at',
    'recorded_at',
  ],
} as const satisfies { readonly [T in keyof Tables]?: readonly (keyof Tables[T])[] };

type Made = keyof typeof COLUMNS;

function insertInto<T extends Made>(table: T) {
  const columns = COLUMNS[table] as readonly string[] as readonly (keyof Tables[T] & string)[];
  return prepareBatchQuery<Tables[T]>(columns, (db, rows) =>
    db.insertInto(table).values(rows as never),
  );
}

const inserts = {
  bots: insertInto('bots'),
  bot_versions: insertInto('bot_versions'),
  bot_deployments: insertInto('bot_deployments'),
  tasks: insertInto('tasks'),
  trading_sessions: insertInto('trading_sessions'),
};

function botOf(bot_id: string, slug: string): Tables['bots'] {
  const status = 'active';
  const times = { created_at: NOW, updated_at: NOW };
  return {
    bot_id,
    slug,
    name: slug,
    kind: 'trading',
    status,
    current_version: 1,
    ...times,
    ...NO_EVENTS,
  };
}

function versionOf(bot_id: string): Tables['bot_versions'] {
  const made = { created_at: NOW, created_by: 'operator', bundle_hash: null };
  return { bot_id, version: 1, hash: 'none', document: '{}', ...made };
}

function deploymentOf(ids: MadeSession, waiting: boolean): Tables['bot_deployments'] {
  const status = waiting ? 'pending' : 'running';
  const place = { ...ids, version: 1, target: 'paper', status } as const;
  return { ...place, result_summary: null, created_at: NOW, ended_at: null };
}

function taskOf(ids: MadeSession, waiting: boolean): Tables['tasks'] {
  return {
    ...ids,
    kind: 'paper',
    version: 1,
    status: waiting ? 'queued' : 'running',
    input: '{}',
    progress_done: 0,
    progress_total: null,
    result: null,
    error: null,
    attempts: waiting ? 0 : 1,
    worker_id: waiting ? null : WORKER,
    heartbeat_at: waiting ? null : NOW,
    needs_level: 1,
    traceparent: null,
    cancel_requested_at: null,
    created_by: 'operator',
    created_at: NOW,
    started_at: waiting ? null : NOW,
    ended_at: null,
  };
}

function sessionOf({ task_id, bot_id }: MadeSession, waiting: boolean): Tables['trading_sessions'] {
  const state = JSON.stringify(waiting ? BEFORE : STATE);
  const place = { task_id, bot_id, first_seq: 3, batches: waiting ? 0 : 7, steps: 20, state };
  const supervised = { subjects: null, latches_lifted: 0 };
  return { ...place, failures: 0, stop_requested_at: null, recorded_at: NOW, ...supervised };
}

/** State of a session before its first bar. */
const BEFORE: SessionState = {
  ...STATE,
  time: null,
  seq: 0,
  cash: 100_000,
  equity: 100_000,
  positions: {},
  working: [],
};

function eventsOf(
  { deployment_id, task_id }: MadeSession,
  slug: string,
  waiting: boolean,
): NewEvent[] {
  const place = { version: 1, occurred_at: NOW };
  const run = { ...place, run_id: task_id };
  const queued = { deployment_id, target: 'paper', input: {}, by: 'operator' };
  return [
    { kind: 'bot.created', ...place, payload: { slug, name: slug, kind: 'trading' } },
    { kind: 'version.created', ...place, payload: { hash: 'none', by: 'operator' } },
    { kind: 'run.queued', ...run, payload: queued },
    ...(waiting ? [] : [{ kind: 'run.started', ...run, payload: { deployment_id, attempt: 1 } }]),
    {
      kind: 'session.state',
      ...run,
      payload: { deployment_id, ...(waiting ? BEFORE : STATE) },
    },
  ];
}
