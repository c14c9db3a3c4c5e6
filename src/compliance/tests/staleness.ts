/** Decides whether a test of a bot must be run again. */
import canonicalize from 'canonicalize';
import { ServiceError } from '../../base/errors.ts';
import { getBot, type BotRegistry } from '../../fleet/registry/bots.ts';
import { getVersion, readBundle } from '../../fleet/registry/versions.ts';
import { getTask } from '../../fleet/tasks/tasks.ts';
import type { Storage } from '../../storage/storage.ts';
import { readHistory } from '../stress/history.ts';
import { findMessages, nameVolume, type Peaks } from '../stress/peaks.ts';
import type { PassResult } from '../stress/pass.ts';
import { buildTestLock, type TestLock } from './result.ts';

export interface Staleness {
  readonly stale: boolean;
  /** Empty unless the test is stale. */
  readonly reasons: readonly string[];
}

export interface EndedTest {
  /** ms since the epoch. */
  readonly ended_at: number;
  /** `StressReport`, or a `ConformanceReport` as summarized. */
  readonly result: Readonly<Record<string, unknown>>;
}

/** The part of the result of a test on which its staleness depends. */
interface Tested {
  /** JSON values by name. */
  readonly lock: Readonly<Record<string, unknown>>;
  /** Empty for a conformance test. */
  readonly passes: readonly Pick<PassResult, 'limits' | 'reached' | 'volume'>[];
  /** The six months before the test. */
  readonly peaks: { readonly window: { readonly to: string } };
}

/** Maximum live peak as a share of the tested load: Article 10 requires a test at twice the peak. */
const SHARE = 0.5;

/**
 * Checks whether a test must be run again: if any part of its lock differs (the triggers of RTS 6
 * Article 6), if a live peak exceeds half of the reached load, and after twelve months (an internal
 * threshold). RTS 7 Article 11(3) requires venues to reassess at a new peak; for firms this is an internal
 * rule.
 *
 * @param now ms since the epoch.
 * @param livePeaks production peaks as of now, with the scope of the test; undefined if there are too many.
 * @param lock the parts that a new test would use.
 */
export function checkStaleness(
  tested: Tested,
  now: number,
  livePeaks: Peaks | undefined,
  lock: Tested['lock'],
): Staleness {
  const parts = [...new Set([...Object.keys(tested.lock), ...Object.keys(lock)])].sort();
  const changed = parts.filter(
    (part) => canonicalize(tested.lock[part]) !== canonicalize(lock[part]),
  );
  const due = new Date(tested.peaks.window.to);
  due.setUTCFullYear(due.getUTCFullYear() + 1);
  const reasons = [
    ...changed.map((part) => `${part} has changed since the test`),
    ...(livePeaks === undefined ? [] : listExceededPeaks(tested, livePeaks)),
    ...(now >= due.getTime() ? ['the test is twelve months old'] : []),
    ...(livePeaks === undefined
      ? ['production since the test has too many messages to compare']
      : []),
  ];
  return { stale: reasons.length > 0, reasons };
}

function listExceededPeaks({ passes }: Tested, { messages, volume }: Peaks): string[] {
  // The load in the pass with limits does not show what the bot can withstand.
  const lifted = passes.find(({ limits }) => limits === 'lifted');
  return [
    ...messages.map((peak) => ({
      ...peak,
      what: `${peak.M} messages (${peak.class})`,
      reached: findMessages(lifted?.reached ?? [], peak.class, peak.window_s),
    })),
    ...volume.map((peak) => ({
      ...peak,
      what: `${nameVolume(peak)} ${peak.M}`,
      reached: lifted?.volume.find(
        (one) => nameVolume(one) === nameVolume(peak) && one.window_s === peak.window_s,
      ),
    })),
  ].flatMap(({ M, what, window_s, peak_ts, reached }) => {
    const tested = reached?.achieved ?? 0;
    if (M <= SHARE * tested) return [];
    return `live peak: ${what} in ${window_s} s at ${peak_ts}, more than half of the tested ${tested}`;
  });
}

const NONE: Peaks = { messages: [], volume: [] };

/**
 * Returns a function that checks whether tests of a bot are stale now. The current state is read once for
 * all checks.
 */
export function createStalenessCheck(
  { storage, clock }: Pick<BotRegistry, 'storage' | 'clock'>,
  { bot_id, current_version }: { readonly bot_id: string; readonly current_version: number },
): (test: EndedTest) => Promise<Staleness> {
  const now = clock();
  let lock: Promise<TestLock> | undefined;
  const live = new Map<string | undefined, Promise<Peaks | undefined>>();
  return async ({ result, ended_at }) => {
    lock ??= readLock(storage, bot_id, current_version);
    const tested = result as unknown as Tested & { readonly scope: 'bot' | 'firm' };
    if (result['schema'] !== 'stress/1') {
      const peaks = { window: { to: new Date(ended_at).toISOString() } };
      return checkStaleness({ ...tested, passes: [], peaks }, now, NONE, await lock);
    }
    const scope = tested.scope === 'firm' ? undefined : bot_id;
    if (!live.has(scope)) live.set(scope, readPeaksInTurn(storage, scope, now));
    return checkStaleness(tested, now, await live.get(scope), await lock);
  };
}

async function readLock({ read }: Storage, bot_id: string, current: number): Promise<TestLock> {
  const version = await getVersion(read, bot_id, current);
  return buildTestLock(JSON.parse(version.document), await readBundle(read, bot_id, version));
}

/** Adds to the result of a test whether the result is stale now; returns other results unchanged. */
export async function addStaleness(
  service: Pick<BotRegistry, 'storage' | 'clock'>,
  task_id: string,
  result: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { kind, bot_id, ended_at } = await getTask(service.storage.read, task_id);
  if (kind !== 'conformance' && kind !== 'stress') return result;
  const check = createStalenessCheck(service, await getBot(service.storage.read, bot_id));
  const { stale, reasons } = await check({ result, ended_at: ended_at! });
  return { ...result, stale, stale_reasons: reasons };
}

/** Maximum number of logs that are being read or waiting to be read. */
const MOST_WAITING = 4;

interface Reading {
  /** Pending reads by bot; undefined is the key for all bots. */
  readonly open: Map<string | undefined, Promise<Peaks | undefined>>;
  last: Promise<unknown>;
}

const reading = new WeakMap<Storage, Reading>();

/**
 * Reads production peaks, one log at a time; concurrent callers share a read. Undefined if the history is
 * too long.
 *
 * @throws ServiceError `overloaded`.
 */
function readPeaksInTurn(
  storage: Storage,
  bot_id: string | undefined,
  asOf: number,
): Promise<Peaks | undefined> {
  const own = reading.get(storage) ?? { open: new Map(), last: Promise.resolve() };
  reading.set(storage, own);
  const pending = own.open.get(bot_id);
  if (pending !== undefined) return pending;
  if (own.open.size >= MOST_WAITING) {
    throw new ServiceError('overloaded', `the server is already reading ${MOST_WAITING} logs`, {
      remedy: 'Try again in a few seconds.',
      retryAfterSeconds: 5,
    });
  }
  const mine = own.last
    .then(() => readHistory(storage, { bot_id, asOf }))
    .then(
      ({ production }) => production,
      (error: unknown) => {
        if (error instanceof ServiceError && error.reason === 'too_much_history') return undefined;
        throw error;
      },
    )
    .finally(() => own.open.delete(bot_id));
  own.open.set(bot_id, mine);
  own.last = mine.catch(() => {});
  return mine;
}
