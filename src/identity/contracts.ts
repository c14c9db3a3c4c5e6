import type { Problem } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import type { ContractsTable, Db } from '../storage/tables.ts';
import { appendAudit, detailsOf } from './audit.ts';
import { idProblems, problemUnless, refuseInvalid } from './request-problems.ts';
import type { Identity } from './context.ts';
import { getCustomer } from './customers.ts';
import {
  authorizeGain,
  listGains,
  grantOfContract,
  registrarActor,
  registrarDetails,
  type Registrar,
} from './grants.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import { getPlan, type Plan } from './plans.ts';
import {
  difference,
  entitlementCountProblems,
  entitlementSet,
  findOrThrow,
  newId,
  newConditions,
  parseRow,
  refuseTaken,
  conditionProblems,
  type Parsed,
  type Partly,
  type Conditions,
} from './registry.ts';

export type Contract = Parsed<ContractsTable>;

export interface NewContract extends Partly<Conditions> {
  readonly contract_id?: string | undefined;
  readonly customer_id: string;
  readonly plan_id: string;
  /** Milliseconds since the Unix epoch, in whole seconds. */
  readonly ends_at: number;
}

export type ContractChanges = Partly<Pick<Contract, 'plan_id' | 'ends_at' | keyof Conditions>>;

/** Earlier ends are considered typing errors. */
const EARLIEST_END = Date.UTC(2000, 0, 1);
/** The last second that RFC 3339 can represent. */
const LATEST_END = Date.UTC(9999, 11, 31, 23, 59, 59);

/**
 * @param by needs a step-up for `customer:ID`.
 * @throws ServiceError `invalid_request`, `conflict`; `not_found` for the customer or the plan;
 * `step_up_required`.
 */
export async function createContract(
  { storage, clock, policy }: Identity,
  by: Registrar,
  { contract_id, customer_id, plan_id, ends_at, ...conditions }: NewContract,
): Promise<Contract> {
  refuseInvalid([
    ...idProblems('/contract_id', contract_id),
    ...endProblems(ends_at, clock()),
    ...conditionProblems(policy, conditions),
  ]);
  return storage.write(async (tx) => {
    const now = clock();
    const id = contract_id ?? newId(now);
    refuseTaken('contract', id, await findContract(tx, id));
    await getCustomer(tx, customer_id);
    const contract: Contract = {
      contract_id: id,
      customer_id,
      plan_id,
      ...newConditions(conditions),
      ends_at,
      created_at: now,
    };
    const plan = await getPlan(tx, plan_id);
    refuseTooMany(contract, plan);
    const gained = listGains(undefined, grantOfContract(policy, contract, plan));
    await authorizeGain(tx, now, by, `customer:${customer_id}`, gained);
    await appendAudit(tx, now, {
      actor: registrarActor(by),
      action: 'admin.identity.contract.create',
      target: `contract:${id}`,
      details: { ...detailsOf(contract), ...registrarDetails(by) },
    });
    await tx.insertInto('contracts').values(rowOf(contract)).execute();
    return contract;
  });
}

/**
 * Affects the next lease of each installation under the contract; issued leases do not change. An end
 * in the past ends the contract now.
 *
 * @param by needs a step-up for `contract:ID` if the change grants more.
 * @throws ServiceError `invalid_request`; `not_found` for the contract or the plan;
 * `step_up_required`.
 */
export async function updateContract(
  { storage, clock, policy }: Identity,
  by: Registrar,
  id: string,
  { entitlements, ...others }: ContractChanges,
): Promise<Contract> {
  refuseInvalid([
    ...endProblems(others.ends_at ?? LATEST_END, EARLIEST_END),
    ...conditionProblems(policy, { entitlements, ...others }),
  ]);
  return storage.write(async (tx) => {
    const before = await getContract(tx, id);
    const change = difference(before, {
      ...others,
      entitlements: entitlements && entitlementSet(entitlements),
    });
    if (change === undefined) return before;
    const contract = { ...before, ...change.after };
    const plan = await getPlan(tx, contract.plan_id);
    refuseTooMany(contract, plan);
    const now = clock();
    const had = grantOfContract(policy, before, await getPlan(tx, before.plan_id));
    const gained = listGains(had, grantOfContract(policy, contract, plan));
    await authorizeGain(tx, now, by, `contract:${id}`, gained);
    await appendAudit(tx, now, {
      actor: registrarActor(by),
      action: 'admin.identity.contract.update',
      target: `contract:${id}`,
      details: {
        before: detailsOf(change.before),
        after: detailsOf(change.after),
        ...registrarDetails(by),
      },
    });
    await tx.updateTable('contracts').set(rowOf(contract)).where('contract_id', '=', id).execute();
    return contract;
  });
}

function endProblems(endsAt: number, after: number): Problem[] {
  return problemUnless(
    Number.isInteger(endsAt / 1000) && endsAt > after && endsAt <= LATEST_END,
    '/ends_at',
    `must be a whole second after ${formatTime(after)}`,
  );
}

function refuseTooMany({ contract_id, entitlements }: Contract, plan: Plan): void {
  refuseInvalid(entitlementCountProblems(plan.entitlements, entitlements, contract_id));
}

export async function getContract(db: Db, id: string): Promise<Contract> {
  return findOrThrow('contract', id, () => findContract(db, id));
}

async function findContract(db: Db, id: string): Promise<Contract | undefined> {
  const row = await db
    .selectFrom('contracts')
    .selectAll()
    .where('contract_id', '=', id)
    .executeTakeFirst();
  return row && parseRow(row);
}

/** Time at which the last lease under the contract stops working, ms; null if none works. */
export async function lastLeaseEnd(db: Db, id: string, now: number): Promise<number | null> {
  const { last } = await db
    .selectFrom('deployments')
    .innerJoin('license_leases', 'license_leases.deployment_id', 'deployments.deployment_id')
    .select(({ fn }) => fn.max('grace_ends_at').as('last'))
    .where('deployments.contract_id', '=', id)
    .where('grace_ends_at', '>', now)
    .executeTakeFirstOrThrow();
  return last;
}

/** @throws ServiceError `not_found` for the customer. */
export async function listContracts(
  db: Db,
  {
    customer_id,
    within,
  }: { readonly customer_id?: string | undefined; readonly within?: Narrowing | undefined },
  request: PageRequest,
): Promise<Page<Contract>> {
  if (customer_id !== undefined) await getCustomer(db, customer_id);
  const query = db
    .selectFrom('contracts')
    .selectAll()
    .$if(customer_id !== undefined, (of) => of.where('customer_id', '=', customer_id!))
    .$if(within !== undefined, (of) => of.where(isWithin(within!, 'contract_id')));
  const list = ['contracts', customer_id, narrowingKey(within)] as const;
  const page = await readRowsPage(list, request, query, 'contract_id');
  return { ...page, items: page.items.map(parseRow) };
}

function rowOf(contract: Contract): ContractsTable {
  return { ...contract, entitlements: JSON.stringify(contract.entitlements) };
}
