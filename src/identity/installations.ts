import type { Db, InstallationsTable } from '../storage/tables.ts';
import { appendAudit, detailsOf } from './audit.ts';
import { idProblems, refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import { getContract } from './contracts.ts';
import { authorizeGain, registrarActor, registrarDetails, type Registrar } from './grants.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import { findOrThrow, newId, refuseTaken } from './registry.ts';

export type Installation = Readonly<InstallationsTable>;

export interface NewInstallation {
  readonly deployment_id?: string | undefined;
  readonly contract_id: string;
  readonly name: string;
}

/** @throws ServiceError `invalid_request`, `conflict`; `not_found` for the contract. */
export async function createInstallation(
  { storage, clock }: Identity,
  by: Registrar,
  { deployment_id, contract_id, name }: NewInstallation,
): Promise<Installation> {
  refuseInvalid([...idProblems('/deployment_id', deployment_id), ...textProblems('/name', name)]);
  return storage.write(async (tx) => {
    const now = clock();
    const id = deployment_id ?? newId(now);
    refuseTaken('installation', id, await findInstallation(tx, id));
    await getContract(tx, contract_id);
    const created = { deployment_id: id, contract_id, name, created_at: now };
    await appendAudit(tx, now, {
      actor: registrarActor(by),
      action: 'admin.identity.deployment.create',
      target: `deployment:${id}`,
      details: { ...detailsOf(created), ...registrarDetails(by) },
    });
    const installation: Installation = { ...created, ...NOT_REVOKED };
    await tx.insertInto('deployments').values(installation).execute();
    return installation;
  });
}

const NOT_REVOKED = { revoked_at: null, revoked_by: null, revoked_reason: null } as const;

/**
 * Reverses the revocation of an installation and its leases, so that its devices can renew again.
 * Leases that were revoked individually stay revoked.
 * @param by needs a step-up for `deployment:ID`.
 * @throws ServiceError `not_found`, `step_up_required`
 */
export async function reinstateInstallation(
  { storage, clock }: Identity,
  by: Registrar,
  id: string,
): Promise<Installation> {
  return storage.write(async (tx) => {
    const installation = await getInstallation(tx, id);
    const { revoked_at, revoked_by, revoked_reason } = installation;
    if (revoked_at === null) return installation;
    const now = clock();
    await authorizeGain(tx, now, by, `deployment:${id}`, ['reverses a revocation']);
    await appendAudit(tx, now, {
      actor: registrarActor(by),
      action: 'admin.identity.deployment.reinstate',
      target: `deployment:${id}`,
      details: {
        before: detailsOf({ revoked_at, revoked_by, revoked_reason }),
        ...registrarDetails(by),
      },
    });
    await tx.updateTable('deployments').set(NOT_REVOKED).where('deployment_id', '=', id).execute();
    return { ...installation, ...NOT_REVOKED };
  });
}

export async function getInstallation(db: Db, id: string): Promise<Installation> {
  return findOrThrow('installation', id, () => findInstallation(db, id));
}

async function findInstallation(db: Db, id: string): Promise<Installation | undefined> {
  return db
    .selectFrom('deployments')
    .selectAll()
    .where('deployment_id', '=', id)
    .executeTakeFirst();
}

/** @throws ServiceError `not_found` for the contract. */
export async function listInstallations(
  db: Db,
  {
    contract_id,
    within,
  }: { readonly contract_id?: string | undefined; readonly within?: Narrowing | undefined },
  request: PageRequest,
): Promise<Page<Installation>> {
  if (contract_id !== undefined) await getContract(db, contract_id);
  const query = db
    .selectFrom('deployments')
    .selectAll()
    .$if(contract_id !== undefined, (of) => of.where('contract_id', '=', contract_id!))
    .$if(within !== undefined, (of) => of.where(isWithin(within!)));
  const list = ['deployments', contract_id, narrowingKey(within)] as const;
  return readRowsPage(list, request, query, 'deployment_id');
}
