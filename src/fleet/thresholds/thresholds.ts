/**
 * Thresholds of Article 15(5) of RTS 6 for a client, instrument, trader, desk or the firm. Each has a
 * rationale and is kept forever; the newest version of a subject and currency is in force. The engine of
 * each session checks them before every order, in addition to the limits of the bot; the tightest wins.
 *
 * Exposure, loss and messages of a subject are divided: each of the `n` sessions to which a threshold
 * applies gets one `n`th of it, with paper and production counted separately. So no order needs to know
 * the positions of other sessions, and all together stay within the threshold; unused shares are not
 * redistributed. Paper sessions learn of a change within two seconds, production sessions with their
 * next report. Until then, and while a session reduces what exceeds its new share, the total can exceed
 * the threshold by the change of the shares. A threshold applies to accounts in its currency only.
 *
 * A missing attribution does not evade a threshold: while a level has a threshold in the bot's currency,
 * a bot without an attribution at that level does not start, and its running sessions deny all orders.
 */
import type { Threshold, Thresholds } from '../../engine/risk/firm-thresholds.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, ThresholdsTable } from '../../storage/tables.ts';
import { appliesTo, FIRM, type Level, type Subjects } from './subjects.ts';

/** Limits in account currency, units, or messages per second of bar time. */
export interface Limits {
  readonly max_order_value?: number | undefined;
  /** Only for the level `instrument`. */
  readonly max_order_qty?: number | undefined;
  readonly max_gross_exposure?: number | undefined;
  /** Not for the level `instrument`, like `max_messages_per_second`. */
  readonly max_daily_loss?: number | undefined;
  readonly max_messages_per_second?: number | undefined;
}

export interface SetThreshold {
  readonly level: Level;
  /** Name or symbol; `firm` for the level `firm`. */
  readonly subject: string;
  readonly currency: string;
  /** Null removes the threshold. */
  readonly limits: Limits | null;
  readonly rationale: string;
}

export interface KnownThreshold extends SetThreshold {
  /** Counts from 1 for each subject and currency. */
  readonly version: number;
  readonly set_by: string;
  /** Milliseconds since the Unix epoch. */
  readonly set_at: number;
}

/** Number of active sessions with equal subjects. */
export interface SessionGroup {
  readonly target: string;
  readonly subjects: Subjects;
  readonly count: number;
}

/** @throws ServiceError `invalid_request`; `not_found` when there is no threshold to remove. */
export async function setThreshold(
  { storage, clock }: StorageService,
  by: Actor,
  asked: SetThreshold,
): Promise<KnownThreshold> {
  const problems = problemsOf(asked);
  if (problems.length > 0) {
    throw new ServiceError('invalid_request', problems[0]!.message, { problems });
  }
  return storage.write(async (tx) => {
    const { level, subject, currency, limits, rationale } = asked;
    const now = clock();
    const before = (await rowsOf(tx).execute()).find(
      (row) => row.level === level && row.subject === subject && row.currency === currency,
    );
    if (limits === null && (before === undefined || before.limits === null)) {
      throw new ServiceError('not_found', `${level} ${subject} has no threshold in ${currency}`, {
        remedy: 'See `service-local risk thresholds list`.',
      });
    }
    const version = (before?.version ?? 0) + 1;
    await appendAudit(tx, now, {
      actor: by,
      action: limits === null ? 'risk.thresholds.remove' : 'risk.thresholds.set',
      target: `${level}:${subject}`,
      details: { currency, version, before: before?.limits ?? null, after: limits, rationale },
    });
    const row = { level, subject, currency, version, rationale, set_by: by, set_at: now };
    await tx
      .insertInto('thresholds')
      .values({ ...row, limits: limits && JSON.stringify(limits) })
      .execute();
    return { ...row, limits };
  });
}

function problemsOf({ level, subject, limits }: SetThreshold): Problem[] {
  const problem = (pointer: string, message: string): Problem => ({
    code: 'invalid_value',
    pointer,
    message,
  });
  if (level === 'firm' && subject !== FIRM) {
    return [problem('/subject', `must be ${FIRM} for the level firm`)];
  }
  if (limits === null) return [];
  const names = Object.entries(limits).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (names.length === 0) return [problem('/limits', 'must have at least one limit, or be null')];
  const wrong =
    level === 'instrument' ? ['max_daily_loss', 'max_messages_per_second'] : ['max_order_qty'];
  return names
    .filter((name) => wrong.includes(name))
    .map((name) =>
      problem(
        `/limits/${name}`,
        level === 'instrument'
          ? `${name} does not apply to a single instrument`
          : `${name} applies only to the level instrument`,
      ),
    );
}

/** Lists the thresholds in force by level, subject and currency, or with `history` all versions. */
export async function listThresholds(
  db: Db,
  { history = false }: { readonly history?: boolean } = {},
): Promise<KnownThreshold[]> {
  const rows = await rowsOf(db, history).execute();
  return rows.map(known).filter(({ limits }) => history || limits !== null);
}

function rowsOf(db: Db, history = false) {
  const all = db
    .selectFrom('thresholds as threshold')
    .selectAll()
    .orderBy('level')
    .orderBy('subject')
    .orderBy('currency')
    .orderBy('version');
  if (history) return all;
  return all.where('version', '=', (is) =>
    is
      .selectFrom('thresholds as other')
      .select(({ fn }) => fn.max('other.version').as('version'))
      .whereRef('other.level', '=', 'threshold.level')
      .whereRef('other.subject', '=', 'threshold.subject')
      .whereRef('other.currency', '=', 'threshold.currency'),
  );
}

