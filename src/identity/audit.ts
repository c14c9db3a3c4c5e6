import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { ServiceError } from '../base/errors.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { CLOCK_TOLERANCE_MS } from '../storage/clock-tolerance.ts';
import type { AuditEntriesTable, Db } from '../storage/tables.ts';

/** Who did it. An `operator` is a shell on the server's machine; `server` is the server by itself. */
export type Actor = `administrator:${string}` | `device:${string}` | 'operator' | 'server';

/** Something that was done, or was noticed. */
export interface AuditEvent {
  readonly actor: Actor;
  /** As `admin.identity.license.revoke`. */
  readonly action: string;
  /** As `lease:…` or `deployment:…`. */
  readonly target: string;
  /** What JSON can hold, and no secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An event in its place in the chain, as it is hashed and as `GET /identity/audit` answers it. */
export interface AuditEntry {
  /** From 1, without gaps. */
  readonly seq: number;
  /** RFC 3339 in UTC, with milliseconds. */
  readonly recorded_at: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** SHA-256 in hex of the entry before; 64 zeros for the first. */
  readonly prev_hash: string;
  /** SHA-256 in hex of all the other members in canonical JSON (RFC 8785). */
  readonly hash: string;
}

/** The last entry of the log; before the first one, seq 0 and 64 zeros. */
export interface AuditHead {
  readonly seq: number;
  readonly hash: string;
}

export const GENESIS: AuditHead = { seq: 0, hash: '0'.repeat(64) };

/**
 * Adds to the log. It belongs before the effect and into the same write: what cannot be recorded
 * does not happen. Where the clock was set back since the last entry, one that says so comes first.
 */
export async function appendAudit(tx: Db, now: number, event: AuditEvent): Promise<void> {
  const head = heads.get(tx) ?? (await timedHead(tx));
  const skew_ms = (head.recorded_at ?? now) - now;
  if (skew_ms <= CLOCK_TOLERANCE_MS) return appendEntry(tx, head, now, event);
  const previous_recorded_at = formatInstant(now + skew_ms);
  const details = { previous_seq: head.seq, previous_recorded_at, skew_ms };
  const setBack = { actor: 'server', action: 'server.clock.set_back', target: 'audit' } as const;
  await appendEntry(tx, head, now, { ...setBack, details });
  await appendEntry(tx, heads.get(tx)!, now, event);
}

async function appendEntry(tx: Db, head: AuditHead, now: number, event: AuditEvent): Promise<void> {
  const entry = {
    seq: head.seq + 1,
    recorded_at: formatInstant(now),
    actor: event.actor,
    action: event.action,
    target: event.target,
    details: event.details ?? {},
    prev_hash: head.hash,
  };
  const hash = hashOf(entry);
  const details = JSON.stringify(entry.details);
  await insertEntry(tx, { ...entry, recorded_at: now, details, hash });
  await updateHead(tx, { seq: entry.seq, hash });
  heads.set(tx, { seq: entry.seq, hash, recorded_at: now });
}

/**
 * Adds entries that another copy of the database recorded after the last one here.
 * @param entries checked by `verifyAudit` from the head of this log.
 */
export async function importAudit(tx: Db, entries: readonly AuditEntry[]): Promise<void> {
  for (const entry of entries) {
    const { seq, actor, action, target, prev_hash, hash } = entry;
    const recorded_at = Date.parse(entry.recorded_at);
    const details = JSON.stringify(entry.details);
    await insertEntry(tx, { seq, recorded_at, actor, action, target, details, prev_hash, hash });
    await updateHead(tx, { seq, hash });
    heads.set(tx, { seq, hash, recorded_at });
  }
}

/** The last entry of the log; `recorded_at` is null before the first one. */
interface TimedHead extends AuditHead {
  readonly recorded_at: number | null;
}

/** What has been added in a transaction that is not over; nobody else can add to the log meanwhile. */
const heads = new WeakMap<Db, TimedHead>();

const insertEntry = prepareQuery((db, row: AuditEntriesTable) =>
  db.insertInto('audit_entries').values(row),
);
const updateHead = prepareQuery((db, head: AuditHead) => db.updateTable('audit_head').set(head));
const selectHead = prepareQuery((db) => db.selectFrom('audit_head').select(['seq', 'hash']));

const selectTimedHead = prepareQuery((db) =>
  db
    .selectFrom('audit_head as head')
    .leftJoin('audit_entries as last', 'last.seq', 'head.seq')
    .select(['head.seq', 'head.hash', 'last.recorded_at']),
);

async function timedHead(db: Db): Promise<TimedHead> {
  const [head = lostHead()] = await selectTimedHead(db, {});
  return head;
}

export async function auditHead(db: Db): Promise<AuditHead> {
  const [head = lostHead()] = await selectHead(db, {});
  return head;
}

function lostHead(): never {
  throw new ServiceError('audit_tampered', 'the audit log has lost its head', {
    remedy: 'Restore the database from a backup.',
  });
}

/** Part of the log, and its head at the same moment. */
export interface AuditPage {
  /** The oldest first. */
  readonly entries: readonly AuditEntry[];
  readonly head: AuditHead;
}

/** The entries after `afterSeq`, at most `limit`. */
export async function readAudit(db: Db, afterSeq: number, limit: number): Promise<AuditPage> {
  // One statement: between two of them another server may add to the log.
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
  const [{ head_seq: seq, head_hash: hash } = lostHead()] = rows;
  return { entries: rows.filter(isEntry).map(entryOf), head: { seq, hash } };
}

/** What of the log is wanted; all of it when nothing is said. Times are milliseconds since the Unix epoch. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly from?: number | undefined;
  /** Not itself included. */
  readonly to?: number | undefined;
}

