import { ServiceError } from '../../base/errors.ts';
import type { TrialBatch, TrialRunner } from '../search/trial-runner.ts';
import type { TrialResult, TrialSetup } from '../search/trial.ts';
import { encodeInput, type EncodedInput, type SentStrategy } from './search-input.ts';
import { decodeResults, type ShardResults } from './shard-results.ts';
import { shardsOf, type Shard } from './shard.ts';

/** The outcome of a shard on another machine. */
export interface EndedShard {
  readonly id: string;
  readonly outcome: ShardResults | { readonly failure: string; readonly remedy?: string };
}

/** Machines that run shards. */
export interface ShardService {
  /** Number of shards that may wait or run at once. */
  readonly mostOpen: number;
  /** Stores an input where the workers find it. */
  readonly putInput: (input: EncodedInput) => Promise<void>;
  /** Queues shards. One that has succeeded does not run again; one that has failed does. */
  readonly submit: (shards: readonly Shard[]) => Promise<void>;
  /** Waits for shards to end, and returns each once. */
  readonly nextEnded: () => Promise<readonly EndedShard[]>;
  /** Ends all shards. @param isComplete whether no later command needs their results */
  readonly close: (isComplete: boolean) => Promise<void>;
}

/** Runs trials as shards on other machines. */
export class RemoteTrials implements TrialRunner {
  readonly #service: ShardService;
  readonly #strategy: SentStrategy;
  readonly #inputs = new WeakMap<readonly TrialSetup[], Promise<string>>();
  /** Shards that ended before they were submitted, in an earlier run of the command. */
  readonly #early = new Map<string, EndedShard>();
  #closed: Promise<void> | undefined;
  /** Number of batches whose results have not all arrived. */
  #unfinished = 0;

  constructor(service: ShardService, strategy: SentStrategy) {
    this.#service = service;
    this.#strategy = strategy;
  }

  async run(batch: TrialBatch, onResult: (result: TrialResult) => void): Promise<void> {
    if (batch.indices.length === 0) return;
    this.#unfinished += 1;
    const waiting = shardsOf(batch, await this.#inputOf(batch.setups));
    const open = new Map<string, Shard>();
    for (;;) {
      const added: Shard[] = [];
      while (open.size < this.#service.mostOpen) {
        const { value: shard, done } = waiting.next();
        if (done === true) break;
        open.set(shard.id, shard);
        added.push(shard);
      }
      if (added.length > 0) await this.#service.submit(added);
      if (open.size === 0) {
        this.#unfinished -= 1;
        return;
      }
      for (const ended of await this.#endedOf(open)) {
        const shard = open.get(ended.id)!;
        open.delete(ended.id);
        for (const result of await resultsOf(shard, ended)) onResult(result);
      }
    }
  }

  end(): Promise<void> {
    return (this.#closed ??= this.#service.close(this.#unfinished === 0));
  }

  /** The next shards among `open` that have ended, one or more. */
  async #endedOf(open: ReadonlyMap<string, Shard>): Promise<readonly EndedShard[]> {
    for (;;) {
      const ended = [...this.#early.values()].filter(({ id }) => open.has(id));
      for (const { id } of ended) this.#early.delete(id);
      if (ended.length > 0) return ended;
      for (const one of await this.#service.nextEnded()) this.#early.set(one.id, one);
    }
  }

  /** Sends the setups of a batch once, and returns the digest of the input. */
  #inputOf(setups: readonly TrialSetup[]): Promise<string> {
    const send = async (): Promise<string> => {
      const input = await encodeInput({ strategy: this.#strategy, setups });
      await this.#service.putInput(input);
      return input.digest;
    };
    const sent = this.#inputs.get(setups) ?? send();
    this.#inputs.set(setups, sent);
    return sent;
  }
}

async function resultsOf({ trials }: Shard, { outcome }: EndedShard): Promise<TrialResult[]> {
  if ('failure' in outcome) {
    throw new ServiceError('strategy_failed', `a worker of the search failed: ${outcome.failure}`, {
      remedy: outcome.remedy ?? 'Correct the cause, and run the same command again to resume.',
    });
  }
  return decodeResults(trials, outcome);
}