function known({ limits, ...row }: ThresholdsTable): KnownThreshold {
  return { ...row, limits: limits === null ? null : (JSON.parse(limits) as Limits) };
}

/** Counts active sessions by target and subjects. */
export async function listSessionGroups(db: Db): Promise<SessionGroup[]> {
  const rows = await db
    .selectFrom('bot_deployments as deployment')
    .innerJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['deployment.target', 'session.subjects'])
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('deployment.ended_at', 'is', null)
    .where('deployment.target', 'in', ['paper', 'k8s'])
    .where('session.subjects', 'is not', null)
    .groupBy(['deployment.target', 'session.subjects'])
    .execute();
  return rows.map(({ target, subjects, count }) => ({
    target,
    subjects: JSON.parse(subjects!) as Subjects,
    count,
  }));
}

/** Counts the sessions of a target to which a threshold applies. */
export function countSharers(
  { level, subject, currency }: Pick<KnownThreshold, 'level' | 'subject' | 'currency'>,
  target: string,
  groups: readonly SessionGroup[],
): number {
  return groups.reduce((sum, group) => {
    const isMeant =
      group.target === target &&
      group.subjects.currency === currency &&
      appliesTo(group.subjects, level, subject);
    return sum + (isMeant ? group.count : 0);
  }, 0);
}

/** Share of a session in a limit, and the threshold that it comes from. */
interface Share extends Threshold {
  readonly level: Level;
  readonly subject: string;
  readonly version: number;
  /** Number of sessions that share the limit, including this one. */
  readonly sessions: number;
}

type Shares = Record<string, Share | undefined>;

/** Finds thresholds of levels for which the subjects have no attribution. */
export function findUnattributed<T extends Pick<KnownThreshold, 'level' | 'currency'>>(
  subjects: Subjects,
  thresholds: readonly T[],
): readonly T[] {
  return thresholds.filter(
    ({ level, currency }) =>
      (level === 'trader' || level === 'desk' || level === 'client') &&
      currency === subjects.currency &&
      subjects[level] === null,
  );
}

/**
 * @param subjects result of `serializeSubjects`.
 * @throws ServiceError `conflict` with the reason `unattributed`
 */
export async function refuseUnattributed(tx: Db, subjects: string): Promise<void> {
  const unnamed = findUnattributed(JSON.parse(subjects) as Subjects, await listThresholds(tx));
  if (unnamed.length === 0) return;
  const levels = [...new Set(unnamed.map(({ level }) => level))];
  throw new ServiceError(
    'conflict',
    `the spec names no ${levels.join(' and no ')}, so the thresholds of that level cannot be assigned`,
    {
      reason: 'unattributed',
      remedy: `Add it to the spec: \`attribution: {${levels.map((level) => `${level}: …`).join(', ')}}\`. See \`service-local risk thresholds list\`.`,
    },
  );
}

/**
 * Denies all orders by a message rate of 0, which no permit overrides. An empty `subject` marks this
 * case.
 */
function denyAll({ level, version }: InForce): Thresholds {
  const share: Share = { value: 0, level, subject: '', version, sessions: 1 };
  return { max_messages_per_second: share };
}

/** The part of a threshold in force that its shares depend on. */
type InForce = Pick<KnownThreshold, 'level' | 'subject' | 'currency' | 'limits' | 'version'>;

/**
 * Resolves the tightest share of each limit for a session.
 * @param subjects null for a session from a version without attribution.
 */
export function resolveThresholds(
  subjects: Subjects | null,
  target: string,
  thresholds: readonly KnownThreshold[],
  groups: readonly SessionGroup[],
): Thresholds {
  const [first] = thresholds;
  if (subjects === null) return first === undefined ? {} : denyAll(first);
  return resolveShares(subjects, thresholds, (one) => countSharers(one, target, groups));
}

/**
 * Resolves the tightest share of each limit for a session with these subjects.
 * @param count counts the sessions to which a threshold applies.
 */
export function resolveShares<T extends InForce>(
  subjects: Subjects,
  thresholds: readonly T[],
  count: (threshold: T) => number,
): Thresholds {
  const [unnamed] = findUnattributed(subjects, thresholds);
  const all: Shares = {};
  const instruments: Record<string, Shares> = {};
  for (const threshold of thresholds) {
    const { level, subject, currency, limits, version } = threshold;
    if (limits === null || currency !== subjects.currency) continue;
    if (!appliesTo(subjects, level, subject)) continue;
    const sessions = Math.max(1, count(threshold));
    const into = level === 'instrument' ? (instruments[subject] ??= {}) : all;
    for (const [name, limit] of Object.entries(limits)) {
      if (limit === undefined) continue;
      const value = shareOf(name, limit, sessions);
      if (value >= (into[name]?.value ?? Infinity)) continue;
      into[name] = { value, level, subject, version, sessions };
    }
  }
  const hasInstruments = Object.keys(instruments).length > 0;
  return {
    ...(all as Thresholds),
    ...(hasInstruments && { instruments }),
    ...(unnamed && denyAll(unnamed)),
  };
}

/** Shares of messages are rounded down, possibly to 0. */
function shareOf(name: string, limit: number, sessions: number): number {
  if (name === 'max_order_value' || name === 'max_order_qty') return limit;
  return name === 'max_messages_per_second' ? Math.floor(limit / sessions) : limit / sessions;
}
