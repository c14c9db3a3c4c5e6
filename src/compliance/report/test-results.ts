/** Conformance and stress tests of a bot, as the report lists them. */
import type { Db } from '../../storage/tables.ts';
import type { Staleness } from '../stress/staleness.ts';
import type { TestKind } from '../tests/result.ts';
import { formatInstant } from './period.ts';

const MOST_TESTS = 5;

/** Lists the newest tests of a kind that succeeded before a time (ms since epoch). */
export async function listEndedTests(db: Db, bot_id: string, kind: TestKind, before: number) {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'version', 'ended_at', 'result'])
    .where('bot_id', '=', bot_id)
    .where('kind', '=', kind)
    .where('status', '=', 'success')
    .where('ended_at', '<', before)
    .orderBy('task_id', 'desc')
    .limit(MOST_TESTS)
    .execute();
  return rows.map(({ task_id, version, ended_at, result }) => ({
    kind,
    run_id: task_id,
    version,
    ended_at: ended_at!,
    result: JSON.parse(result!) as Readonly<Record<string, unknown>>,
  }));
}

export type EndedTest = Awaited<ReturnType<typeof listEndedTests>>[number] & {
  readonly staleness: Staleness;
};

/** Describes where a test ran, with the proof that it was isolated from production. */
export function describeEnvironment({ kind, run_id, result }: EndedTest) {
  return { kind, run_id, ...pick(result, 'environment', 'isolation') };
}

/** Summarizes a conformance test, which never discharges Article 6. */
export function summarizeConformance({ result, staleness, ...test }: EndedTest) {
  const cases = (result['cases'] ?? []) as readonly {
    readonly id: string;
    readonly status: string;
    readonly reason?: string | null;
  }[];
  return {
    run_id: test.run_id,
    version: test.version,
    ended_at: formatInstant(test.ended_at),
    ...pick(result, 'environment'),
    discharges_art6: false,
    ...pick(result, 'seed', 'evidence_hash'),
    stale: staleness.stale,
    stale_reasons: staleness.reasons,
    ...pick(result, 'counts'),
    passed: cases.filter(({ status }) => status === 'pass').map(({ id }) => id),
    not_passed: cases
      .filter(({ status }) => status !== 'pass')
      .map(({ id, status, reason = null }) => ({ id, status, reason })),
  };
}

export type ConformanceSummary = ReturnType<typeof summarizeConformance>;

export function summarizeStress({ result, staleness, ...test }: EndedTest) {
  return {
    run_id: test.run_id,
    version: test.version,
    ended_at: formatInstant(test.ended_at),
    ...pick(result, 'scope', 'coverage', 'multiplier', 'house_numbers', 'basis', 'coverage_days'),
    ...pick(result, 'peaks', 'targets', 'passes', 'verdict', 'reasons', 'not_judged', 'assumption'),
    stale: staleness.stale,
    stale_reasons: staleness.reasons,
  };
}

/** Copies fields of a stored result; null for those that an older result does not have. */
function pick<N extends string>(result: EndedTest['result'], ...names: readonly N[]) {
  return Object.fromEntries(names.map((name) => [name, result[name] ?? null])) as Record<
    N,
    unknown
  >;
}
