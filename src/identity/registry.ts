/**
 * Who may get leases, and which: a customer has contracts, each under a plan, and runs installations
 * under them. Here is what `customers.ts`, `plans.ts`, `contracts.ts` and `installations.ts` share.
 * Whoever creates something may give its id, which it keeps; nothing is ever deleted; each creation
 * and change is in the audit log. Times are milliseconds since the Unix epoch.
 */
import { isDeepStrictEqual } from 'node:util';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError, type Problem } from '../base/errors.ts';
import { isId, MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { entitlementProblems, problemUnless, secondsProblems } from './checks.ts';
import { TTL_MIN_SECONDS, type LeasePolicy } from './context.ts';

const LIST_COMMANDS = {
  customer: 'identity customers list',
  plan: 'identity plans list',
  contract: 'identity contracts list',
  installation: 'identity deployments list',
} as const;

type Noun = keyof typeof LIST_COMMANDS;

/** What plans say about leases, and contracts beyond or instead of that. */
export interface Conditions {
  /** Each once, in the order of their letters. */
  readonly entitlements: readonly string[];
  /** Null where it is said elsewhere: for a contract by its plan, for a plan by the server. */
  readonly ttl_seconds: number | null;
  readonly grace_period_seconds: number | null;
}

/** A row of a table as the rest of the code sees it: its list is one. */
export type Parsed<Row> = Readonly<Omit<Row, 'entitlements'>> & Pick<Conditions, 'entitlements'>;

export function parseRow<Row extends { readonly entitlements: string }>(row: Row): Parsed<Row> {
  return { ...row, entitlements: JSON.parse(row.entitlements) as string[] };
}

/** Of a change, where what is absent stays as it is; or of something new. */
export type Partly<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

export function conditionProblems(policy: LeasePolicy, conditions: Partly<Conditions>): Problem[] {
  const { entitlements = [], ttl_seconds: ttl, grace_period_seconds: grace } = conditions;
  const { ttl_max_seconds: maxTtl, grace_period_max_seconds: maxGrace } = policy;
  return [
    ...entitlementProblems('/entitlements', entitlements),
    ...secondsProblems('/ttl_seconds', ttl ?? TTL_MIN_SECONDS, TTL_MIN_SECONDS, maxTtl),
    ...secondsProblems('/grace_period_seconds', grace ?? 0, 0, maxGrace),
  ];
}

/** Conditions of something new, as they are kept. */
export function newConditions(conditions: Partly<Conditions>): Conditions {
  const { entitlements = [], ttl_seconds = null, grace_period_seconds = null } = conditions;
  return { entitlements: entitlementSet(entitlements), ttl_seconds, grace_period_seconds };
}

export function entitlementSet(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

/** A lease must hold those of plan and contract together. */
export function entitlementCountProblems(
  plan: readonly string[],
  contract: readonly string[],
  contractId: string,
): Problem[] {
  const count = entitlementSet([...plan, ...contract]).length;
  return problemUnless(
    count <= MAX_ENTITLEMENTS,
    '/entitlements',
    `with its plan the contract ${contractId} has ${count} entitlements, of at most ${MAX_ENTITLEMENTS}`,
  );
}

export function newId(now: number): string {
  return uuidv7({ msecs: now });
}

/**
 * What `find` finds.
 * @throws ServiceError `not_found`
 */
export async function found<T>(
  noun: Noun,
  id: string,
  find: () => Promise<T | undefined>,
): Promise<T> {
  // PostgreSQL takes no text with a NUL, so what is no id is not asked for.
  const row = isId(id) ? await find() : undefined;
  if (row !== undefined) return row;
  throw new ServiceError('not_found', `there is no ${noun} ${JSON.stringify(id)}`, {
    remedy: `See \`service-local ${LIST_COMMANDS[noun]}\`, or create it first.`,
  });
}

/** @throws ServiceError `conflict` when there is one already. */
export function refuseTaken(noun: Noun, id: string, existing: object | undefined): void {
  if (existing === undefined) return;
  throw new ServiceError('conflict', `the ${noun} ${id} already exists`, {
    reason: 'id_taken',
    remedy: 'Give another id, or none to get a new one.',
  });
}

/** What of `changes` differs from `before`, as it was and as it will be; nothing when nothing does. */
export function difference<T extends object>(
  before: T,
  changes: Partly<T>,
): { readonly before: Partial<T>; readonly after: Partial<T> } | undefined {
  const names = (Object.keys(changes) as (keyof T)[]).filter(
    (name) => changes[name] !== undefined && !isDeepStrictEqual(changes[name], before[name]),
  );
  if (names.length === 0) return undefined;
  const pick = (from: Partly<T>): Partial<T> =>
    Object.fromEntries(names.map((name) => [name, from[name]])) as Partial<T>;
  return { before: pick(before), after: pick(changes) };
}
