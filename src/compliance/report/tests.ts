/** What a report tells of tests that were run. */
import { ENGINE_VERSION } from '../../engine/version.ts';
import { instant, type EndedTask, type Version } from './records.ts';

/** By a house number. */
const STALE_AFTER_MS = 365 * 86_400_000;

/** Of another version or engine than now, or too old. */
function isStale(task: EndedTask, current: Version | undefined, now: number): boolean {
  const { lock } = task.result as { readonly lock?: { readonly engine?: unknown } };
  const engine = lock?.engine;
  return (
    task.version !== current?.version ||
    (typeof engine === 'string' && engine !== ENGINE_VERSION) ||
    now - task.ended_at > STALE_AFTER_MS
  );
}

/** Where a test ran, and what shows that it was apart from production. */
export function environmentOf(kind: string, { task_id, result }: EndedTask) {
  const { environment, isolation } = result;
  return { kind, run_id: task_id, environment: environment ?? null, isolation: isolation ?? null };
}

/** A run of the conformance catalogue, which never discharges Article 6. */
export function conformanceOf(task: EndedTask, current: Version | undefined, now: number) {
  const { result, task_id, version } = task;
  const cases = Array.isArray(result['cases'])
    ? (result['cases'] as Record<string, unknown>[])
    : [];
  return {
    run_id: task_id,
    version,
    ended_at: instant(task.ended_at),
    environment: result['environment'] ?? null,
    discharges_art6: false,
    seed: result['seed'] ?? null,
    evidence_hash: result['evidence_hash'] ?? null,
    stale: isStale(task, current, now),
    counts: result['counts'] ?? null,
    not_passed: cases
      .filter(({ status }) => status !== 'pass')
      .map(({ id, status, reason }) => ({ id, status, reason: reason ?? null })),
  };
}

/** A stress test. */
export function stressOf(task: EndedTask, current: Version | undefined, now: number) {
  const { result, task_id, version } = task;
  const of = (name: string): unknown => result[name] ?? null;
  return {
    run_id: task_id,
    version,
    ended_at: instant(task.ended_at),
    scope: of('scope'),
    basis: of('basis'),
    coverage_days: of('coverage_days'),
    peaks: of('peaks'),
    targets: of('targets'),
    passes: of('passes'),
    verdict: of('verdict'),
    reasons: of('reasons'),
    assumption: of('assumption'),
    stale: isStale(task, current, now),
  };
}
