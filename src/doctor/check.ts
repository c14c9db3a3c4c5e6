import { isSystemError, ServiceError } from '../base/errors.ts';

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
  | 'tokens';

export type CheckStatus = 'ok' | 'warn' | 'fail' | 'skip';

/** What a check found. */
export interface Finding {
  readonly status: CheckStatus;
  /** What is so, for a person, in one line without a full stop. */
  readonly summary: string;
  /** What the summary was made of, for programs and for whoever has to help. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  /** What to do about it, as an imperative sentence. */
  readonly remedy?: string;
  /** Of what is skipped: the check that found why. */
  readonly because?: CheckCode;
}

/** One thing that is looked at. */
export interface Check<Subject> {
  readonly code: CheckCode;
  /** Without these being ok, or a warning, there is nothing to look at. */
  readonly needs?: readonly CheckCode[];
  /** Where one of these fails, it is the cause of what this finds wrong. */
  readonly blames?: readonly CheckCode[];
  /** @throws ServiceError, or the error of the system: as good as a finding that fails. */
  readonly look: (subject: Subject) => Finding | Promise<Finding>;
}

/** A finding as it is told. */
export interface CheckResult {
  readonly code: CheckCode;
  readonly status: CheckStatus;
  readonly summary: string;
  readonly depends_on: readonly CheckCode[];
  /** Of what is skipped because of another check: the one that found the root of it. */
  readonly because: CheckCode | null;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly remedy: string | null;
}

/**
 * Makes all checks at once, each as soon as those it depends on are made. One cause is told once:
 * what follows from it is skipped.
 *
 * @param checks in an order in which each comes after those it depends on, which is that of the results.
 */
export async function makeChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<readonly CheckResult[]> {
  const made = new Map<CheckCode, Promise<CheckResult>>();
  const all = (codes: readonly CheckCode[]): Promise<CheckResult[]> =>
    Promise.all(codes.map((code) => made.get(code)!));
  const rootsOf = async (codes: readonly CheckCode[]): Promise<CheckResult[]> =>
    all((await all(codes)).map(({ code, because }) => because ?? code));
  const make = async (check: Check<Subject>): Promise<CheckResult> => {
    const { code, needs = [], blames = [] } = check;
    const lacking = (await all(needs)).find(({ status }) => status === 'fail' || status === 'skip');
    const [above] = lacking === undefined ? [] : await rootsOf([lacking.code]);
    const finding = above === undefined ? await look(check, subject) : notLookedAt(above);
    const isWrong = finding.status === 'fail' || finding.status === 'warn';
    const roots = isWrong ? await rootsOf(blames) : [];
    const cause = roots.find((root) => root.status === 'fail');
    const { summary: what, evidence } = finding;
    const told = cause ? { ...effectOf(cause.code, what), evidence } : finding;
    const { status, summary, because = null, remedy = null } = told;
    const depends_on = [...needs, ...blames];
    return { code, status, summary, depends_on, because, evidence: evidence ?? {}, remedy };
  };
  for (const check of checks) made.set(check.code, make(check));
  return Promise.all(made.values());
}

async function look<Subject>(check: Check<Subject>, subject: Subject): Promise<Finding> {
  try {
    return await check.look(subject);
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

function notLookedAt({ code, status }: CheckResult): Finding {
  const why = `${code} ${status === 'skip' ? 'was skipped' : 'failed'}`;
  return { status: 'skip', summary: `not looked at, since ${why}`, because: code };
}

/** Of what another check has found. */
export function effectOf(cause: CheckCode, what: string): Finding {
  return { status: 'skip', summary: `${what}; the cause is what ${cause} found`, because: cause };
}

/** What all of it comes to. */
export function worstOf(results: readonly CheckResult[]): 'ok' | 'warn' | 'fail' {
  const statuses = new Set(results.map(({ status }) => status));
  return statuses.has('fail') ? 'fail' : statuses.has('warn') ? 'warn' : 'ok';
}
