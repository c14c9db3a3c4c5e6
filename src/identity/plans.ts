import type { Binding } from '../lease/claims.ts';
import type { Db, PlansTable } from '../storage/tables.ts';
import { appendAudit, detailsOf, type Actor } from './audit.ts';
import { productProblems } from './binding.ts';
import { idProblems, refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import {
  authorizeGain,
  listGains,
  grantOfPlan,
  registrarActor,
  registrarDetails,
  type Registrar,
} from './grants.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
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

export type Plan = Parsed<PlansTable>;

export interface NewPlan extends Partly<Conditions> {
  readonly plan_id?: string | undefined;
  readonly name: string;
  /** The product in the server's settings if null or absent. */
  readonly product?: string | null | undefined;
  /** Default: `none`. */
  readonly binding?: Binding | undefined;
}

export type PlanChanges = Partly<Pick<Plan, 'name' | 'product' | 'binding' | keyof Conditions>>;

/**
 * Needs no step-up, because a plan grants nothing until a contract refers to it.
 * @throws ServiceError `invalid_request`, `conflict`
 */
export async function createPlan(
  { storage, clock, policy }: Identity,
  actor: Actor,
  { plan_id, name, product = null, binding = 'none', ...conditions }: NewPlan,
): Promise<Plan> {
  refuseInvalid([
    ...idProblems('/plan_id', plan_id),
    ...textProblems('/name', name),
    ...productProblems(product),
    ...conditionProblems(policy, conditions),
  ]);
  return storage.write(async (tx) => {
    const now = clock();
    const id = plan_id ?? newId(now);
    refuseTaken('plan', id, await findPlan(tx, id));
    const plan: Plan = {
      plan_id: id,
      name,
      product,
      binding,
      ...newConditions(conditions),
      created_at: now,
    };
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.plan.create',
      target: `plan:${id}`,
      details: detailsOf(plan),
    });
    await tx.insertInto('plans').values(rowOf(plan)).execute();
    return plan;
  });
}

/**
 * Affects the next lease of each installation with the plan; issued leases do not change.
 * @param by needs a step-up for `plan:ID` if the change grants more.
 * @throws ServiceError `invalid_request`, `not_found`, `step_up_required`
 */
export async function updatePlan(
  { storage, clock, policy }: Identity,
  by: Registrar,
  id: string,
  { entitlements, ...others }: PlanChanges,
): Promise<Plan> {
  refuseInvalid([
    ...(others.name === undefined ? [] : textProblems('/name', others.name)),
    ...productProblems(others.product),
    ...conditionProblems(policy, { entitlements, ...others }),
  ]);
  return storage.write(async (tx) => {
    const before = await getPlan(tx, id);
    const change = difference(before, {
      ...others,
      entitlements: entitlements && entitlementSet(entitlements),
    });
    if (change === undefined) return before;
    const plan = { ...before, ...change.after };
    if (change.after.entitlements !== undefined) await refuseTooMany(tx, plan);
    const now = clock();
    const gained = listGains(grantOfPlan(policy, before), grantOfPlan(policy, plan));
    await authorizeGain(tx, now, by, `plan:${id}`, gained);
    await appendAudit(tx, now, {
      actor: registrarActor(by),
      action: 'admin.identity.plan.update',
      target: `plan:${id}`,
      details: {
        before: detailsOf(change.before),
        after: detailsOf(change.after),
        ...registrarDetails(by),
      },
    });
    await tx.updateTable('plans').set(rowOf(plan)).where('plan_id', '=', id).execute();
    return plan;
  });
}

/** Plan and contract together must not exceed the limit of a lease. */
async function refuseTooMany(tx: Db, { plan_id, entitlements }: Plan): Promise<void> {
  const contracts = await tx
    .selectFrom('contracts')
    .select(['contract_id', 'entitlements'])
    .where('plan_id', '=', plan_id)
    .orderBy('contract_id')
    .execute();
  for (const contract of contracts) {
    const { contract_id, entitlements: own } = parseRow(contract);
    refuseInvalid(entitlementCountProblems(entitlements, own, contract_id));
  }
}

export async function getPlan(db: Db, id: string): Promise<Plan> {
  return findOrThrow('plan', id, () => findPlan(db, id));
}

async function findPlan(db: Db, id: string): Promise<Plan | undefined> {
  const row = await db.selectFrom('plans').selectAll().where('plan_id', '=', id).executeTakeFirst();
  return row && parseRow(row);
}

export async function listPlans(db: Db, request: PageRequest): Promise<Page<Plan>> {
  const query = db.selectFrom('plans').selectAll();
  const page = await readRowsPage(['plans'], request, query, 'plan_id');
  return { ...page, items: page.items.map(parseRow) };
}

function rowOf(plan: Plan): PlansTable {
  return { ...plan, entitlements: JSON.stringify(plan.entitlements) };
}
