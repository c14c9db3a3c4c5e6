import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';

/** The codes are stable: scripts and monitoring go by them. */
export type CheckCode =
  | 'runtime'
  | 'home'
  | 'disk'
  | 'watcher'
  | 'catalogue'
  | 'lease_file'
  | 'keyset'
  | 'trust'
  | 'lease_signature'
  | 'lease_use'
  | 'clock'
  | 'lease_state'
  | 'entitlements'
  | 'device_key'
  | 'server'
  | 'renewal'
  | 'daemon'
  | 'schedule'
  | 'service_unit'
  | 'versions'
  | 'tokens'
  | 'database_size'
  | 'notifications';

export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip';

export interface Finding {
  readonly status: CheckStatus;
  /** One line for people, without a period. */
  readonly summary: string;
  /** Data behind the summary, for programs and support. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  /** An imperative sentence. */
  readonly remedy?: string;
  /** Check that found the cause, if this one is skipped. */
  readonly because?: CheckCode;
}

export interface Check<Subject> {
  readonly code: CheckCode;
  /** This check is skipped if one of these fails or is skipped. */
  readonly needs?: readonly CheckCode[];
  /** If one of these fails, it counts as the cause of what this check finds. */
  readonly blames?: readonly CheckCode[];
  /** @throws ServiceError or a system error, which count as findings that fail. */
  readonly run: (subject: Subject) => Finding | Promise<Finding>;
}

/** Finding of a check with its place among the other checks. */
export interface CheckResult {
  readonly code: CheckCode;
  readonly status: CheckStatus;
  readonly summary: string;
  readonly depends_on: readonly CheckCode[];
  /** Check that found the root cause, if this one is skipped for it. */
  readonly because: CheckCode | null;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly remedy: string | null;
}

/**
 * Runs all checks concurrently, each once the checks it depends on are finished. Each cause is
 * reported once: checks that it affects are skipped.
 *
 * @param checks in an order in which each follows those it depends on. Results have the same order.
 */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<readonly CheckResult[]> {
  const results = new Map<CheckCode, Promise<CheckResult>>();
  const all = (codes: readonly CheckCode[]): Promise<CheckResult[]> =>
    Promise.all(codes.map((code) => results.get(code)!));
  const rootsOf = async (codes: readonly CheckCode[]): Promise<CheckResult[]> =>
    all((await all(codes)).map(({ code, because }) => because ?? code));
  const runOne = async (check: Check<Subject>): Promise<CheckResult> => {
    const { code, needs = [], blames = [] } = check;
    const missing = (await all(needs)).find(({ status }) => status === 'fail' || status === 'skip');
    const [above] = missing === undefined ? [] : await rootsOf([missing.code]);
    const finding = above === undefined ? await findingOf(check, subject) : skippedBecause(above);
    const isWrong = finding.status === 'fail' || finding.status === 'warn';
    const roots = isWrong ? await rootsOf(blames) : [];
    const cause = roots.find((root) => root.status === 'fail');
    const { summary: what, evidence } = finding;
    const reported = cause ? { ...effectOf(cause.code, what), evidence } : finding;
    const { status, summary, because = null, remedy = null } = reported;
    const depends_on = [...needs, ...blames];
    return { code, status, summary, depends_on, because, evidence: evidence ?? {}, remedy };
  };
  for (const check of checks) results.set(check.code, runOne(check));
  return Promise.all(results.values());
}

async function findingOf<Subject>(check: Check<Subject>, subject: Subject): Promise<Finding> {
  try {
    return await check.run(subject);
  } catch (error) {
    if (isSystemError(error)) {
      return { status: 'fail', summary: error.message, evidence: { code: error.code } };
    }
    if (!(error instanceof ServiceError)) throw error;
    const { code, reason, message: summary, remedy } = error;
    const evidence = { code, ...(reason !== undefined && { reason }) };
    return { status: 'fail', summary, evidence, ...(remedy !== undefined && { remedy }) };
  }
}

function skippedBecause({ code, status }: CheckResult): Finding {
  const why = `${code} ${status === 'skip' ? 'was skipped' : 'failed'}`;
  return { status: 'skip', summary: `not checked, because ${why}`, because: code };
}

/** Finding that another check has caused. */
export function effectOf(cause: CheckCode, what: string): Finding {
  return {
    status: 'skip',
    summary: `${what}; see the check ${cause}, which found the cause`,
    because: cause,
  };
}

export function worstStatus(results: readonly CheckResult[]): 'ok' | 'warn' | 'fail' {
  const statuses = new Set(results.map(({ status }) => status));
  return statuses.has('fail') ? 'fail' : statuses.has('warn') ? 'warn' : 'ok';
}
