import { hash as digest } from 'node:crypto';
import canonicalize from 'canonicalize';
import { ServiceError } from '../base/errors.ts';
import {
  endFault,
  entryFault,
  GENESIS,
  parseLoggedObject,
  type ChainEntry,
  type ChainFault,
  type ChainHead,
} from '../base/hash-chain.ts';
import { beforeCommit } from '../storage/before-commit.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { isPostgres, prepareInsert } from '../storage/prepare-rows-query.ts';
import { CLOCK_TOLERANCE_MS } from '../storage/clock-tolerance.ts';
import type { AuditEntriesTable, Db } from '../storage/tables.ts';

/** `operator`: a shell on the server's machine; `server`: the server itself. */
export type Actor = `administrator:${string}` | `device:${string}` | 'operator' | 'server';

export interface AuditEvent {
  readonly actor: Actor;
  /** For example `admin.identity.license.revoke`. */
  readonly action: string;
  /** `TYPE:ID`, for example `lease:…` or `deployment:…`. */
  readonly target: string;
  /** JSON values. Must not contain secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A recorded event, in the form that is hashed and that `GET /identity/audit` returns. */
export interface AuditEntry extends ChainEntry {
  /** RFC 3339 in UTC, with milliseconds. */
  readonly recorded_at: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Records an event, in the transaction of the change, so that a change that cannot be recorded does
 * not happen. The entries of a transaction are written together before its commit, since no other
 * transaction can append to the log from then on.
 */
export async function appendAudit(tx: Db, now: number, event: AuditEvent): Promise<void> {
  const before = unwritten.get(tx);
  if (before !== undefined) {
    before.push({ now, event });
    return;
  }
  unwritten.set(tx, [{ now, event }]);
  beforeCommit(tx, () => writeEntries(tx));
}

interface TimedEvent {
  readonly now: number;
  readonly event: AuditEvent;
}

/** Events of open transactions, in order. */
const unwritten = new WeakMap<Db, TimedEvent[]>();

async function writeEntries(tx: Db): Promise<void> {
  const events = unwritten.get(tx)!;
  unwritten.delete(tx);
  let head = await lockHead(tx);
  const entries: AuditEntriesTable[] = [];
  for (const { now, event } of events) {
    for (const one of [...clockEvents(head, now), event]) {
      const entry = entryAfter(head, now, one);
      entries.push(entry);
      head = entry;
    }
  }
  await Promise.all([
    insertEntries(tx, entries),
    updateHead(tx, { seq: head.seq, hash: head.hash }),
  ]);
}

/** An event that reports that the clock was set back since the last entry, if it was. */
function clockEvents(head: TimedHead, now: number): AuditEvent[] {
  const skew_ms = (head.recorded_at ?? now) - now;
  if (skew_ms <= CLOCK_TOLERANCE_MS) return [];
  const previous_recorded_at = formatInstant(now + skew_ms);
  const details = { previous_seq: head.seq, previous_recorded_at, skew_ms };
  return [{ actor: 'server', action: 'server.clock.set_back', target: 'audit', details }];
}

function entryAfter(head: ChainHead, now: number, event: AuditEvent): AuditEntriesTable {
  const { actor, action, target, details = {} } = event;
  const entry = {
    seq: head.seq + 1,
    recorded_at: formatInstant(now),
    actor,
    action,
    target,
    details,
    prev_hash: head.hash,
  };
  const hash = hashOf(entry);
  return { ...entry, recorded_at: now, details: JSON.stringify(details), hash };
}

/**
 * Appends entries that another copy of the database recorded.
 * @param entries verified by `verifyAudit` against the head of this log.
 */
export async function importAudit(tx: Db, entries: readonly AuditEntry[]): Promise<void> {
  for (const entry of entries) {
    const { seq, actor, action, target, prev_hash, hash } = entry;
    const recorded_at = Date.parse(entry.recorded_at);
    const details = JSON.stringify(entry.details);
    const row = { seq, recorded_at, actor, action, target, details, prev_hash, hash };
    await insertEntries(tx, [row]);
    await updateHead(tx, { seq, hash });
  }
}

interface TimedHead extends ChainHead {
  /** Null for an empty log. */
  readonly recorded_at: number | null;
}

const insertEntries = prepareInsert('audit_entries', {
  seq: 'bigint',
  recorded_at: 'bigint',
  actor: 'text',
  action: 'text',
  target: 'text',
  details: 'text',
  prev_hash: 'text',
  hash: 'text',
});
const updateHead = prepareQuery((db, head: ChainHead) => db.updateTable('audit_head').set(head));
const selectHead = prepareQuery((db) => db.selectFrom('audit_head').select(['seq', 'hash']));

/**
 * An update without a change locks the row, and reads the values that were committed last. SQLite runs one
 * write at a time and needs no lock, and `returning` would take as long there as many queries.
 */
const lockHeadRow = prepareQuery((db) =>
  db
    .updateTable('audit_head')
    .set((of) => ({ seq: of.ref('seq') }))
    .returning(['seq', 'hash']),
);
const selectLastTime = prepareQuery((db) =>
  db
    .selectFrom('audit_entries')
    .select('recorded_at')
    .where('seq', '=', (of) => of.selectFrom('audit_head').select('seq')),
);

/** Reads the head of the log, to which no other transaction can append from now on. */
async function lockHead(tx: Db): Promise<TimedHead> {
  const [[head = missingHead()], [last]] = await Promise.all([
    isPostgres(tx) ? lockHeadRow(tx, {}) : selectHead(tx, {}),
    selectLastTime(tx, {}),
  ]);
  return { ...head, recorded_at: last?.recorded_at ?? null };
}

export async function auditHead(db: Db): Promise<ChainHead> {
  const [head = missingHead()] = await selectHead(db, {});
  return head;
}

function missingHead(): never {
  throw new ServiceError('audit_tampered', 'the table audit_head has no row', {
    remedy: 'Find out who can write to the database, and restore it from a backup.',
  });
}

/** Entries and the head of the log, read at the same moment. */
export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly head: ChainHead;
}

/** Returns at most `limit` entries after `afterSeq`, oldest first. */
export async function readAudit(db: Db, afterSeq: number, limit: number): Promise<AuditPage> {
  // A single statement, because another server may append to the log between two statements.
  const rows = await db
    .selectFrom('audit_head as head')
    .leftJoin(
      (part) =>
        part
          .selectFrom('audit_entries')
          .selectAll()
          .where('seq', '>', afterSeq)
          .orderBy('seq')
          .limit(limit)
          .as('entry'),
      (join) => join.onTrue(),
    )
    .select(['head.seq as head_seq', 'head.hash as head_hash'])
    .selectAll('entry')
    .orderBy('entry.seq')
    .execute();
  const [{ head_seq: seq, head_hash: hash } = missingHead()] = rows;
  return { entries: rows.filter(isEntry).map(entryOf), head: { seq, hash } };
}

/** Conditions that an entry must meet. Times are milliseconds since the Unix epoch. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
}

/** Returns at most `limit` matching entries before `beforeSeq`, newest first. */
export async function searchAudit(
  db: Db,
  { actor, action, target, from, to }: AuditFilter,
  beforeSeq: number | undefined,
  limit: number,
): Promise<AuditPage> {
  const head = await auditHead(db);
  let query = db
    .selectFrom('audit_entries')
    .selectAll()
    .where('seq', '<', beforeSeq ?? head.seq + 1)
    .orderBy('seq', 'desc')
    .limit(limit);
  if (actor !== undefined) query = query.where('actor', '=', actor);
  if (action !== undefined) query = query.where('action', '=', action);
  if (target !== undefined) query = query.where('target', '=', target);
  if (from !== undefined) query = query.where('recorded_at', '>=', from);
  if (to !== undefined) query = query.where('recorded_at', '<', to);
  return { entries: (await query.execute()).map(entryOf), head };
}

/** False for the row that only holds the head, which the left join gives if no entry follows. */
function isEntry<T extends { seq: number | null }>(row: T): row is T & AuditEntriesTable {
  return row.seq !== null;
}

function entryOf(row: AuditEntriesTable): AuditEntry {
  const { seq, recorded_at, actor, action, target, details, prev_hash, hash } = row;
  return {
    seq,
    recorded_at: formatInstant(recorded_at),
    actor,
    action,
    target,
    details: parseLoggedObject(details),
    prev_hash,
    hash,
  };
}

/** Formats a row for the details of an event; times, whose names end in `_at`, become RFC 3339. */
export function detailsOf(row: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => [
      name,
      name.endsWith('_at') && typeof value === 'number' ? formatInstant(value) : value,
    ]),
  );
}

