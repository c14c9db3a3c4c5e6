import type { Bundle } from '../../bots/bundle.ts';
import { digestsOf } from '../../bots/bundle.ts';
import { specHash } from '../../bots/spec-lock.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import type { TasksTable } from '../../storage/tables.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { ConformanceResult } from '../conformance/run-conformance.ts';
import type { Isolation } from '../stress/isolation.ts';
import type { StressResult } from '../stress/run.ts';

export type TestKind = Extract<TasksTable['kind'], 'conformance' | 'stress'>;

/** Version of the simulated venue's rules; increase it when they change. */
const VENUE = 'simulated_venue/1';

/**
 * Lists everything that a test result depends on; the result is stale once a part changes.
 *
 * @param document the spec as written.
 * @param files the strategy's files; undefined for a built-in one.
 */
export function buildTestLock(document: unknown, files: Bundle | undefined) {
  const { spec } = document as {
    readonly spec: { readonly strategy: { readonly name: string }; readonly risk?: unknown };
  };
  return {
    spec: specHash(document),
    strategy: files === undefined ? spec.strategy.name : digestsOf(files),
    limits: spec.risk ?? null,
    engine: ENGINE_VERSION,
    /** Contains the session code that the test runs. */
    program: packageVersion(),
    venue: VENUE,
  };
}

export type TestLock = ReturnType<typeof buildTestLock>;

/** Identity of a test, which never replaces a test of the venue itself. */
interface Tested {
  /** Id of the task. */
  readonly run_id: string;
  /** Slug of the bot. */
  readonly bot_ref: string;
  readonly version: number;
  readonly lock: TestLock;
  readonly discharges_art6: false;
  readonly venue_report: null;
  readonly method: string;
  readonly isolation: Isolation;
}

export type ConformanceReport = Tested & ConformanceResult;
export type StressReport = Tested & StressResult;

/** Reduces a report to what the task stores; `conformance.json` has all of it. */
export function summarizeReport(report: ConformanceReport) {
  return {
    ...report,
    cases: report.cases.map(
      ({ stimulus: _stimulus, expectation: _expectation, parts: _parts, alerts, ...one }) => ({
        ...one,
        alerts: alerts.length,
      }),
    ),
  };
}
