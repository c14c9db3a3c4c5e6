import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import {
  entryFault,
  type ChainEntry,
  type ChainFault,
  type ChainHead,
} from '../../base/hash-chain.ts';
import type { PackedTrials } from './packed-trials.ts';

/**
 * The strategy and the bars of a trial. Trials count together if they share the family, the bar length
 * and a symbol, and their windows overlap. Another bar or symbol therefore does not reset the count.
 */
export interface TrialScope {
  /** Name that the strategy declares, which remains when its code is edited or moved. */
  readonly family: string;
  readonly symbols: readonly string[];
  readonly bar_ms: number;
  /** First and last bar, as `Date.toISOString` writes them. */
  readonly from: string;
  readonly to: string;
}

export interface TrialsRecord extends TrialScope {
  readonly kind: 'trials';
  /** Command or, on a server, caller as in the audit log. */
  readonly by: string;
  /** See `trialLock`. */
  readonly lock: string;
  readonly count: number;
  readonly trials: PackedTrials;
}

/** A run over the holdout. The scope is that of the holdout. */
export interface OpeningRecord extends TrialScope {
  readonly kind: 'holdout_opened';
  readonly by: string;
  /** See `trialLock`. */
  readonly lock: string;
}

export type LedgerRecord = TrialsRecord | OpeningRecord;

/** A line of the ledger of a machine, and an item of `GET /trials`. */
export type LedgerEntry = LedgerRecord &
  ChainEntry & {
    /** RFC 3339. */
    readonly recorded_at: string;
  };

/** Returns the entry of a record after the last entry of a ledger. */
export function entryAfter(head: ChainHead, now: number, record: LedgerRecord): LedgerEntry {
  const entry = {
    seq: head.seq + 1,
    recorded_at: new Date(now).toISOString(),
    ...record,
    prev_hash: head.hash,
  };
  return { ...entry, hash: hashOf(entry) };
}

/** SHA-256 in hex of all members except `hash`, as canonical JSON (RFC 8785). */
function hashOf(entry: Omit<LedgerEntry, 'hash'> & { readonly hash?: string }): string {
  return hash('sha256', canonicalize({ ...entry, hash: undefined })!);
}

export interface LedgerFault extends ChainFault {
  /** Last of several missing entries. */
  readonly through?: number;
}

/**
 * Checks that the entries continue a ledger, and continues after a fault, so that each bad entry is
 * found.
 *
 * @param entries undefined for an entry that is not JSON
 * @param head the last entry before them
 */
export function verifyEntries(
  entries: Iterable<LedgerEntry | undefined>,
  head: ChainHead,
): { readonly last: ChainHead; readonly faults: readonly LedgerFault[] } {
  const faults: LedgerFault[] = [];
  let last = head;
  let isAfterUnreadable = false;
  for (const entry of entries) {
    if (entry === undefined) {
      faults.push({ seq: last.seq + 1, fault: 'altered' });
      isAfterUnreadable = true;
      continue;
    }
    if (isAfterUnreadable && entry.seq > last.seq + 1) {
      last = { seq: last.seq + 1, hash: entry.prev_hash };
    }
    isAfterUnreadable = false;
    if (entry.seq > last.seq + 1) {
      faults.push({ seq: last.seq + 1, through: entry.seq - 1, fault: 'missing' });
      last = { seq: entry.seq - 1, hash: entry.prev_hash };
    }
    const fault =
      entry.seq <= last.seq
        ? ({ seq: entry.seq, fault: 'not_linked' } as const)
        : entryFault(entry, last, hashOf);
    if (fault !== undefined) faults.push(fault);
    last = { seq: entry.seq, hash: entry.hash };
  }
  return { last, faults };
}
