import type { ConformanceRequest, StressRequest } from '../../api/compliance-tests.ts';
import { activateDraft, getBot } from '../../fleet/registry/bots.ts';
import { getRunnableVersion } from '../../fleet/registry/versions.ts';
import { invalidSpec, readChangedSpec } from '../../bots/hosted.ts';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { queueTask, type Task, type TaskService } from '../../fleet/tasks/tasks.ts';
import { MOST_AT_ONCE } from '../stress/load-schedule.ts';
import type { TestKind } from './result.ts';

/** Inputs of the tasks, whose `version` is a column of its own. */
export type ConformanceInput = Omit<ConformanceRequest, 'version'>;
export type StressInput = Omit<StressRequest, 'version'>;

/** Shorter holds give a provisional verdict (an internal threshold). */
export const HOLD_S = 1800;

/**
 * Queues a conformance test of a version of a bot, by default the current one. A draft bot becomes active.
 *
 * @param by the actor for the audit log, such as `administrator:…`.
 * @throws ServiceError `not_found` for the bot or the version; `conflict` for an archived bot;
 * `invalid_spec` for a bot that does not trade; `invalid_request` for an unknown case.
 */
export async function startConformance(
  service: TaskService,
  by: string,
  ref: string,
  { version, seed, cases }: ConformanceRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  if (cases !== undefined) await requireKnown(cases);
  const input = { seed, ...(cases && { cases: [...new Set(cases)].toSorted() }) };
  return start(service, by, ref, version, 'conformance', input);
}

/** Queues a stress test with the errors of `startConformance`; `invalid_request` also for too high a load. */
export async function startStress(
  service: TaskService,
  by: string,
  ref: string,
  { version, ...input }: StressRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { declared_peak = 0, multiplier } = input;
  if (declared_peak * multiplier > MOST_AT_ONCE) {
    const message = `times multiplier is more than ${MOST_AT_ONCE} messages per bar, the maximum of a test`;
    const problems = [{ code: 'invalid_value', pointer: '/declared_peak', message }];
    throw new ServiceError('invalid_request', `declared_peak ${message}`, { problems });
  }
  return start(service, by, ref, version, 'stress', input);
}

async function start(
  service: TaskService,
  by: string,
  ref: string,
  asked: number | undefined,
  kind: TestKind,
  input: ConformanceInput | StressInput,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { storage, clock } = service;
  const { bot_id, current_version } = await getBot(storage.read, ref);
  const version = asked ?? current_version;
  const { document, files } = await getRunnableVersion(service, bot_id, version);
  // Specs without limits are accepted here; the test reports their absence.
  if (readChangedSpec(document, {}, files).spec.spec.kind === 'research') {
    const message = 'a research bot sends no orders, so it cannot be tested; name a trading bot';
    throw invalidSpec([{ code: 'not_trading', pointer: '/spec/kind', message }], false);
  }
  return storage.write(async (tx) => {
    const now = clock();
    await activateDraft(tx, await getBot(tx, bot_id), by, now);
    const { task_id } = await queueTask(tx, now, by, { kind, bot_id, version, input });
    return { task_id, status: 'queued' as const };
  });
}

async function requireKnown(cases: readonly string[]): Promise<void> {
  // Imported here because it loads the conformance cases, which a server does not need otherwise.
  const { CATALOGUE } = await import('../conformance/case-catalogue.ts');
  const ids = CATALOGUE.map(({ id }) => id);
  const problems = cases.flatMap((one, place) => {
    if (ids.includes(one)) return [];
    const suggestion = closest(one, ids);
    const message = `unknown case ${JSON.stringify(one)}`;
    const pointer = `/cases/${place}`;
    return [{ code: 'unknown_case', pointer, message, ...(suggestion && { suggestion }) }];
  });
  if (problems.length === 0) return;
  throw new ServiceError('invalid_request', 'some of the cases do not exist', {
    problems,
    remedy: `Use these cases: ${ids.join(', ')}.`,
  });
}
