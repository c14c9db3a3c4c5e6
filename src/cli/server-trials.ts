import { MOST_TRIALS, type recordTrials } from '../api/trials.ts';
import type { BacktestJob } from '../backtest/job.ts';
import { scopeOf } from '../backtest/ledger/earlier-trials.ts';
import type { TrialScope } from '../backtest/ledger/ledger-entry.ts';
import { packTrials, trialKey, type ExecutedTrial } from '../backtest/ledger/packed-trials.ts';
import { trialLock } from '../backtest/ledger/trial-lock.ts';
import { ServiceError } from '../base/errors.ts';
import { connect } from './connect.ts';
import type { Context } from './verb.ts';

/** Each report becomes an entry of the ledger, so reports are rare. */
const REPORT_EVERY_MS = 10_000;

interface Batch {
  readonly lock: string;
  readonly scope: TrialScope;
  /** Sharpe ratios by key; at most `MOST_TRIALS`. */
  readonly trials: Map<string, number | null>;
}

/**
 * Reports the trials of a search to the ledger of the server in the setting `server_url`. A report that
 * fails is repeated with the next one. When an interrupted command resumes, it reports all its trials.
 */
export class ServerTrials {
  readonly #context: Context;
  /** Batches that are not reported yet; trials join the last one. */
  readonly #waiting: Batch[] = [];
  #timer: NodeJS.Timeout | undefined;
  #reporting: Promise<void> = Promise.resolve();

  constructor(context: Context) {
    this.#context = context;
  }

  record(job: BacktestJob, executed: readonly ExecutedTrial[]): void {
    const lock = trialLock(job);
    for (const { params, sharpe } of executed) {
      let batch = this.#waiting.at(-1);
      if (batch?.lock !== lock || batch.trials.size === MOST_TRIALS) {
        batch = { lock, scope: scopeOf(job), trials: new Map() };
        this.#waiting.push(batch);
      }
      const key = trialKey(params);
      // As in a ledger, the first execution counts: a test window may be the next training window.
      if (!batch.trials.has(key)) batch.trials.set(key, sharpe);
    }
    this.#timer ??= setTimeout(() => this.#reportNow(), REPORT_EVERY_MS);
  }

  /** Reports the remaining trials, with a warning if that fails. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#reporting;
    try {
      await this.#report();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#context.message(
        `warning: the server does not count these trials: ${error.message}; run the same command again to count them`,
      );
    }
  }

  #reportNow(): void {
    this.#timer = undefined;
    this.#reporting = this.#reporting.then(() => this.#report()).catch(() => {});
  }

  async #report(): Promise<void> {
    if (this.#waiting.length === 0) return;
    // The signal of the command may be aborted already.
    const server = await connect(this.#context);
    for (;;) {
      const batch = this.#waiting.shift();
      if (batch === undefined) return;
      const { lock, scope, trials } = batch;
      const body = { lock, ...scope, symbols: [...scope.symbols], trials: packTrials(trials) };
      try {
        await server.call<typeof recordTrials>('post', '/trials', { body });
      } catch (error) {
        this.#waiting.unshift(batch);
        throw error;
      }
    }
  }
}
