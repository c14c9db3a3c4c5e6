/** Whether tests tell of a bot as it is now. */
import { getBot, type BotRegistry } from '../../fleet/registry/bots.ts';
import { readBundle, getVersion } from '../../fleet/registry/versions.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Storage } from '../../storage/storage.ts';
import { getTask } from '../../fleet/tasks/tasks.ts';
import { readHistory, type Peaks } from '../stress/peaks.ts';
import { stressStaleness, type Staleness, type TestedLock } from '../stress/stale.ts';
import { testLock, type ConformanceSummary, type StressReport } from './result.ts';

/** What a task has come to, and when: ms since the epoch. */
export interface EndedTest {
  readonly ended_at: number;
  readonly result: Readonly<Record<string, unknown>>;
}

const NONE: Peaks = { messages: [], volume: [] };

/**
 * Says of tests of a bot, one after the other, whether they are stale and why: what was tested is
 * another thing now, they are twelve months old (a house number) or, of stress tests, production came
 * too near to what was reached. What there is now is read once for all of them.
 *
 * @param current_version of the bot.
 */
export function stalenessOf(
  { storage, clock }: Pick<BotRegistry, 'storage' | 'clock'>,
  { bot_id, current_version }: { readonly bot_id: string; readonly current_version: number },
): (test: EndedTest) => Promise<Staleness> {
  const now = clock();
  let lock: Promise<TestedLock> | undefined;
  const live = new Map<string | undefined, Promise<Peaks | undefined>>();
  const currentLock = async (): Promise<TestedLock> => {
    const version = await getVersion(storage.read, bot_id, current_version);
    return testLock(JSON.parse(version.document), await readBundle(storage.read, bot_id, version));
  };
  const peaksOf = (scope: string | undefined): Promise<Peaks | undefined> => {
    const known = live.get(scope) ?? peaksInTurn(storage, scope, now);
    live.set(scope, known);
    return known;
  };
  return async ({ result, ended_at }) => {
    lock ??= currentLock();
    if (result['schema'] === 'stress/1') {
      const stress = result as unknown as StressReport;
      const peaks = await peaksOf(stress.scope === 'firm' ? undefined : bot_id);
      const known = stressStaleness(stress, now, peaks ?? NONE, await lock);
      return peaks === undefined ? { stale: true, reasons: [...known.reasons, UNTOLD] } : known;
    }
    const { lock: tested } = result as unknown as ConformanceSummary;
    const made = { window: { from: '', to: new Date(ended_at).toISOString() } };
    return stressStaleness({ lock: tested, peaks: made, passes: [] }, now, NONE, await lock);
  };
}

/** What came of a task: of a test, with whether it is stale, which is worked out whenever it is read. */
export async function testResult(
  service: Pick<BotRegistry, 'storage' | 'clock'>,
  task_id: string,
  result: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { kind, bot_id, ended_at } = await getTask(service.storage.read, task_id);
  if (kind !== 'conformance' && kind !== 'stress') return result;
  const bot = await getBot(service.storage.read, bot_id);
  const { stale, reasons } = await stalenessOf(service, bot)({ result, ended_at: ended_at! });
  return { ...result, stale, stale_reasons: reasons };
}

const UNTOLD = 'what production came to since cannot be told: there is too much of it';
/** Reads of whole logs that may wait for each other. */
const MOST_WAITING = 4;

interface Reading {
  /** Those that are asked for, by bot. */
  readonly open: Map<string | undefined, Promise<Peaks | undefined>>;
  last: Promise<unknown>;
}

const reading = new WeakMap<Storage, Reading>();

/**
 * Of one log at a time, and of each once for all who ask for it meanwhile; undefined where there is more
 * than is read.
 * @throws ServiceError `overloaded`.
 */
function peaksInTurn(
  storage: Storage,
  bot_id: string | undefined,
  asOf: number,
): Promise<Peaks | undefined> {
  const own = reading.get(storage) ?? { open: new Map(), last: Promise.resolve() };
  reading.set(storage, own);
  const asked = own.open.get(bot_id);
  if (asked !== undefined) return asked;
  if (own.open.size >= MOST_WAITING) {
    throw new ServiceError('overloaded', `${MOST_WAITING} logs are being read already`, {
      remedy: 'Try again when they are done.',
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
