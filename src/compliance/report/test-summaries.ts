import type { Staleness } from '../stress/staleness.ts';
import type { TestKind } from '../tests/result.ts';
import { formatInstant } from './period.ts';
import { type EndedTask } from './records.ts';

/** Describes where a test ran, with the proof that it was isolated from production. */
export function describeEnvironment(kind: TestKind, { task_id, result }: EndedTask) {
  const { environment, isolation } = result;
  return { kind, run_id: task_id, environment: environment ?? null, isolation: isolation ?? null };
}

/** Summarizes a conformance test, which never discharges Article 6. */
export function summarizeConformance(task: EndedTask, { stale, reasons }: Staleness) {
  const { result, task_id, version } = task;
  const cases = Array.isArray(result['cases'])
    ? (result['cases'] as Record<string, unknown>[])
    : [];
  return {
    run_id: task_id,
    version,
    ended_at: formatInstant(task.ended_at),
    environment: result['environment'] ?? null,
    discharges_art6: false,
    seed: result['seed'] ?? null,
    evidence_hash: result['evidence_hash'] ?? null,
    stale,
    stale_reasons: reasons,
    counts: result['counts'] ?? null,
    passed: cases.filter(({ status }) => status === 'pass').map(({ id }) => String(id)),
    not_passed: cases
      .filter(({ status }) => status !== 'pass')
      .map(({ id, status, reason }) => ({
        id: String(id),
        status: String(status),
        reason: reason ?? null,
      })),
  };
}

export function summarizeStress(task: EndedTask, { stale, reasons }: Staleness) {
  const { result, task_id, version } = task;
  const of = (name: string): unknown => result[name] ?? null;
  return {
    run_id: task_id,
    version,
    ended_at: formatInstant(task.ended_at),
    scope: of('scope'),
    coverage: of('coverage'),
    multiplier: of('multiplier'),
    house_numbers: of('house_numbers'),
    basis: of('basis'),
    coverage_days: of('coverage_days'),
    peaks: of('peaks'),
    targets: of('targets'),
    passes: of('passes'),
    verdict: of('verdict'),
    reasons: of('reasons'),
    not_judged: of('not_judged'),
    assumption: of('assumption'),
    stale,
    stale_reasons: reasons,
  };
}
