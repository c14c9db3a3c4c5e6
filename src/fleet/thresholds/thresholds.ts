/**
 * Thresholds of Article 15(5) of RTS 6: of a client, an instrument, a trader, a desk, or the firm.
 * People set them, with a rationale; each is kept for good, and the newest of a subject and currency
 * is in force. They are checked in the engine of each session, before every order, beside the limits
 * of the bot, so that the tightest wins.
 *
 * What counts of a subject together (exposure, loss, messages) is divided: of `n` sessions for which
 * it holds, paper and production each by themselves, each has a share of one `n`th. So nobody has to
 * know at the moment of an order what the others hold, and all of them together stay within it; what
 * one does not use no other can. A session hears of a change within two seconds on paper, with its
 * next report in production: until those that run have heard of one that joins them, and until it
 * ends what it has above its new share, all together can be above by what the shares changed.
 * No currency is converted: a threshold holds for accounts in its own.
 *
 * Whoever names no trader, desk or client escapes the thresholds of none: while there is one of that
 * level in its currency, a bot that names nobody there does not start, and a session that runs is
 * denied all new orders.
 */
import type { Threshold, Thresholds } from '../../engine/risk/supervision.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db, ThresholdsTable } from '../../storage/tables.ts';
import { appliesTo, FIRM, type Level, type Subjects } from './subjects.ts';

/** Of a threshold. Account currency, units, or messages per second of bar time. */
export interface Limits {
  readonly max_order_value?: number | undefined;
  /** Of instruments alone. */
  readonly max_order_qty?: number | undefined;
  readonly max_gross_exposure?: number | undefined;
  /** Not of instruments, as the next. */
  readonly max_daily_loss?: number | undefined;
  readonly max_messages_per_second?: number | undefined;
}

export interface SetThreshold {
  readonly level: Level;
  /** Who or which it is; `firm` for the firm. */
  readonly subject: string;
  readonly currency: string;
  /** Null: it has none any more. */
  readonly limits: Limits | null;
  readonly rationale: string;
}

export interface KnownThreshold extends SetThreshold {
  /** From 1 for each subject and currency. */
  readonly version: number;
  readonly set_by: string;
  /** Milliseconds since the Unix epoch. */
  readonly set_at: number;
}

/** Of sessions, those that trade for the same; how many there are. */
export interface SessionGroup {
  readonly target: string;
  readonly subjects: Subjects;
  readonly count: number;
}

interface Service {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** @throws ServiceError `invalid_request` for limits that the level cannot have. */
export async function setThreshold(
  { storage, clock }: Service,
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
    return [problem('/subject', `of the firm the subject is ${FIRM}`)];
  }
  if (limits === null) return [];
  const names = Object.entries(limits).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (names.length === 0) return [problem('/limits', 'needs at least one limit, or null')];
  const wrong =
    level === 'instrument' ? ['max_daily_loss', 'max_messages_per_second'] : ['max_order_qty'];
  return names
    .filter((name) => wrong.includes(name))
    .map((name) =>
      problem(
        `/limits/${name}`,
        level === 'instrument'
          ? `${name} is of all instruments together: no instrument has it`
          : `${name} is of one instrument: set it at the level instrument`,
      ),
    );
}

/** By level, subject and currency; of each the newest, or all of them. */
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

/** Sessions that have not ended, by where they are and for whom they trade. */
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

/** For how many sessions of a kind a threshold holds. */
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

/** What a session is told of a limit: its share, and of which threshold. */
interface Share extends Threshold {
  readonly level: Level;
  readonly subject: string;
  readonly version: number;
  /** How many sessions share it, this one among them. */
  readonly sessions: number;
}

type Shares = Record<string, Share | undefined>;

/** Thresholds of a level at which nobody is named: whether they hold, nobody can say. */
export function findUnattributed(
  subjects: Subjects,
  thresholds: readonly KnownThreshold[],
): readonly KnownThreshold[] {
  return thresholds.filter(
    ({ level, currency }) =>
      (level === 'trader' || level === 'desk' || level === 'client') &&
      currency === subjects.currency &&
      subjects[level] === null,
  );
}

/**
 * @param subjects see `serializeSubjects`.
 * @throws ServiceError `conflict` with the reason `unattributed` where there is a threshold of a level at
 *   which the spec names nobody.
 */
export async function refuseUnattributed(tx: Db, subjects: string): Promise<void> {
  const unnamed = findUnattributed(JSON.parse(subjects) as Subjects, await listThresholds(tx));
  if (unnamed.length === 0) return;
  const levels = [...new Set(unnamed.map(({ level }) => level))];
  throw new ServiceError(
    'conflict',
    `the spec names no ${levels.join(' and no ')}, and there are thresholds of that level: whether they hold for the bot cannot be told`,
    {
      reason: 'unattributed',
      remedy: `State it in the spec: \`attribution: {${levels.map((level) => `${level}: …`).join(', ')}}\`. See \`service-local risk thresholds list\`.`,
    },
  );
}

/** No order at all: a rate of messages is nothing that a permit lifts. No `subject` is empty otherwise. */
function heldBy({ level, version }: KnownThreshold): Thresholds {
  const share: Share = { value: 0, level, subject: '', version, sessions: 1 };
  return { max_messages_per_second: share };
}

/**
 * What holds for a session: of each limit the tightest.
 * @param subjects null of a session that began before there were any.
 */
export function resolveThresholds(
  subjects: Subjects | null,
  target: string,
  thresholds: readonly KnownThreshold[],
  groups: readonly SessionGroup[],
): Thresholds {
  const [unnamed] = subjects === null ? thresholds : findUnattributed(subjects, thresholds);
  const held = unnamed === undefined ? {} : heldBy(unnamed);
  if (subjects === null) return held;
  const all: Shares = {};
  const instruments: Record<string, Shares> = {};
  for (const threshold of thresholds) {
    const { level, subject, currency, limits, version } = threshold;
    if (limits === null || currency !== subjects.currency) continue;
    if (!appliesTo(subjects, level, subject)) continue;
    const sessions = Math.max(1, countSharers(threshold, target, groups));
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
    ...held,
  };
}

/** Whole messages: with less than one each, nobody has any. */
function shareOf(name: string, limit: number, sessions: number): number {
  if (name === 'max_order_value' || name === 'max_order_qty') return limit;
  return name === 'max_messages_per_second' ? Math.floor(limit / sessions) : limit / sessions;
}
