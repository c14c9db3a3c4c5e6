import { isSession, type Claim } from './claim.ts';

/**
 * Why a worker stops a task: `canceled` by request; `server_stops` and `not_adopted` put it back into
 * the queue; `not_ours` because another process has claimed or ended it.
 */
export type StopReason = 'canceled' | 'server_stops' | 'not_ours' | 'not_adopted';

export interface OwnTask {
  readonly claim: Claim;
  /** Time by `performance.now()`. */
  readonly startedAt: number;
  readonly stop: (reason: StopReason) => void;
  /** Ends a paper session with its present result; makes a controller check for requests. */
  readonly wrapUp: () => void;
  readonly ended: Promise<void>;
}

export type TaskLimits = Readonly<Record<Claim['kind'], number>>;

/** The tasks that this worker is running, by task id. */
export class OwnTasks extends Map<string, OwnTask> {
  readonly #limits: TaskLimits;
  /** Threads for all tasks that are not trading sessions. */
  readonly #threads: number;

  constructor(limits: TaskLimits, threads: number) {
    super();
    this.#limits = limits;
    this.#threads = threads;
  }

  ofKind(isWanted: (kind: Claim['kind']) => boolean): readonly OwnTask[] {
    return [...this.values()].filter(({ claim }) => isWanted(claim.kind));
  }

  count(kind: Claim['kind']): number {
    return this.ofKind((one) => one === kind).length;
  }

  /** Number of further tasks of a kind that can start now. */
  free(kind: Claim['kind']): number {
    const free = this.#limits[kind] - this.count(kind);
    if (isSession(kind)) return free;
    return Math.min(free, this.#threads - this.ofKind((one) => !isSession(one)).length);
  }
}
