import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openJournal } from '../../trading/host/pod/runner-journal.ts';
import { openStorage } from '../../storage/storage.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { Meters } from './meters.ts';
import { computePercentiles, sum } from './samples.ts';

/** Number of events in one write of a deployment that keeps up with its load. */
const AT_ONCE = 32;
const DEPLOYMENT = { deployment_id: 'stress', version: 1, spec_hash: '', venue: 'simulated' };

/** Writes events to a temporary log below `directory` and reads them back. */
export async function writeToDisk(
  directory: string,
  events: readonly SessionEvent[],
  state: SessionState,
  { now }: Pick<Meters, 'now'>,
) {
  const own = await mkdtemp(join(directory, 'stress-log-'));
  try {
    const journal = await openJournal(own, DEPLOYMENT);
    const writes: number[] = [];
    for (let at = 0; at < events.length; at += AT_ONCE) {
      const some = events.slice(at, at + AT_ONCE);
      const begun = now();
      await journal.append(some, { ...state, seq: at + some.length }, at);
      writes.push(now() - begun);
    }
    await journal.close();
    // Opening a journal verifies its hash chain.
    await (await openJournal(own, DEPLOYMENT)).close();
    const took = sum(writes, (ms) => ms);
    return {
      generated: events.length,
      /** Number of events read back after the hash chain was verified. */
      persisted: await countEvents(own, [...new Set(events.map(({ kind }) => kind))]),
      per_second: took === 0 ? null : Math.floor((events.length / took) * 1000),
      /** Durations of writes of `events_per_write` events, ms. */
      write_ms: computePercentiles(writes),
      events_per_write: AT_ONCE,
    };
  } finally {
    await rm(own, { recursive: true });
  }
}

/** Counts the events of some kinds; the journal also adds its own. */
async function countEvents(directory: string, kinds: readonly string[]): Promise<number> {
  const storage = await openStorage({ file: join(directory, 'runner.sqlite') });
  const { count } = await storage.read
    .selectFrom('bot_events')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('kind', 'in', ['', ...kinds])
    .executeTakeFirstOrThrow()
    .finally(() => storage.close());
  return count;
}
