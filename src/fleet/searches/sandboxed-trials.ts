import { fileURLToPath } from 'node:url';
import { ServiceError } from '../../base/errors.ts';
import type { Trial, TrialResult } from '../../backtest/search/trial.ts';
import { StrategyProcess } from '../../trading/sandbox/strategy-process.ts';
import { readLoaded, readResult } from './trial-messages.ts';

const FILE = fileURLToPath(new URL(`./trial-process${import.meta.url.slice(-3)}`, import.meta.url));
/** Time for Node to start and to decode the input. */
const START_MS = 60_000;
/** Longest time of a trial. The process itself ends strategies that do not return in time. */
const TRIAL_MS = 3_600_000;
const MB = 1024 * 1024;
/** Memory of the process beside that of its strategy: indicators, and copies of the input. */
const OWN_MB = 256;
const COPIES = 3;

/** A sandbox process that runs the trials of one input, one list at a time. */
export class SandboxedTrials {
  readonly digest: string;
  readonly #input: Uint8Array;
  readonly #memoryMb: number;
  #child: StrategyProcess | undefined;

  /**
   * @param input of `unpackInput`, with this digest
   * @param memoryMb memory for the strategy
   */
  constructor(digest: string, input: Uint8Array, memoryMb: number) {
    this.digest = digest;
    this.#input = input;
    this.#memoryMb = memoryMb + OWN_MB + Math.ceil((COPIES * input.length) / MB);
  }

  /**
   * Runs trials in their order. A trial that ends the process fails, and the others run in a new one.
   *
   * @throws ServiceError `invalid_strategy` if the strategy cannot be loaded; `strategy_failed` if the
   *   process cannot run; the reason with which `signal` was aborted
   */
  async run(trials: readonly Trial[], signal: AbortSignal): Promise<TrialResult[]> {
    const results: TrialResult[] = [];
    const abort = (): void => void this.end();
    signal.addEventListener('abort', abort);
    try {
      while (results.length < trials.length) {
        signal.throwIfAborted();
        await this.#runRest(trials, results, signal);
      }
      return results;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async end(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    await child?.close();
  }

  async #runRest(
    trials: readonly Trial[],
    results: TrialResult[],
    signal: AbortSignal,
  ): Promise<void> {
    const child = (this.#child ??= await this.#start(signal));
    const rest = trials.slice(results.length);
    child.send(Buffer.from(JSON.stringify(rest)));
    for (const trial of rest) {
      try {
        const result = readResult(trial, await child.receive(TRIAL_MS));
        if (result === undefined) throw invalidMessage();
        results.push(result);
      } catch (error) {
        await this.end();
        signal.throwIfAborted();
        if (!(error instanceof ServiceError)) throw error;
        results.push({ ...trial, error: error.message });
        return;
      }
    }
  }

  async #start(signal: AbortSignal): Promise<StrategyProcess> {
    const child = new StrategyProcess(this.#memoryMb, undefined, FILE);
    try {
      child.send(this.#input);
      const answer = readLoaded(await child.receive(START_MS));
      if (answer === undefined) throw invalidMessage();
      if ('refused' in answer) throw new ServiceError('invalid_strategy', answer.refused);
      return child;
    } catch (error) {
      await child.close();
      signal.throwIfAborted();
      throw error;
    }
  }
}

function invalidMessage(): ServiceError {
  return new ServiceError(
    'strategy_failed',
    'the process of the strategy sent an invalid message',
    {
      remedy: 'Remove code from the strategy that writes to the standard output.',
    },
  );
}
