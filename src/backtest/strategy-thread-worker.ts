/** A thread that loads a user's own strategy, checks its parameters and runs it. */
import { Console } from 'node:console';
import { workerData, type MessagePort } from 'node:worker_threads';
import { declaredIndicators } from '../engine/declared-indicators.ts';
import type { BarKind } from '../engine/series/coarse-bars.ts';
import type { EngineSetup } from '../engine/engine-setup.ts';
import type { JournalData } from '../engine/journal.ts';
import type { Params, ParamValues } from '../engine/params.ts';
import type { ReturnedIndicator } from '../engine/series/returned-indicators.ts';
import type { RunResult } from '../engine/run-result.ts';
import type { DeclaredIndicator } from '../engine/series/series-graph.ts';
import type { Strategy } from '../engine/strategy.ts';
import { lateError } from '../engine/strategy-error.ts';
import { ServiceError, type ErrorCode, type ServiceErrorOptions } from '../base/errors.ts';
import { runStrategy } from '../base/strategy-guard.ts';
import { execute, type FailedRun, type StrategyTraces } from './execute.ts';
import { outsideUsed } from './outside.ts';
import { loadStrategyModule, type StrategyModule } from './strategy-module.ts';

export interface StrategyThreadData {
  readonly port: MessagePort;
  /** One number in shared memory, incremented with each answer. */
  readonly answers: Int32Array;
}

export type Question =
  | {
      readonly load: {
        readonly modulePath: string;
        readonly specDirectory: string;
        readonly timeoutMs: number;
      };
    }
  | {
      readonly declare: {
        readonly params: ParamValues<Params>;
        readonly symbols: readonly string[];
        readonly kind: BarKind;
        readonly timeoutMs: number;
      };
    }
  | { readonly check: { readonly params: ParamValues<Params>; readonly timeoutMs: number } }
  | {
      readonly run: {
        readonly setup: Omit<EngineSetup, 'strategy'>;
        readonly timeoutMs: number;
        /** Whether the answer to a failure contains the run up to it. */
        readonly returnsFailed: boolean;
      };
    };

export interface Declaration extends Pick<StrategyModule, 'files' | 'others'> {
  readonly outside: readonly string[];
  readonly declared: Omit<Strategy, 'create' | 'check' | 'indicators'> & {
    readonly hasCheck: boolean;
    readonly hasIndicators: boolean;
  };
}

export interface SentRun {
  readonly done: Omit<RunResult, 'journal'> & { readonly journal: JournalData };
  readonly indicators: readonly ReturnedIndicator[];
}

export type Answer =
  | { readonly loaded: Declaration }
  | { readonly checked: string | null }
  | { readonly indicators: readonly DeclaredIndicator[] }
  | { readonly progress: readonly [done: number, total: number] }
  | (SentRun & { readonly traces: StrategyTraces })
  | {
      readonly failed: Pick<ServiceErrorOptions, 'remedy' | 'reason'> & {
        readonly code: ErrorCode;
        readonly message: string;
      };
      /** The run up to the failure, if it was requested and has a bar. */
      readonly until?: SentRun;
    };

const { port, answers } = workerData as StrategyThreadData;
let strategy: Strategy | undefined;
let done = 0;
const resourcesBefore = countResources();

function send(answer: Answer, transfer: readonly ArrayBuffer[] = []): void {
  port.postMessage(answer, [...transfer]);
  Atomics.add(answers, 0, 1);
  Atomics.notify(answers, 0);
}

function fail(error: unknown, failed?: FailedRun): void {
  const known =
    error instanceof ServiceError
      ? error
      : new ServiceError('failure', error instanceof Error ? String(error.stack) : String(error));
  const { code, message, remedy, reason } = known;
  const answer = {
    failed: {
      code,
      message,
      ...(remedy !== undefined && { remedy }),
      ...(reason !== undefined && { reason }),
    },
  };
  if (failed === undefined) return send(answer);
  send({ ...answer, until: sentRun(failed) }, buffersOf(failed));
}

function failLate(error: unknown): void {
  fail(lateError(error, { ...(strategy && { strategy: strategy.name }), done }));
}

function load({ modulePath, specDirectory, timeoutMs }: LoadQuestion): Declaration {
  const { files, others, ...loaded } = guardedLoad(modulePath, specDirectory, timeoutMs);
  ({ strategy } = loaded);
  const { name, description, params, instruments, signals, shorts } = loaded.strategy;
  return {
    files,
    others,
    outside: outsideUsed(),
    declared: {
      name,
      description,
      params,
      hasCheck: 'check' in loaded.strategy,
      hasIndicators: loaded.strategy.indicators !== undefined,
      ...(instruments && { instruments }),
      ...(signals && { signals }),
      ...(shorts !== undefined && { shorts }),
    },
  };
}