/** The entries that match, the newest first, at most `limit` of those before `beforeSeq`. */
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

/** The head stands alone where there is no entry. */
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
    details: parseDetails(details),
    prev_hash,
    hash,
  };
}

/** A row as details: its times, whose names end in `_at`, as the log has its own. */
export function detailsOf(row: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => [
      name,
      name.endsWith('_at') && typeof value === 'number' ? formatInstant(value) : value,
    ]),
  );
}

/** A row that was tampered with may hold anything. It is to be told, and not to stop who tells it. */
function formatInstant(ms: number): string {
  const isTime = Number.isInteger(ms) && Math.abs(ms) <= 8.64e15;
  return isTime ? new Date(ms).toISOString() : String(ms);
}

function parseDetails(text: string): AuditEntry['details'] {
  try {
    const details: unknown = JSON.parse(text);
    if (isRecord(details)) return details;
  } catch {
    // Told below.
  }
  return { unreadable: text };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hashOf(entry: Omit<AuditEntry, 'hash'>): string {
  // One by one: an answer may say more beside them.
  const { seq, recorded_at, actor, action, target, details, prev_hash } = entry;
  const hashed = { seq, recorded_at, actor, action, target, details, prev_hash };
  return createHash('sha256').update(canonicalize(hashed)!).digest('hex');
}

/** What canonical JSON does not take, such as half a character, was never hashed. */
function hasItsHash(entry: AuditEntry): boolean {
  try {
    return entry.hash === hashOf(entry);
  } catch {
    return false;
  }
}

/** Why the first bad row is bad. */
export interface AuditFault {
  readonly seq: number;
  readonly fault: 'missing' | 'altered' | 'not_linked' | 'beyond_head';
}

/**
 * Checks that `entries` go on from `before`: nothing altered, missing, added or out of order.
 * @returns the last of them, to go on from; or the first that is bad.
 */
export function verifyAudit(
  before: AuditHead,
  entries: readonly AuditEntry[],
): AuditHead | AuditFault {
  let last = before;
  for (const entry of entries) {
    if (entry.seq !== last.seq + 1) return { seq: last.seq + 1, fault: 'missing' };
    if (entry.prev_hash !== last.hash) return { seq: entry.seq, fault: 'not_linked' };
    if (!hasItsHash(entry)) return { seq: entry.seq, fault: 'altered' };
    last = { seq: entry.seq, hash: entry.hash };
  }
  return last;
}

/** Whether the log ends where its head says: rows cut off at the end, or put there, show. */
export function verifyAuditEnd(last: AuditHead, head: AuditHead): AuditFault | undefined {
  if (last.seq < head.seq) return { seq: last.seq + 1, fault: 'missing' };
  if (last.seq > head.seq) return { seq: head.seq + 1, fault: 'beyond_head' };
  return last.hash === head.hash ? undefined : { seq: last.seq, fault: 'altered' };
}

/** What a check of the whole log comes to. */
export interface AuditVerdict {
  /** The last entry that is good. */
  readonly last: AuditHead;
  /** What is wrong with the next. */
  readonly fault?: AuditFault;
}

/**
 * Checks the whole log.
 * @param read the entries after one, as `readAudit`.
 */
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
    const fault = verifyAuditEnd(last, head);
    return fault ? { last, fault } : { last };
  }
}
