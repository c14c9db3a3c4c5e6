/** Conformance and stress tests of a bot, as the report lists them. */
import type { Db } from '../../storage/tables.ts';
import type { createStalenessCheck } from '../tests/staleness.ts';
import type { TestKind } from '../tests/result.ts';
import { formatInstant } from './period.ts';

const MOST_TESTS = 5;

/** Lists the newest tests of a kind that succeeded before a time (ms since epoch). */
export async function listTests(
  db: Db,
  bot_id: string,
  kind: TestKind,
  before: number,
  checkStaleness: ReturnType<typeof createStalenessCheck>,
) {
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
  const tests = [];
  for (const { task_id: run_id, version, ...row } of rows) {
    const ended_at = row.ended_at!;
    const result = JSON.parse(row.result!) as Readonly<Record<string, unknown>>;
    const { stale, reasons: stale_reasons } = await checkStaleness({ ended_at, result });
    const facts = { run_id, version, ended_at: formatInstant(ended_at) };
    tests.push({ kind, facts, result, staleness: { stale, stale_reasons } });
  }
  return tests;
}

type Test = Awaited<ReturnType<typeof listTests>>[number];

/** Describes where a test ran, with the proof that it was isolated from production. */
export function describeEnvironment({ kind, facts: { run_id }, result }: Test) {
  return { kind, run_id, ...pick(result, 'environment', 'isolation') };
}

/** Summarizes a conformance test, which never discharges Article 6. */
export function summarizeConformance({ facts, result, staleness }: Test) {
  const cases = (result['cases'] ?? []) as readonly {
    readonly id: string;
    readonly status: string;
    readonly reason?: string | null;
  }[];
  return {
    ...facts,
    ...pick(result, 'environment'),
    discharges_art6: false,
    ...pick(result, 'seed', 'evidence_hash'),
    ...staleness,
    ...pick(result, 'counts'),
    passed: cases.filter(({ status }) => status === 'pass').map(({ id }) => id),
    not_passed: cases
      .filter(({ status }) => status !== 'pass')
      .map(({ id, status, reason = null }) => ({ id, status, reason })),
  };
}

export type ConformanceSummary = ReturnType<typeof summarizeConformance>;

export function summarizeStress({ facts, result, staleness }: Test) {
  return {
    ...facts,
    ...pick(result, 'scope', 'coverage', 'multiplier', 'house_numbers', 'basis', 'coverage_days'),
    ...pick(result, 'peaks', 'targets', 'passes', 'verdict', 'reasons', 'not_judged', 'assumption'),
    ...staleness,
  };
}

/** Copies fields of a stored result; null for those that an older result does not have. */
function pick<N extends string>(result: Test['result'], ...names: readonly N[]) {
  const values = names.map((name) => [name, result[name] ?? null]);
  return Object.fromEntries(values) as Record<N, unknown>;
}
