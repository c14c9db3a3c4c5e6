import { axesOf } from '../../backtest/search/axes.ts';
import { countPermutations } from '../../backtest/robustness/possible-figures.ts';
import { codeOf } from '../../bots/bundle.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { hostedBot } from '../../bots/load-bot.ts';
import { ServiceError } from '../../base/errors.ts';
import { activateDraft, getBot } from '../registry/bots.ts';
import { getRunnableVersion } from '../registry/versions.ts';
import { queueTask, refuseWithoutData, type Task, type TaskService } from '../tasks/tasks.ts';
import type { AnalysisKind } from './analysis-kinds.ts';
import { asRequestFault, searchOf, windowsOf, type Analysis } from './analysis-request.ts';

export interface AnalysisRequest extends Analysis {
  readonly kind: AnalysisKind;
  /** Default: the current version. */
  readonly version?: number | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Input of the task of an analysis. */
export interface AnalysisInput {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly analysis: Analysis;
}

/**
 * Queues a sweep, a walk-forward analysis or a robustness test of a bot. A draft becomes active.
 *
 * @param by caller as in the audit log: `administrator:…`.
 * @throws ServiceError `not_found` for the bot or the version; `conflict` for an archived bot or one
 *   with code; `invalid_spec` without data; `invalid_request` for parameters that the strategy lacks.
 */
export async function startAnalysis(
  service: TaskService,
  by: string,
  ref: string,
  { kind, version: asked, from, to, ...analysis }: AnalysisRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  const { storage, clock, catalogueDir } = service;
  const { bot_id, current_version } = await getBot(storage.read, ref);
  const version = asked ?? current_version;
  const { document, files } = await getRunnableVersion(service, bot_id, version);
  const spec = readChangedSpec(document, { from, to }, files);
  if (codeOf(files) !== undefined) {
    throw new ServiceError('conflict', 'the server does not search parameters of uploaded code', {
      reason: 'custom_code',
      remedy: 'Run the search with `service-local backtest sweep --on server`.',
    });
  }
  const { params } = searchOf(kind, analysis);
  if (kind === 'walk_forward') windowsOf(analysis);
  if (kind === 'robustness') {
    asRequestFault(() => countPermutations(spec.models.length > 0, analysis.permutations));
  }
  asRequestFault(() => axesOf(hostedBot(spec).strategy, params));
  await refuseWithoutData(catalogueDir, spec);
  const input: AnalysisInput = { ...(from && { from }), ...(to && { to }), analysis };
  return storage.write(async (tx) => {
    const now = clock();
    await activateDraft(tx, await getBot(tx, bot_id), by, now);
    const queued = await queueTask(tx, now, by, { kind, bot_id, version, input: { ...input } });
    return { task_id: queued.task_id, status: 'queued' as const };
  });
}