type LoadQuestion = Extract<Question, { load: object }>['load'];

function guardedLoad(module: string, directory: string, timeoutMs: number): StrategyModule {
  try {
    return runStrategy(timeoutMs, () => loadStrategyModule(module, directory, true));
  } catch (error) {
    if (!isTimeout(error)) throw error;
    throw new ServiceError(
      'strategy_timeout',
      `${module} did not load within ${timeoutMs / 1000} s`,
      {
        remedy:
          'Look for an endless loop at the top level of the module; if it is only slow, increase its time limit (strategy_timeout_seconds).',
      },
    );
  }
}

function check(params: ParamValues<Params>, timeoutMs: number): string | null {
  try {
    return runStrategy(timeoutMs, () => strategy!.check?.(params)) ?? null;
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (!isTimeout(error)) return `the strategy's check() threw: ${String(error)}`;
    throw timeoutOf('check', timeoutMs);
  }
}

function declare({
  params,
  symbols,
  kind,
  timeoutMs,
}: Extract<Question, { declare: object }>['declare']): readonly DeclaredIndicator[] {
  const { stackTraceLimit } = Error;
  // Frames of the indicator that throws precede the frame of the strategy.
  Error.stackTraceLimit = 30;
  try {
    return runStrategy(timeoutMs, () => declaredIndicators(strategy!, params, symbols, kind));
  } catch (error) {
    throw isTimeout(error) ? timeoutOf('indicators', timeoutMs) : error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function timeoutOf(method: string, timeoutMs: number): ServiceError {
  return new ServiceError(
    'strategy_timeout',
    `${method}() of strategy ${strategy!.name} did not return within ${timeoutMs / 1000} s`,
    { remedy: 'Look for an endless loop.' },
  );
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

async function run({
  setup,
  timeoutMs,
  returnsFailed,
}: Extract<Question, { run: object }>['run']): Promise<void> {
  let indicators: readonly ReturnedIndicator[] = [];
  let failed: FailedRun | undefined;
  let result: RunResult;
  try {
    result = await execute(
      { ...setup, strategy: strategy! },
      {
        timeoutMs,
        onProgress(steps, total) {
          done = steps;
          send({ progress: [steps, total] });
        },
        onIndicators(found) {
          indicators = found;
        },
        onFailure(found) {
          if (returnsFailed) failed = found;
        },
      },
    );
  } catch (error) {
    return fail(error, failed);
  }
  const traces = { left: leftRunning(), outside: outsideUsed() };
  const finished = { result, indicators };
  send({ ...sentRun(finished), traces }, buffersOf(finished));
}

function sentRun({ result, indicators }: FailedRun): SentRun {
  return { done: { ...result, journal: result.journal.data }, indicators };
}

/** Buffers that are moved to the receiver of a run instead of copied. */
function buffersOf({ result, indicators }: FailedRun): ArrayBuffer[] {
  const { chunks } = result.journal.data.rows;
  const columns = [result.equity, ...chunks, ...indicators.flatMap(columnsOf)];
  const buffers = columns.map(({ buffer }) => buffer);
  return [...new Set(buffers.filter((buffer) => buffer instanceof ArrayBuffer))];
}

function columnsOf({ lines, bars }: ReturnedIndicator): (Float64Array | Int32Array)[] {
  const rows = [...bars.values()].flatMap((entry) => entry.rows ?? []);
  return [...lines.map(({ values }) => values), ...rows];
}

function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** Counts resources that keep the thread alive and were opened since the strategy was loaded. */
function leftRunning(): Record<string, number> {
  const left = [...countResources()].map(([name, count]): [string, number] => [
    name,
    count - (resourcesBefore.get(name) ?? 0),
  ]);
  return Object.fromEntries(
    left.filter(([name, count]) => count > 0 && name !== 'Immediate' && name !== 'MessagePort'),
  );
}

// Stdout carries the output of the command, so strategies print to stderr.
Object.defineProperty(process, 'stdout', { value: process.stderr });
Object.assign(console, new Console(process.stderr));
process.on('uncaughtException', failLate);
process.on('unhandledRejection', failLate);
port.on('message', (question: Question) => {
  try {
    if ('load' in question) send({ loaded: load(question.load) });
    else if ('declare' in question) send({ indicators: declare(question.declare) });
    else if ('check' in question) {
      send({ checked: check(question.check.params, question.check.timeoutMs) });
    } else void run(question.run).catch((error: unknown) => fail(error));
  } catch (error) {
    fail(error);
  }
});
