import { getBot, type BotRegistry } from '../../fleet/registry/bots.ts';
import { readBundle, getVersion } from '../../fleet/registry/versions.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Storage } from '../../storage/storage.ts';
import { getTask } from '../../fleet/tasks/tasks.ts';
import { readHistory } from '../stress/history.ts';
import { type Peaks } from '../stress/peaks.ts';
import { checkStaleness, type Staleness, type TestedLock } from '../stress/staleness.ts';
import { buildTestLock, type ConformanceSummary, type StressReport } from './result.ts';

export interface EndedTest {
  /** ms since the epoch. */
  readonly ended_at: number;
  readonly result: Readonly<Record<string, unknown>>;
}

const NONE: Peaks = { messages: [], volume: [] };

/**
 * Returns a function that checks whether tests of a bot are stale. A test is stale if a tested part has
 * changed, after twelve months (an internal threshold), and for a stress test, if production comes too close
 * to the tested load. The current state is read once for all checks.
 */
export function createStalenessCheck(
  { storage, clock }: Pick<BotRegistry, 'storage' | 'clock'>,
  { bot_id, current_version }: { readonly bot_id: string; readonly current_version: number },
): (test: EndedTest) => Promise<Staleness> {
  const now = clock();
  let lock: Promise<TestedLock> | undefined;
  const live = new Map<string | undefined, Promise<Peaks | undefined>>();
  const currentLock = async (): Promise<TestedLock> => {
    const version = await getVersion(storage.read, bot_id, current_version);
    return buildTestLock(
      JSON.parse(version.document),
      await readBundle(storage.read, bot_id, version),
    );
  };
  const peaksOf = (scope: string | undefined): Promise<Peaks | undefined> => {
    const known = live.get(scope) ?? readPeaksInTurn(storage, scope, now);
    live.set(scope, known);
    return known;
  };
  return async ({ result, ended_at }) => {
    lock ??= currentLock();
    if (result['schema'] === 'stress/1') {
      const stress = result as unknown as StressReport;
      const peaks = await peaksOf(stress.scope === 'firm' ? undefined : bot_id);
      const known = checkStaleness(stress, now, peaks ?? NONE, await lock);
      return peaks === undefined
        ? { stale: true, reasons: [...known.reasons, TOO_MUCH_HISTORY] }
        : known;
    }
    const { lock: tested } = result as unknown as ConformanceSummary;
    const made = { window: { from: '', to: new Date(ended_at).toISOString() } };
    return checkStaleness({ lock: tested, peaks: made, passes: [] }, now, NONE, await lock);
  };
}

/** Adds to the result of a test whether the result is stale now; returns other results unchanged. */
export async function addStaleness(
  service: Pick<BotRegistry, 'storage' | 'clock'>,
  task_id: string,
  result: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { kind, bot_id, ended_at } = await getTask(service.storage.read, task_id);
  if (kind !== 'conformance' && kind !== 'stress') return result;
  const bot = await getBot(service.storage.read, bot_id);
  const { stale, reasons } = await createStalenessCheck(
    service,
    bot,
  )({ result, ended_at: ended_at! });
  return { ...result, stale, stale_reasons: reasons };
}

const TOO_MUCH_HISTORY = 'production since the test has too many messages to compare';
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
  const asked = own.open.get(bot_id);
  if (asked !== undefined) return asked;
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
