import type { CustomersTable, Db } from '../storage/tables.ts';
import { appendAudit, detailsOf, type Actor } from './audit.ts';
import { idProblems, refuseInvalid, textProblems } from './request-problems.ts';
import type { Identity } from './context.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import { findOrThrow, newId, refuseTaken } from './registry.ts';

export type Customer = Readonly<CustomersTable>;

export interface NewCustomer {
  readonly customer_id?: string | undefined;
  readonly name: string;
}

/** @throws ServiceError `invalid_request`, `conflict` */
export async function createCustomer(
  { storage, clock }: Identity,
  actor: Actor,
  { customer_id, name }: NewCustomer,
): Promise<Customer> {
  refuseInvalid([...idProblems('/customer_id', customer_id), ...textProblems('/name', name)]);
  return storage.write(async (tx) => {
    const now = clock();
    const id = customer_id ?? newId(now);
    refuseTaken('customer', id, await findCustomer(tx, id));
    const customer: Customer = { customer_id: id, name, created_at: now };
    await appendAudit(tx, now, {
      actor,
      action: 'admin.identity.customer.create',
      target: `customer:${id}`,
      details: detailsOf(customer),
    });
    await tx.insertInto('customers').values(customer).execute();
    return customer;
  });
}

export async function getCustomer(db: Db, id: string): Promise<Customer> {
  return findOrThrow('customer', id, () => findCustomer(db, id));
}

async function findCustomer(db: Db, id: string): Promise<Customer | undefined> {
  return db.selectFrom('customers').selectAll().where('customer_id', '=', id).executeTakeFirst();
}

export async function listCustomers(db: Db, request: PageRequest): Promise<Page<Customer>> {
  const query = db.selectFrom('customers').selectAll();
  return readRowsPage(['customers'], request, query, 'customer_id');
}
