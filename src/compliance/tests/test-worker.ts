/** The thread of a conformance or stress test: it runs its work and posts a `TestMessage`. */
import { appendFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../../base/error-data.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { hostedBot } from '../../bots/load-bot.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import { MINUTE } from '../../base/durations.ts';
import type { RunnableVersion } from '../../fleet/registry/versions.ts';
import type { Progress } from '../../fleet/tasks/lifecycle.ts';
import { runConformance, type ConformanceResult } from '../conformance/run-conformance.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { openMeters } from '../stress/meters.ts';
import type { History } from '../stress/history.ts';
import { planStress } from '../stress/stress-plan.ts';
import { runStress, type StressResult } from '../stress/run.ts';
import { HOLD_S, type ConformanceInput, type StressInput } from './start.ts';

export interface ConformanceWork extends RunnableVersion, ConformanceInput {
  readonly kind: 'conformance';
  /** Path of the evidence file, which must not exist. */
  readonly evidence: string;
}

export interface StressWork extends RunnableVersion, StressInput {
  readonly kind: 'stress';
  readonly history: History;
  /** Directory for temporary files. */
  readonly directory: string;
}

export type TestWork = ConformanceWork | StressWork;

/** Messages of a test thread: its progress, then its result or error. */
export type TestMessage =
  | { readonly progress: Progress }
  | { readonly done: ConformanceResult | StressResult }
  | { readonly error: ErrorData; readonly bug?: unknown };

/** Priority (nice value, at most 19) below the trading threads of the same process. */
const BELOW_TRADING = 10;

function send(message: TestMessage): void {
  parentPort!.postMessage(message);
}

function reportProgress(done: number, total: number): void {
  send({ progress: { done, total } });
}

function runConformanceTest(
  tried: TriedBot,
  { seed, cases, evidence }: ConformanceWork,
): Promise<ConformanceResult> {
  let lines: string[] = [];
  return runConformance(tried, {
    seed,
    cases,
    onEvidence: (line) => void lines.push(`${line}\n`),
    onProgress(done, total) {
      appendFileSync(evidence, lines.join(''));
      lines = [];
      reportProgress(done, total);
    },
  });
}

async function runStressTest(
  tried: TriedBot,
  { history, seed, duration_s, multiplier, declared_peak, directory }: StressWork,
): Promise<StressResult> {
  const plan = planStress(history, tried.bot.spec, { multiplier, declaredPeak: declared_peak });
  const short = `the load was held for only ${duration_s} s of virtual time (internal threshold: ${HOLD_S} s)`;
  const provisional = [...plan.provisional, ...(duration_s < HOLD_S ? [short] : [])];
  const holdBars = Math.ceil((duration_s * 1000) / MINUTE);
  const meters = openMeters();
  try {
    const options = { seed, holdBars, onProgress: reportProgress, meters, directory };
    return await runStress(tried, history, { ...plan, provisional }, options);
  } finally {
    meters.close();
  }
}

/**
 * Replaces a custom strategy, whose code is not run, since the test creates the orders.
 *
 * @throws ServiceError `invalid_spec` for a spec that this version no longer accepts.
 */
function openBot({ document, files }: RunnableVersion): TriedBot {
  const hosted = readChangedSpec(document, {}, files);
  if (files === undefined) return { bot: hostedBot(hosted) };
  return { bot: { spec: hosted.spec, strategy: PLACEHOLDER, params: {} } };
}

const PLACEHOLDER: Strategy = {
  name: 'untried',
  description: 'Placeholder for a custom strategy.',
  params: {},
  create() {
    throw new ServiceError('strategy_failed', 'a test does not run the code of a strategy');
  },
};

// On Linux this changes only this thread; on other systems it would change the whole process.
if (process.platform === 'linux') setPriority(BELOW_TRADING);

try {
  const work = workerData as TestWork;
  const tried = openBot(work);
  const isStress = work.kind === 'stress';
  send({ done: await (isStress ? runStressTest(tried, work) : runConformanceTest(tried, work)) });
} catch (error) {
  send(toErrorData(error));
}
