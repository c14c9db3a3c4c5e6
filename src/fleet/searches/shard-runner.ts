/** Runs shards of searches in sandbox processes, one shard a process. */
import { retry } from '../../base/backoff.ts';
import { toErrorData } from '../../base/error-data.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { inSpan, type Span } from '../../base/tracing.ts';
import type { Trial } from '../../backtest/search/trial.ts';
import { strategyOf, unpackInput } from '../../backtest/shards/search-input.ts';
import { encodeResults } from '../../backtest/shards/shard-results.ts';
import { HEARTBEAT_EVERY_MS, isStorageFault } from '../tasks/task-attempt.ts';
import { SilenceWatch } from '../tasks/silence-watch.ts';
import { hasEnded, newWorkerId, retire } from '../tasks/worker-id.ts';
import { SandboxedTrials } from './sandboxed-trials.ts';
import { codeIsOff, readInput, SEARCH_WRITE, type SearchService } from './searches.ts';
import {
  claimShards,
  finishShard,
  hasQueuedShard,
  listRunningShards,
  recordShardHeartbeats,
  recoverShard,
  returnShard,
  type RunningShard,
  type ShardClaim,
  type ShardOutcome,
} from './shards.ts';

export interface ShardRunnerOptions {
  /** Number of shards that run at once. */
  readonly workers: number;
  readonly log: Log;
}

const POLL_EVERY_MS = 1000;
/** Time without a new heartbeat after which a worker on another machine counts as dead. */
const DEAD_AFTER_MS = 30_000;
/** Time after which an idle process ends. */
const IDLE_MS = 10_000;
const RETRY_MS = 1000;
/** Memory of a built-in strategy, MB. */
const BUILT_IN_MB = 512;

export class ShardRunner {
  readonly #service: SearchService;
  readonly #options: ShardRunnerOptions;
  readonly #worker_id = newWorkerId();
  readonly #running = new Map<ShardClaim, { stop: AbortController; ended: Promise<void> }>();
  readonly #idle = new Map<SandboxedTrials, NodeJS.Timeout>();
  readonly #silence = new SilenceWatch();
  readonly #stopping = new AbortController();
  readonly #timers: readonly NodeJS.Timeout[];
  #polling: Promise<void> | undefined;
  #isPollDue = false;

  constructor(service: SearchService, options: ShardRunnerOptions) {
    this.#service = service;
    this.#options = options;
    this.#timers = [
      setInterval(() => this.wake(), POLL_EVERY_MS),
      setInterval(() => void this.#sendHeartbeats(), HEARTBEAT_EVERY_MS),
    ];
    this.wake();
  }

  /** Looks for shards at once, in addition to every second. */
  wake(): void {
    this.#isPollDue = true;
    this.#polling ??= this.#pollWhileDue();
  }

