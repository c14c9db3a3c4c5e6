import { msSince, thisMoment, type Moment } from '../../base/elapsed.ts';
import { prepareSharedRead } from '../../storage/share-query.ts';
import type { Db } from '../../storage/tables.ts';
import type { SessionSupervision } from '../../trading/session-supervision.ts';
import { listOpenPermits, type RunPermit } from './overrides.ts';
import type { Subjects } from './subjects.ts';
import {
  listThresholds,
  listSessionGroups,
  resolveThresholds,
  type KnownThreshold,
  type SessionGroup,
} from './thresholds.ts';

interface InForce {
  readonly thresholds: readonly KnownThreshold[];
  readonly groups: readonly SessionGroup[];
  readonly permits: readonly RunPermit[];
}

/** @param now milliseconds since the Unix epoch. */
export async function readInForce(db: Db, now: number): Promise<InForce> {
  const thresholds = await listThresholds(db);
  const groups = thresholds.length === 0 ? [] : await listSessionGroups(db);
  return { thresholds, groups, permits: await listOpenPermits(db, now) };
}

export async function readSupervision(
  db: Db,
  task_id: string,
  { thresholds, groups, permits }: InForce,
): Promise<SessionSupervision> {
  const session = await selectSession(db, task_id);
  if (session === undefined) throw new RangeError(`${task_id} is no session`);
  const { target, subjects, latches_lifted } = session;
  return {
    thresholds: resolveThresholds(
      subjects === null ? null : (JSON.parse(subjects) as Subjects),
      target,
      thresholds,
      groups,
    ),
    permits: permits
      .filter(({ run_id }) => run_id === task_id)
      .map(({ run_id: _run, ...permit }) => permit),
    latches_lifted,
  };
}

const selectSession = prepareSharedRead('session.task_id', (db) =>
  db
    .selectFrom('trading_sessions as session')
    .innerJoin('bot_deployments as deployment', 'deployment.task_id', 'session.task_id')
    .select(['session.task_id', 'deployment.target', 'session.subjects', 'session.latches_lifted']),
);

const FRESH_MS = 500;

/** Reads the supervision of many sessions; reads what they share at most twice a second. */
export function watchSupervision(
  db: Db,
  clock: () => number,
): (task_id: string) => Promise<SessionSupervision> {
  let read: { readonly at: Moment; readonly inForce: Promise<InForce> } | undefined;
  return async (task_id) => {
    if (read === undefined || msSince(read.at) >= FRESH_MS) {
      const now = { at: thisMoment(), inForce: readInForce(db, clock()) };
      read = now;
      now.inForce.catch(() => {
        if (read === now) read = undefined;
      });
    }
    return readSupervision(db, task_id, await read.inForce);
  };
}
