/**
 * Runs a user's own strategy in a thread: its timers and connections end with the thread, it cannot
 * end the process, and its memory is limited.
 */
import {
  MessageChannel,
  receiveMessageOnPort,
  Worker,
  type MessagePort,
} from 'node:worker_threads';
import type { DeclareIndicators } from '../engine/declared-indicators.ts';
import { Journal } from '../engine/journal.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { DeclaredIndicator } from '../engine/series/series-graph.ts';
import type { Strategy } from '../engine/strategy.ts';
import { endThread } from '../base/end-thread.ts';
import { ServiceError } from '../base/errors.ts';
import { outOfMemory } from '../base/strategy-memory.ts';
import type { Execute, ExecuteOptions, FailedRun } from './execute.ts';
import { heapLimits, isHeapFull, MB, watchMemory } from './memory-watch.ts';
import type { StrategyModule } from './strategy-module.ts';
import type {
  Answer,
  Declaration,
  Question,
  SentRun,
  StrategyThreadData,
} from './strategy-thread-worker.ts';

export interface StrategyLimits {
  /** Longest time for one call, ms. */
  readonly timeoutMs: number;
  /** Memory of one run: JavaScript objects, typed arrays and buffers. */
  readonly memoryMb: number;
}

/** Loads strategies as `loadStrategyModule` does, each in its own thread. Each can run once. */
export interface OwnStrategies {
  readonly load: (modulePath: string, specDirectory: string) => OwnStrategy;
  readonly close: () => Promise<void>;
}

export interface OwnStrategy extends StrategyModule {
  /** Its `create` throws, because the strategy only runs in its own thread, with `execute`. */
  readonly strategy: Strategy;
  readonly execute: Execute;
  /** Undefined if the strategy declares no indicators. */
  readonly declare?: DeclareIndicators | undefined;
  /** APIs that its modules used while they were loaded; see `StrategyTraces`. */
  readonly outside?: readonly string[] | undefined;
}

const FILE = new URL(`./strategy-thread-worker${import.meta.url.slice(-3)}`, import.meta.url);
/** Start-up time of a thread, in addition to the time limit of the strategy. */
const START_MS = 10_000;
/** A thread whose watchdog works answers within this time after its own time limit. */
const LATE_MS = 5000;
const POLL_MS = 25;

/** @param limits apply to each strategy separately */
export function ownStrategies(limits: StrategyLimits): OwnStrategies {
  const threads: StrategyThread[] = [];
  return {
    load(modulePath, specDirectory) {
      const thread = new StrategyThread(limits);
      threads.push(thread);
      return thread.load(modulePath, specDirectory);
    },
    async close() {
      await Promise.all(threads.splice(0).map((thread) => thread.end()));
    },
  };
}

class StrategyThread {
  readonly #limits: StrategyLimits;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  /** Number of the thread's answers; `#ask` waits for it to change. */
  readonly #answers = new Int32Array(new SharedArrayBuffer(4));
  #ended: ServiceError | undefined;
  #onEnd: (error: ServiceError) => void = () => {};

