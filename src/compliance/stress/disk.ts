import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openJournal } from '../../trading/host/pod/runner-journal.ts';
import { openStorage } from '../../storage/storage.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { Meters } from './stress-load.ts';
import { computePercentiles, type Percentiles } from './samples.ts';

/** Measurements of a log on disk that is written with the events of the load. */
export interface OnDisk {
  readonly generated: number;
  /** Number of events read back after the hash chain was verified. */
  readonly persisted: number;
  readonly per_second: number | null;
  /** Duration of one write of `events_per_write` events, ms. */
  readonly write_ms: Percentiles;
  readonly events_per_write: number;
}

/** Number of events in one write of a deployment that keeps up with its load. */
const AT_ONCE = 32;
const SESSION = { deployment_id: 'stress', version: 1, spec_hash: '', venue: 'simulated' };

/** Writes events to a temporary log below `directory` and reads them back. */
export async function writeToDisk(
  directory: string,
  events: readonly SessionEvent[],
  state: SessionState,
  { now }: Pick<Meters, 'now'>,
): Promise<OnDisk> {
  const own = await mkdtemp(join(directory, 'stress-log-'));
  try {
    const journal = await openJournal(own, SESSION);
    const writes: number[] = [];
    for (let at = 0; at < events.length; at += AT_ONCE) {
      const some = events.slice(at, at + AT_ONCE);
      const begun = now();
      await journal.append(some, { ...state, seq: at + some.length }, at);
      writes.push(now() - begun);
    }
    await journal.close();
    // Opening a journal verifies its hash chain.
    await (await openJournal(own, SESSION)).close();
    const kinds = [...new Set(events.map(({ kind }) => kind))];
    const storage = await openStorage({ file: join(own, 'runner.sqlite') });
    const { count } = await storage.read
      .selectFrom('bot_events')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('kind', 'in', kinds.length === 0 ? [''] : kinds)
      .executeTakeFirstOrThrow()
      .finally(() => storage.close());
    const took = writes.reduce((sum, one) => sum + one, 0);
    return {
      generated: events.length,
      persisted: count,
      per_second: took === 0 ? null : Math.floor((events.length / took) * 1000),
      write_ms: computePercentiles(writes),
      events_per_write: AT_ONCE,
    };
  } finally {
    await rm(own, { recursive: true });
  }
}
