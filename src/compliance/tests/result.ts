/** What a conformance or a stress test of a bot leaves, and of what it tells. */
import type { Bundle } from '../../bots/bundle.ts';
import { digestsOf } from '../../bots/bundle.ts';
import { specHash } from '../../bots/version.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import type { TasksTable } from '../../storage/tables.ts';
import { packageVersion } from '../../base/version.ts';
import type { CaseResult, ConformanceResult } from '../conformance/run.ts';
import type { Isolation } from '../stress/isolation.ts';
import type { StressResult } from '../stress/run.ts';

export type TestKind = Extract<TasksTable['kind'], 'conformance' | 'stress'>;

/** All that decides what a test tells: once a part is another one, it tells of something else. */
export interface TestLock extends Readonly<Record<string, unknown>> {
  /** See `specHash`. */
  readonly spec: string;
  /** Name of a built-in strategy, or SHA-256 of each file that came with the bot. */
  readonly strategy: string | Readonly<Record<string, string>>;
  /** As they stand in the spec; null where there are none. */
  readonly limits: unknown;
  readonly engine: string;
  /** Of the session code, which is tried with the engine. */
  readonly program: string;
  readonly venue: string;
}

/** Of the rules that the simulated venue has: to be counted up when they change. */
const VENUE = 'simulated_venue/1';

/** @param document a spec as authored, with the code that came with it. */
export function testLock(document: unknown, files: Bundle | undefined): TestLock {
  const { spec } = document as {
    readonly spec: { readonly strategy: { readonly name: string }; readonly risk?: unknown };
  };
  return {
    spec: specHash(document),
    strategy: files === undefined ? spec.strategy.name : digestsOf(files),
    limits: spec.risk ?? null,
    engine: ENGINE_VERSION,
    program: packageVersion(),
    venue: VENUE,
  };
}

/** Which test it was, and of what; never of the venue's own. */
interface Tested {
  /** That of the task. */
  readonly run_id: string;
  /** Slug. */
  readonly bot_ref: string;
  readonly version: number;
  readonly lock: TestLock;
  readonly discharges_art6: false;
  readonly venue_report: null;
  readonly method: string;
  readonly isolation: Isolation;
}

/** What of a case its task keeps; `conformance.json` has all of it. */
type CaseSummary = Pick<
  CaseResult,
  'id' | 'title' | 'articles' | 'status' | 'reason' | 'evidence_hash'
> & { readonly alerts: number };

export type ConformanceReport = Tested & ConformanceResult;

export type ConformanceSummary = Tested &
  Omit<ConformanceResult, 'cases'> & { readonly cases: readonly CaseSummary[] };

export type StressReport = Tested & StressResult;

export function summaryOf(report: ConformanceReport): ConformanceSummary {
  return {
    ...report,
    cases: report.cases.map(({ id, title, articles, status, reason, evidence_hash, alerts }) => ({
      id,
      title,
      articles,
      status,
      reason,
      evidence_hash,
      alerts: alerts.length,
    })),
  };
}
