import { appendFileSync } from 'node:fs';
import type { Bundle } from '../../bots/bundle.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { hostedBot } from '../../bots/load-bot.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import { MINUTE } from '../../market/bar-time.ts';
import type { Progress } from '../../fleet/tasks/lifecycle.ts';
import { runConformance, type ConformanceResult } from '../conformance/run-conformance.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { openMeters } from '../stress/meters.ts';
import type { History } from '../stress/history.ts';
import { planStress } from '../stress/stress-plan.ts';
import { runStress, type StressResult } from '../stress/run.ts';
import { HOLD_S, type ConformanceInput, type StressInput } from './start.ts';

interface Tested {
  /** The bot spec as written. */
  readonly document: unknown;
  readonly files: Bundle | undefined;
}

export interface ConformanceWork extends Tested, ConformanceInput {
  readonly kind: 'conformance';
  /** Path of the evidence file, which must not exist. */
  readonly evidence: string;
}

export interface StressWork extends Tested, StressInput {
  readonly kind: 'stress';
  readonly history: History;
  /** Directory for temporary files. */
  readonly directory: string;
}

export type TestWork = ConformanceWork | StressWork;

/**
 * Runs a test in a thread of its own, since the test replaces the clocks of its thread.
 *
 * @throws ServiceError `invalid_spec` for a spec that this version no longer accepts.
 */
export async function runTest(
  work: TestWork,
  onProgress: (progress: Progress) => void,
): Promise<ConformanceResult | StressResult> {
  const tried = openBot(work);
  const reportProgress = (done: number, total: number): void => onProgress({ done, total });
  if (work.kind === 'stress') return runStressTest(tried, work, reportProgress);
  let lines: string[] = [];
  return runConformance(tried, {
    seed: work.seed,
    cases: work.cases,
    onEvidence: (line) => void lines.push(`${line}\n`),
    onProgress(done, total) {
      appendFileSync(work.evidence, lines.join(''));
      lines = [];
      reportProgress(done, total);
    },
  });
}

async function runStressTest(
  tried: TriedBot,
  { history, seed, duration_s, multiplier, declared_peak, directory }: StressWork,
  onProgress: (done: number, of: number) => void,
): Promise<StressResult> {
  const plan = planStress(history, tried.bot.spec, { multiplier, declaredPeak: declared_peak });
  const short = `the load was held for only ${duration_s} s of virtual time (internal threshold: ${HOLD_S} s)`;
  const provisional = [...plan.provisional, ...(duration_s < HOLD_S ? [short] : [])];
  const holdBars = Math.ceil((duration_s * 1000) / MINUTE);
  const meters = openMeters();
  try {
    const options = { seed, holdBars, onProgress, meters, directory };
    return await runStress(tried, history, { ...plan, provisional }, options);
  } finally {
    meters.close();
  }
}

/** Replaces a custom strategy, whose code is not run, since the test creates the orders. */
function openBot({ document, files }: Tested): TriedBot {
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
