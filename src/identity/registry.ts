/**
 * Shared code of the registry: `customers.ts`, `plans.ts`, `contracts.ts` and `installations.ts`. A
 * customer has contracts, each with a plan, and runs installations under them. The caller may choose
 * the id of a new record. Records are never deleted, and each creation and change is in the audit log.
 * Times are milliseconds since the Unix epoch.
 */
import { isDeepStrictEqual } from 'node:util';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError, type Problem } from '../base/errors.ts';
import { isId, MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { entitlementProblems, problemUnless, secondsProblems } from './request-problems.ts';
import { TTL_MIN_SECONDS, type LeasePolicy } from './context.ts';

const LIST_COMMANDS = {
  customer: 'identity customers list',
  plan: 'identity plans list',
  contract: 'identity contracts list',
  installation: 'identity deployments list',
} as const;

type Noun = keyof typeof LIST_COMMANDS;

/** Terms of leases, in plans and contracts. A contract adds entitlements and overrides the periods. */
export interface Conditions {
  /** Sorted, without duplicates. */
  readonly entitlements: readonly string[];
  /** Null for the default: of a contract its plan, of a plan the server. */
  readonly ttl_seconds: number | null;
  readonly grace_period_seconds: number | null;
}

/** A row of a table with its JSON list parsed. */
export type Parsed<Row> = Readonly<Omit<Row, 'entitlements'>> & Pick<Conditions, 'entitlements'>;

export function parseRow<Row extends { readonly entitlements: string }>(row: Row): Parsed<Row> {
  return { ...row, entitlements: JSON.parse(row.entitlements) as string[] };
}

/** Absent fields stay unchanged or, in a new record, take their defaults. */
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

export function newConditions(conditions: Partly<Conditions>): Conditions {
  const { entitlements = [], ttl_seconds = null, grace_period_seconds = null } = conditions;
  return { entitlements: entitlementSet(entitlements), ttl_seconds, grace_period_seconds };
}

export function entitlementSet(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

/** Checks the entitlements of plan and contract together. */
export function entitlementCountProblems(
  plan: readonly string[],
  contract: readonly string[],
  contractId: string,
): Problem[] {
  const count = entitlementSet([...plan, ...contract]).length;
  return problemUnless(
    count <= MAX_ENTITLEMENTS,
    '/entitlements',
    `the contract ${contractId} and its plan have ${count} entitlements together; at most ${MAX_ENTITLEMENTS} are allowed`,
  );
}

export function newId(now: number): string {
  return uuidv7({ msecs: now });
}

/** @throws ServiceError `not_found` if `find` returns undefined. */
export async function findOrThrow<T>(
  noun: Noun,
  id: string,
  find: () => Promise<T | undefined>,
): Promise<T> {
  // Invalid ids are not queried: PostgreSQL rejects texts that contain NUL.
  const row = isId(id) ? await find() : undefined;
  if (row !== undefined) return row;
  throw new ServiceError('not_found', `there is no ${noun} ${JSON.stringify(id)}`, {
    remedy: `See \`service-local ${LIST_COMMANDS[noun]}\`, or create it first.`,
  });
}

/** @throws ServiceError `conflict` if `existing` is defined. */
export function refuseTaken(noun: Noun, id: string, existing: object | undefined): void {
  if (existing === undefined) return;
  throw new ServiceError('conflict', `the ${noun} ${id} already exists`, {
    reason: 'id_taken',
    remedy: 'Choose another id, or omit it to get a generated one.',
  });
}

/** Returns the fields that `changes` would change, with their old and new values, if there are any. */
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