  /** Puts all running shards back into the queue. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#stopping.abort();
    await this.#polling;
    const running = [...this.#running.values()];
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
    await Promise.all([...this.#idle].map(([trials, timer]) => this.#endIdle(trials, timer)));
    retire(this.#worker_id);
  }

  async #pollWhileDue(): Promise<void> {
    while (this.#isPollDue && !this.#stopping.signal.aborted) {
      this.#isPollDue = false;
      try {
        await this.#poll();
      } catch (error) {
        if (isStorageFault(error)) this.#silence.reset();
        this.#options.log.warn({ err: error, msg: 'the queue of shards cannot be read' });
      }
    }
    this.#polling = undefined;
  }

  async #poll(): Promise<void> {
    const { storage, clock } = this.#service;
    await this.#recoverDead();
    for (;;) {
      const free = this.#options.workers - this.#running.size;
      if (free === 0 || this.#stopping.signal.aborted) return;
      if (!(await hasQueuedShard(storage.read))) return;
      if ((await storage.schemaFault()) !== undefined) return;
      const claims = await storage.write(
        (tx) => claimShards(tx, clock(), this.#worker_id, free),
        SEARCH_WRITE,
      );
      if (claims.length === 0) return;
      for (const claim of claims) this.#start(claim);
    }
  }

  /** Queues the shards of dead workers again, and those that this worker claims but does not run. */
  async #recoverDead(): Promise<void> {
    const { storage } = this.#service;
    const all = await listRunningShards(storage.read);
    const own = new Set([...this.#running.keys()].map(nameOf));
    const others = all.filter((shard) => !own.has(nameOf(shard)));
    const heartbeats = others.map((shard) => [nameOf(shard), String(shard.heartbeat_at)] as const);
    const silentFor = this.#silence.observe(new Map(heartbeats));
    const isDead = (shard: RunningShard): boolean =>
      (shard.worker_id !== this.#worker_id && hasEnded(shard.worker_id)) ||
      silentFor.get(nameOf(shard))! > DEAD_AFTER_MS;
    const dead = others.filter(isDead);
    if (dead.length === 0) return;
    this.#options.log.warn(`${dead.length} shards of dead workers restart`);
    await storage.write(async (tx) => {
      for (const shard of dead) await recoverShard(tx, shard);
    }, SEARCH_WRITE);
  }

  #start(claim: ShardClaim): void {
    const stop = new AbortController();
    const ended = this.#perform(claim, stop.signal)
      .catch((error: unknown) =>
        this.#options.log.error({
          err: error,
          msg: `the outcome of the shard ${claim.shard_id} cannot be recorded`,
        }),
      )
      .finally(() => {
        this.#running.delete(claim);
        this.wake();
      });
    this.#running.set(claim, { stop, ended });
  }

  #perform(claim: ShardClaim, signal: AbortSignal): Promise<void> {
    const attributes = {
      'search.id': claim.search_id,
      'shard.id': claim.shard_id,
      'shard.attempt': claim.attempts,
    };
    const { traceparent: parent } = claim;
    return inSpan('shard', { kind: 'consumer', parent, attributes }, (span) =>
      this.#runShard(claim, signal, span),
    );
  }

  async #runShard(claim: ShardClaim, signal: AbortSignal, span: Span | undefined): Promise<void> {
    const { storage } = this.#service;
    const outcome = await this.#outcomeOf(claim, signal);
    if (outcome !== undefined) {
      if (outcome.error !== null) span?.fail(outcome.error.code);
      const finish = () => storage.write((tx) => finishShard(tx, claim, outcome), SEARCH_WRITE);
      return this.#persist(finish);
    }
    if (this.#stopping.signal.aborted) {
      await storage.write((tx) => returnShard(tx, claim), SEARCH_WRITE);
    }
  }

  /** @returns undefined if the shard was stopped. */
  async #outcomeOf(claim: ShardClaim, signal: AbortSignal): Promise<ShardOutcome | undefined> {
    try {
      const trials = await this.#persist(() => this.#trialsOf(claim));
      const list = JSON.parse(claim.trials) as readonly Trial[];
      const results = await trials.run(list, signal);
      this.#keepIdle(trials);
      const { parquet, ...rest } = await encodeResults(results);
      const text = JSON.stringify({ ...rest, parquet: Buffer.from(parquet).toString('base64') });
      return { result: text, error: null };
    } catch (error) {
      if (signal.aborted) return undefined;
      const { error: data, bug } = toErrorData(error);
      if (bug !== undefined) this.#options.log.error({ err: bug, msg: 'a shard failed' });
      return { result: null, error: data };
    }
  }

  /** An idle process with the input of the shard, or a new one. */
  async #trialsOf({ search_id, input_digest }: ShardClaim): Promise<SandboxedTrials> {
    for (const [trials, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(trials);
      if (trials.digest === input_digest) return trials;
      await trials.end();
    }
    const { storage, customCode } = this.#service;
    const input = await unpackInput(await readInput(storage.read, search_id, input_digest));
    const isCode = 'files' in strategyOf(input);
    if (isCode && customCode === undefined) throw codeIsOff();
    const memoryMb = isCode ? customCode!.memoryMb : BUILT_IN_MB;
    return new SandboxedTrials(input_digest, input, memoryMb);
  }

  #keepIdle(trials: SandboxedTrials): void {
    const timer = setTimeout(() => void this.#endIdle(trials, timer), IDLE_MS);
    this.#idle.set(trials, timer);
  }

  async #endIdle(trials: SandboxedTrials, timer: NodeJS.Timeout): Promise<void> {
    clearTimeout(timer);
    this.#idle.delete(trials);
    await trials.end();
  }

  /** Sends heartbeats, and stops shards that were deleted or that others have claimed. */
  async #sendHeartbeats(): Promise<void> {
    const { storage, clock } = this.#service;
    const claims = [...this.#running.keys()];
    if (claims.length === 0) return;
    try {
      const held = await storage.write(
        (tx) => recordShardHeartbeats(tx, clock(), claims),
        SEARCH_WRITE,
      );
      for (const claim of claims) if (!held.has(claim)) this.#running.get(claim)?.stop.abort();
    } catch (error) {
      this.#options.log.warn({ err: error, msg: 'the heartbeats of shards cannot be written' });
    }
  }

  /** Repeats an access while the database does not answer, until the worker stops. */
  #persist<T>(access: () => Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    return retry(access, {
      shortestMs: RETRY_MS,
      longestMs: RETRY_MS,
      shouldRetry: (error) => error instanceof ServiceError && error.retryable && !signal.aborted,
      wake: signal,
    });
  }
}

/** Identifies an attempt at a shard. */
function nameOf({ search_id, shard_id, worker_id, attempts }: Omit<RunningShard, 'heartbeat_at'>) {
  return `${search_id} ${shard_id} ${worker_id} ${attempts}`;
}
