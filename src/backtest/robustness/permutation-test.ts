import { join } from 'node:path';
import { LineLog } from '../line-log.ts';
import type { Goal } from '../search/goal.ts';
import { trialsOf, type Search } from '../search/plan-search.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import type { TrialBatch, TrialRunner } from '../search/trial-runner.ts';
import { TrialResults } from '../search/trial-results.ts';
import type { TrialSource } from '../search/trial-source.ts';
import type { TrialResult, TrialSetup } from '../search/trial.ts';
import { untilAborted } from '../../base/until-aborted.ts';

export interface PermutationOptions {
  readonly permutations: number;
  readonly seed: number;
  /** Directory of the log from which interrupted permutations resume; by default there is no log. */
  readonly directory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of permutations that have ended: once at the start, then after each. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Trials between two waits for the last worker; enough that the waits take a small share of the time. */
const TRIALS_OF_A_ROUND = 4096;

/**
 * Repeats a search over permutations of its bars; see `PermutedBars`. The results do not depend on the
 * number of workers.
 *
 * @returns the best objective of each permutation, negated if lower is better; NaN if no trial has one
 * @throws as `runSearch`
 */
export async function searchPermutations(
  search: Search,
  runner: TrialRunner,
  { permutations, seed, directory, signal, onProgress }: PermutationOptions,
): Promise<Float64Array> {
  const best = new Float64Array(permutations);
  const isDone = new Uint8Array(permutations);
  const log =
    directory === undefined
      ? undefined
      : openLog(directory, search, seed, (ended) => {
          if (ended.permutation >= permutations) return;
          best[ended.permutation] = ended.best ?? Number.NaN;
          isDone[ended.permutation] = 1;
        });
  const setup: TrialSetup = { ...search.setup, blocks: undefined, permutationSeed: seed };
  const setups = [setup];
  const pending = [...isDone.keys()].filter((permutation) => isDone[permutation] === 0);
  let done = permutations - pending.length;
  const end = (permutation: number, value: number): void => {
    best[permutation] = value;
    const line: PermutationLine = { permutation, best: Number.isNaN(value) ? null : value };
    log?.append(JSON.stringify(line));
    done += 1;
    onProgress?.(done);
  };
  try {
    onProgress?.(done);
    await untilAborted(signal, () =>
      runRounds(
        search,
        (batch, onResult) => runner.run({ ...batch, setups }, onResult),
        pending,
        end,
      ),
    );
  } catch (error) {
    // No result may arrive once the log is closed.
    await runner.end();
    throw error;
  } finally {
    log?.close();
  }
  return best;
}

function openLog(
  directory: string,
  { digest, goal }: Search,
  seed: number,
  onEnded: (ended: PermutationLine) => void,
): LineLog {
  const schema = 'service-local/permutations/v1';
  return LineLog.open(
    join(directory, 'permutations.ndjson'),
    { work: 'robustness test', header: JSON.stringify({ schema, search: digest, goal, seed }) },
    (line) => {
      const ended = readLine(line);
      if (ended !== undefined) onEnded(ended);
    },
  );
}

interface PermutationLine {
  readonly permutation: number;
  readonly best: number | null;
}

/** Skips damaged lines, so that these permutations run again. */
function readLine(line: string): PermutationLine | undefined {
  try {
    const { permutation, best } = JSON.parse(line) as Partial<PermutationLine>;
    const isComplete =
      Number.isSafeInteger(permutation) &&
      permutation! >= 0 &&
      (best === null || typeof best === 'number');
    return isComplete ? { permutation: permutation!, best: best! } : undefined;
  } catch {
    return undefined;
  }
}

/** A search over a permutation. */
interface PermutedSearch {
  readonly permutation: number;
  readonly trials: TrialSource;
  readonly results: TrialResults;
}

type Batch = Omit<TrialBatch, 'setups'>;
type RunBatch = (batch: Batch, onResult: (result: TrialResult) => void) => Promise<void>;

/** Runs rounds of searches, which advance by a generation together. */
async function runRounds(
  search: Search,
  runBatch: RunBatch,
  pending: readonly number[],
  onEnd: (permutation: number, best: number) => void,
): Promise<void> {
  const { generationSize, capacity } = search.trials;
  const size = Math.ceil(TRIALS_OF_A_ROUND / (generationSize ?? capacity));
  for (let first = 0; first < pending.length; first += size) {
    const running = new Map<number, PermutedSearch>();
    for (const permutation of pending.slice(first, first + size)) {
      const trials = trialsOf(search);
      running.set(permutation, { permutation, trials, results: new TrialResults(trials) });
    }
    const end = ({ permutation, results }: PermutedSearch): void => {
      running.delete(permutation);
      onEnd(permutation, scoreOf(results.best(search.goal)?.metrics, search.goal));
    };
    while (running.size > 0) {
      const batch = nextGenerations([...running.values()], end);
      await runBatch(batch, (result) => {
        const own = running.get(result.permutation!)!;
        own.results.add(result);
        if (own.results.isComplete) end(own);
      });
    }
  }
}

/** @param onEnd is called with the searches that have no further trial */
function nextGenerations(
  searches: readonly PermutedSearch[],
  onEnd: (search: PermutedSearch) => void,
): Batch {
  const generations = searches.map((search) => ({
    search,
    indices: search.trials.nextGeneration(search.results),
  }));
  for (const { search, indices } of generations) if (indices.length === 0) onEnd(search);
  const total = generations.reduce((sum, { indices }) => sum + indices.length, 0);
  const owners = new Uint32Array(total);
  const own = new Uint32Array(total);
  let at = 0;
  for (const [owner, { indices }] of generations.entries()) {
    owners.fill(owner, at, at + indices.length);
    own.set(indices, at);
    at += indices.length;
  }
  return {
    indices: Uint32Array.from({ length: total }, (_, place) => place),
    trial(place) {
      const { trials, permutation } = generations[owners[place]!]!.search;
      return { ...trials.trial(own[place]!), permutation };
    },
  };
}

/** The objective of a trial, negated if lower is better; NaN if it is undefined. */
export function scoreOf(
  metrics: TrialMetrics | undefined,
  { objectives: [objective] }: Goal,
): number {
  const value = metrics?.[objective.figure] ?? Number.NaN;
  return objective.better === 'higher' ? value : -value;
}