/** Returns the number itself if it is not a valid time, so that a tampered row can be shown. */
function formatInstant(ms: number): string {
  const isTime = Number.isInteger(ms) && Math.abs(ms) <= 8.64e15;
  return isTime ? new Date(ms).toISOString() : String(ms);
}

/** SHA-256 in hex of all members except `hash`, as canonical JSON (RFC 8785). */
function hashOf(entry: Omit<AuditEntry, 'hash'>): string {
  // Listed one by one, because API responses contain additional members.
  const { seq, recorded_at, actor, action, target, details, prev_hash } = entry;
  const hashed = { seq, recorded_at, actor, action, target, details, prev_hash };
  return digest('sha256', canonicalize(hashed)!);
}

/** As `hashOf`; undefined for content that has no canonical JSON, such as a lone surrogate. */
function hashOfAny(entry: AuditEntry): string | undefined {
  try {
    return hashOf(entry);
  } catch {
    return undefined;
  }
}

/**
 * Checks that `entries` continue the log after `before`.
 * @returns the last entry, from which to continue, or the first fault.
 */
export function verifyAudit(
  before: ChainHead,
  entries: readonly AuditEntry[],
): ChainHead | ChainFault {
  let last = before;
  for (const entry of entries) {
    const fault = entryFault(entry, last, hashOfAny);
    if (fault) return fault;
    last = { seq: entry.seq, hash: entry.hash };
  }
  return last;
}

export interface AuditVerdict {
  /** The last valid entry. */
  readonly last: ChainHead;
  /** Fault of the entry after it; absent if the whole log is valid. */
  readonly fault?: ChainFault;
}

/** @param read returns the entries after a sequence number, as `readAudit` does. */
export async function verifyWholeAudit(
  read: (afterSeq: number) => Promise<AuditPage>,
): Promise<AuditVerdict> {
  let last = GENESIS;
  for (;;) {
    const { entries, head } = await read(last.seq);
    for (const entry of entries) {
      const next = verifyAudit(last, [entry]);
      if ('fault' in next) return { last, fault: next };
      last = next;
    }
    if (entries.length > 0) continue;
    const fault = endFault(last, head);
    return fault ? { last, fault } : { last };
  }
}