  constructor(limits: StrategyLimits) {
    this.#limits = limits;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData: StrategyThreadData = { port: port2, answers: this.#answers };
    // Threads inherit the time zone of the process, which must be the same on every machine.
    process.env['TZ'] = 'UTC';
    this.#worker = new Worker(FILE, {
      workerData,
      transferList: [port2],
      resourceLimits: heapLimits(limits.memoryMb),
    });
    this.#worker.unref();
    this.#worker.on('error', (error: Error) => {
      this.#fail(isHeapFull(error) ? outOfMemory(limits.memoryMb) : died(error.message, error));
    });
    this.#worker.on('exit', (code) => this.#fail(died(`exit code ${code}`)));
  }

  load(modulePath: string, specDirectory: string): OwnStrategy {
    const { timeoutMs } = this.#limits;
    const loaded = this.#ask({ load: { modulePath, specDirectory, timeoutMs } });
    const { declared, files, others, outside } = (loaded as { readonly loaded: Declaration })
      .loaded;
    const { hasCheck, hasIndicators, ...rest } = declared;
    return {
      files,
      others,
      outside,
      strategy: {
        ...rest,
        ...(hasCheck && { check: (params: ParamValues<Params>) => this.#check(params) }),
        create() {
          throw new Error('the strategy runs in another thread');
        },
      },
      execute: (setup, options) => this.#execute(setup, options),
      ...(hasIndicators && { declare: (...about) => this.#declare(...about) }),
    };
  }

  async end(): Promise<void> {
    this.#ended ??= died('its run has finished');
    this.#port.close();
    await endThread(this.#worker);
  }

  #fail(error: ServiceError): void {
    this.#ended ??= error;
    this.#onEnd(this.#ended);
  }

  #check(params: ParamValues<Params>): string | undefined {
    const { timeoutMs } = this.#limits;
    const answer = this.#ask({ check: { params, timeoutMs } });
    return (answer as { readonly checked: string | null }).checked ?? undefined;
  }

  #declare(
    ...[params, symbols, kind]: Parameters<DeclareIndicators>
  ): readonly DeclaredIndicator[] {
    const { timeoutMs } = this.#limits;
    const answer = this.#ask({ declare: { params, symbols, kind, timeoutMs } });
    return (answer as { readonly indicators: readonly DeclaredIndicator[] }).indicators;
  }

  /**
   * Sends a request and blocks this thread until the answer arrives, because loading and checking are
   * synchronous.
   */
  #ask(question: Question): Answer {
    if (this.#ended !== undefined) throw this.#ended;
    const { timeoutMs, memoryMb } = this.#limits;
    const until = performance.now() + START_MS + timeoutMs;
    const rss = process.memoryUsage.rss();
    const stop = (error: ServiceError): never => {
      this.#fail(error);
      void endThread(this.#worker);
      throw error;
    };
    this.#port.postMessage(question);
    for (;;) {
      const seen = Atomics.load(this.#answers, 0);
      const received = receiveMessageOnPort(this.#port);
      if (received !== undefined) {
        if ('failed' in received.message) throw errorFrom(received.message.failed);
        return received.message;
      }
      if (performance.now() > until) stop(hung(timeoutMs));
      if (process.memoryUsage.rss() - rss > memoryMb * MB) stop(outOfMemory(memoryMb));
      Atomics.wait(this.#answers, 0, seen, POLL_MS);
    }
  }

  async #execute(
    { instruments, params, config, signals, ignoresWakeOn, keepsLog }: Parameters<Execute>[0],
    options: ExecuteOptions,
  ): ReturnType<Execute> {
    const { timeoutMs, signal, onProgress, onIndicators, onFailure, onTraces } = options;
    signal?.throwIfAborted();
    if (this.#ended !== undefined) throw this.#ended;
    const { promise, resolve, reject } = Promise.withResolvers<Extract<Answer, { done: object }>>();
    this.#onEnd = reject;
    const abort = (): void => reject(signal!.reason as Error);
    signal?.addEventListener('abort', abort);
    const late = setTimeout(() => reject(hung(timeoutMs)), timeoutMs + LATE_MS);
    const listen = (answer: Answer): void => {
      late.refresh();
      if ('progress' in answer) onProgress?.(...answer.progress);
      else if ('failed' in answer) {
        const { failed, until } = answer;
        if (until !== undefined) onFailure?.(receivedRun(until));
        reject(errorFrom(failed));
      } else if ('done' in answer) resolve(answer);
    };
    this.#port.on('message', listen);
    const { memoryMb } = this.#limits;
    const unwatch = watchMemory(this.#worker, memoryMb, () => this.#fail(outOfMemory(memoryMb)));
    this.#worker.ref();
    try {
      const setup = { instruments, params, config, signals, ignoresWakeOn, keepsLog };
      const returnsFailed = onFailure !== undefined;
      this.#port.postMessage({ run: { setup, timeoutMs, returnsFailed } } satisfies Question);
      const { traces, ...sent } = await promise;
      const { result, indicators } = receivedRun(sent);
      onIndicators?.(indicators);
      onTraces?.(traces);
      return result;
    } finally {
      clearTimeout(late);
      unwatch();
      this.#port.off('message', listen);
      signal?.removeEventListener('abort', abort);
      this.#onEnd = () => {};
      await this.end();
    }
  }
}

function receivedRun({ done, indicators }: SentRun): FailedRun {
  return { result: { ...done, journal: Journal.read(done.journal) }, indicators };
}

function errorFrom({ code, message, ...options }: Extract<Answer, { failed: object }>['failed']) {
  return new ServiceError(code, message, options);
}

function hung(timeoutMs: number): ServiceError {
  return new ServiceError(
    'strategy_timeout',
    `the strategy did not return within ${timeoutMs / 1000} s`,
    {
      remedy:
        'Look for an endless loop; if the strategy is only slow, increase its time limit (strategy_timeout_seconds).',
    },
  );
}

function died(how: string, cause?: unknown): ServiceError {
  return new ServiceError('strategy_failed', `the strategy's thread ended: ${how}`, {
    reason: 'process_ended',
    remedy: 'Remove calls that end the thread or the process from the strategy and its libraries.',
    cause,
  });
}
