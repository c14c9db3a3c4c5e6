/** Checks of the hash chain that need no database, for threads that only receive rows. */
import type { BotEventsTable } from '../storage/tables.ts';
import { hashOf, type EventHead } from './event.ts';

/** The first bad event or snapshot of a log. */
export interface EventFault {
  readonly seq: number;
  readonly fault: 'missing' | 'altered' | 'not_linked' | 'beyond_head' | 'wrong_snapshot';
}

/** Checks that a row is unchanged and follows the event `last`. */
export function faultOf(row: BotEventsTable, last: EventHead): EventFault | undefined {
  if (row.seq !== last.seq + 1) return { seq: last.seq + 1, fault: 'missing' };
  if (row.prev_hash !== last.hash) return { seq: row.seq, fault: 'not_linked' };
  return row.hash === hashOf(row) ? undefined : { seq: row.seq, fault: 'altered' };
}

/** Checks that the log ends where it should, so that rows removed or added at the end are found. */
export function endFault(last: EventHead, end: number, head: EventHead): EventFault | undefined {
  if (last.seq < end) return { seq: last.seq + 1, fault: 'missing' };
  if (last.seq > head.seq) return { seq: head.seq + 1, fault: 'beyond_head' };
  const isHead = last.seq === head.seq;
  return isHead && last.hash !== head.hash ? { seq: last.seq, fault: 'altered' } : undefined;
}
