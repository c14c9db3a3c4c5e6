import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Db } from '../storage/storage.ts';
import type { AuditEntriesTable } from '../storage/tables.ts';

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

/** An event in its place in the chain. */
export interface AuditEntry {
  /** From 1, without gaps. */
  readonly seq: number;
  /** Milliseconds since the Unix epoch. */
  readonly recorded_at: number;
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
 * does not happen.
 */
export async function appendAudit(tx: Db, now: number, event: AuditEvent): Promise<void> {
  const head = await auditHead(tx);
  const entry = {
    seq: head.seq + 1,
    recorded_at: now,
    actor: event.actor,
    action: event.action,
    target: event.target,
    details: event.details ?? {},
    prev_hash: head.hash,
  };
  const hash = hashOf(entry);
  await tx
    .insertInto('audit_entries')
    .values({ ...entry, details: JSON.stringify(entry.details), hash })
    .execute();
  await tx.updateTable('audit_head').set({ seq: entry.seq, hash }).execute();
}

export async function auditHead(db: Db): Promise<AuditHead> {
  return db.selectFrom('audit_head').select(['seq', 'hash']).executeTakeFirstOrThrow();
}

/** The entries after `afterSeq`, the oldest first, at most `limit`. */
export async function listAudit(db: Db, afterSeq: number, limit: number): Promise<AuditEntry[]> {
  const rows = await db
    .selectFrom('audit_entries')
    .selectAll()
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return rows.map(entryOf);
}

/** A row that was tampered with may hold anything; what is no object makes a hash that is wrong. */
function entryOf({ details, ...row }: AuditEntriesTable): AuditEntry {
  try {
    return { ...row, details: JSON.parse(details) as AuditEntry['details'] };
  } catch {
    return { ...row, details: { unreadable: details } };
  }
}

function hashOf({ hash: _, ...content }: Omit<AuditEntry, 'hash'> & { hash?: string }): string {
  return createHash('sha256').update(canonicalize(content)!).digest('hex');
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
    if (entry.hash !== hashOf(entry)) return { seq: entry.seq, fault: 'altered' };
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
