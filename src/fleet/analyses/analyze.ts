import { readFigure } from '../../base/format-figure.ts';
import { JOINED_FIGURES } from '../../base/joined-figures.ts';
import type { Claim } from '../tasks/claim.ts';
import type { Progress } from '../tasks/lifecycle.ts';
import type { TaskService } from '../tasks/tasks.ts';
import { callerOf, countTrials, lastTrialEntry, recordTrials } from '../tasks/trial-entries.ts';
import type { AnalysisKind } from './analysis-kinds.ts';
import { runAnalysisThread } from './analysis-thread.ts';
import type { AnalysisWork } from './analysis-work.ts';
import type { AnalysisInput } from './start-analysis.ts';

interface Surroundings {
  /** Number of threads that run trials. */
  readonly workers: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
  /** Repeats an access until the database answers. */
  readonly persist: <T>(access: () => Promise<T>) => Promise<T>;
}

/**
 * Performs the task of a sweep, a walk-forward analysis or a robustness test, records its trials, and
 * leaves its files as `<name>.gz` in the directory.
 *
 * @throws TaskFailure; the reason with which `signal` was aborted.
 */
export async function analyze(
  service: Pick<TaskService, 'storage' | 'clock'>,
  { task_id, kind: of, input }: Claim,
  work: Omit<AnalysisWork, 'kind' | 'input' | 'workers'>,
  { workers, signal, onProgress, persist }: Surroundings,
) {
  const kind = of as AnalysisKind;
  const { read } = service.storage;
  const began = await persist(() => lastTrialEntry(read));
  const { document, files: models, catalogueDir, timeoutMs, directory } = work;
  const own = { document, files: models, catalogueDir, timeoutMs, directory };
  const { result, notes, files } = await runAnalysisThread(
    { ...own, kind, workers, input: JSON.parse(input) as AnalysisInput },
    {
      onProgress,
      record: (trials) =>
        persist(async () => recordTrials(service, await callerOf(read, task_id), trials)),
      count: (trials) => persist(() => countTrials(read, trials, began)),
    },
    signal,
  );
  return { result, summary: { ...metricsOf(kind, result), notes }, files };
}

/**
 * Only a walk-forward analysis has figures in lists. The other analyses choose parameters on the bars on
 * which they compute the figures.
 */
function metricsOf(kind: AnalysisKind, result: object) {
  if (kind !== 'walk_forward') return {};
  return {
    metrics: Object.fromEntries(JOINED_FIGURES.map((name) => [name, readFigure(result, name)])),
  };
}
