/** The hash chain of append-only logs: each entry contains the hash of the entry before it. */

export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** The head of an empty log. */
export const GENESIS: ChainHead = { seq: 0, hash: '0'.repeat(64) };

export interface ChainEntry extends ChainHead {
  readonly prev_hash: string;
}

export interface ChainFault {
  readonly seq: number;
  readonly fault: 'missing' | 'altered' | 'not_linked' | 'beyond_head';
}

/** Predicates for messages: `entry 7 has been altered`. */
export const CHAIN_FAULTS: Readonly<Record<ChainFault['fault'], string>> = {
  missing: 'is missing',
  altered: 'has been altered',
  not_linked: 'does not follow the one before it',
  beyond_head: 'is beyond the end of the log',
};

/**
 * Checks that an entry is unchanged and follows the entry `last`.
 * @param hashOf computes the hash of all members of the entry except `hash`.
 */
export function entryFault<T extends ChainEntry>(
  entry: T,
  last: ChainHead,
  hashOf: (entry: T) => string | undefined,
): ChainFault | undefined {
  const { seq, prev_hash, hash } = entry;
  if (seq !== last.seq + 1) return { seq: last.seq + 1, fault: 'missing' };
  if (prev_hash !== last.hash) return { seq, fault: 'not_linked' };
  return hash === hashOf(entry) ? undefined : { seq, fault: 'altered' };
}

/**
 * Checks the end of a log, so that rows removed or added there are found.
 * @param last the last entry that was read.
 * @param end sequence number up to which the log was read.
 */
export function endFault(last: ChainHead, head: ChainHead, end = head.seq): ChainFault | undefined {
  if (last.seq < end) return { seq: last.seq + 1, fault: 'missing' };
  if (last.seq > head.seq) return { seq: head.seq + 1, fault: 'beyond_head' };
  const isHead = last.seq === head.seq;
  return isHead && last.hash !== head.hash ? { seq: last.seq, fault: 'altered' } : undefined;
}

/** Parses the JSON object in a column of a log. A tampered row gives `{ unreadable: text }`. */
export function parseLoggedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // Not JSON.
  }
  return { unreadable: text };
}
