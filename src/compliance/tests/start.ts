/** How tests of bots are asked for. */
import { activateDraft, getBot } from '../../fleet/registry/bots.ts';
import { getRunnableVersion } from '../../fleet/registry/versions.ts';
import { invalidSpec, readChangedSpec } from '../../bots/hosted.ts';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { queueTask, type Task, type TaskService } from '../../fleet/tasks/tasks.ts';
import { MOST_AT_ONCE } from '../stress/schedule.ts';
import type { TestKind } from './result.ts';

interface TestRequest {
  /** Of the bot; the current one by default. */
  readonly version?: number | undefined;
  /** 1 by default. */
  readonly seed?: number | undefined;
}

export interface ConformanceRequest extends TestRequest {
  /** Ids of the catalogue; all of it when absent. */
  readonly cases?: readonly string[] | undefined;
}

/** What a task keeps of it. */
export interface ConformanceInput {
  readonly seed: number;
  readonly cases?: readonly string[];
}

export interface StressRequest extends TestRequest {
  /** Whose peaks are taken: those of the bot by default, or of all bots. */
  readonly scope?: 'bot' | 'firm' | undefined;
  /** Of the hold at the target; half an hour of the venue's time by default. */
  readonly duration_s?: number | undefined;
  /** Of the peaks; 2 by default, as Article 10 has it. */
  readonly multiplier?: number | undefined;
  /** Messages out per bar, for whoever has no six months of production. */
  readonly declared_peak?: number | undefined;
}

/** What a task keeps of it. */
export interface StressInput {
  readonly seed: number;
  readonly scope: 'bot' | 'firm';
  readonly duration_s: number;
  readonly multiplier: number;
  readonly declared_peak?: number;
}

const SEED = 1;
/** A house number. */
export const HOLD_S = 1800;

/**
 * Queues a conformance test of a version of a bot. A draft becomes active.
 *
 * @param by who asks for it, as in the audit log: `administrator:…`.
 * @throws ServiceError `not_found` for the bot, or the version; `conflict` for an archived bot;
 * `invalid_spec` for a bot that does not trade; `invalid_request` for a case that there is not.
 */
export async function startConformance(
  service: TaskService,
  by: string,
  ref: string,
  { version, seed = SEED, cases }: ConformanceRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  if (cases !== undefined) await refuseUnknown(cases);
  const input: ConformanceInput = { seed, ...(cases && { cases: [...new Set(cases)].toSorted() }) };
  return start(service, by, ref, version, 'conformance', { ...input });
}

/** Queues a stress test in the same way; `invalid_request` for more than a test plays. */
export async function startStress(
  service: TaskService,
  by: string,
  ref: string,
  request: StressRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { version, seed = SEED, scope = 'bot', duration_s = HOLD_S, multiplier = 2 } = request;
  const { declared_peak } = request;
  if ((declared_peak ?? 0) * multiplier > MOST_AT_ONCE) {
    const message = `times the multiplier is more than ${MOST_AT_ONCE}, which a test plays at most`;
    const problems = [{ code: 'invalid_value', pointer: '/declared_peak', message }];
    throw new ServiceError('invalid_request', `declared_peak ${message}`, { problems });
  }
  const declared = declared_peak !== undefined && { declared_peak };
  const input: StressInput = { seed, scope, duration_s, multiplier, ...declared };
  return start(service, by, ref, version, 'stress', { ...input });
}

async function start(
  service: TaskService,
  by: string,
  ref: string,
  asked: number | undefined,
  kind: TestKind,
  input: Readonly<Record<string, unknown>>,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { storage, clock } = service;
  const { bot_id, current_version } = await getBot(storage.read, ref);
  const version = asked ?? current_version;
  const { document, files } = await getRunnableVersion(service, bot_id, version);
  // One without limits is tried, and fails for that.
  if (readChangedSpec(document, {}, files).spec.spec.kind === 'research') {
    const message =
      'a research bot sends no orders: there is nothing of it that could be tested so';
    throw invalidSpec([{ code: 'not_trading', pointer: '/spec/kind', message }], false);
  }
  return storage.write(async (tx) => {
    const now = clock();
    await activateDraft(tx, await getBot(tx, bot_id), by, now);
    const { task_id } = await queueTask(tx, now, by, { kind, bot_id, version, input });
    return { task_id, status: 'queued' as const };
  });
}

async function refuseUnknown(cases: readonly string[]): Promise<void> {
  // With it comes the code that is tested, of which a server has no need otherwise.
  const { CATALOGUE } = await import('../conformance/catalogue.ts');
  const ids = CATALOGUE.map(({ id }) => id);
  const problems = cases.flatMap((one, place) => {
    if (ids.includes(one)) return [];
    const suggestion = closest(one, ids);
    const message = `there is no case ${JSON.stringify(one)}`;
    const pointer = `/cases/${place}`;
    return [{ code: 'unknown_case', pointer, message, ...(suggestion && { suggestion }) }];
  });
  if (problems.length === 0) return;
  throw new ServiceError('invalid_request', 'the catalogue has not all of these cases', {
    problems,
    remedy: `It has ${ids.join(', ')}.`,
  });
}
