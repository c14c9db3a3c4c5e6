/** Whether tests tell of a bot as it is now. */
import { getBot, type BotRegistry } from '../../bot-registry/bots.ts';
import { filesOf, getVersion } from '../../bot-registry/versions.ts';
import { getTask } from '../../tasks/tasks.ts';
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
  const live = new Map<string | undefined, Promise<Peaks>>();
  const currentLock = async (): Promise<TestedLock> => {
    const version = await getVersion(storage.read, bot_id, current_version);
    return testLock(JSON.parse(version.document), await filesOf(storage.read, bot_id, version));
  };
  const peaksOf = (scope: string | undefined): Promise<Peaks> => {
    const known =
      live.get(scope) ?? inTurn(() => readHistory(storage, { bot_id: scope, asOf: now }));
    live.set(scope, known);
    return known;
  };
  return async ({ result, ended_at }) => {
    lock ??= currentLock();
    if (result['schema'] === 'stress/1') {
      const stress = result as unknown as StressReport;
      const peaks = await peaksOf(stress.scope === 'firm' ? undefined : bot_id);
      return stressStaleness(stress, now, peaks, await lock);
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

let last: Promise<unknown> = Promise.resolve();

/** A whole log at a time: whoever asks for many has to wait. */
function inTurn(read: () => Promise<{ readonly production: Peaks }>): Promise<Peaks> {
  const mine = last.then(read).then(({ production }) => production);
  last = mine.catch(() => {});
  return mine;
}
