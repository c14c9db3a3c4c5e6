import { html } from 'hono/html';
import type {
  Contract,
  createContract,
  createCustomer,
  createInstallation,
  createPlan,
  Customer,
  listContracts,
  listCustomers,
  listPlans,
  Plan,
} from '../../api/registry.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Services } from '../services.ts';
import { formatSeconds } from '../../base/seconds.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { licensePath, moment, licenseTabs, relative, parseDuration } from './license-parts.ts';
import { emptyState, field, table } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';
import { confirmationPage, hasFactor, sendWithStepUp, type Confirmation } from './step-up.ts';

const CUSTOMERS = licensePath('customers');

/** Number of entries displayed of each list. */
const LISTED = 100;

/** Registers the page that lists and adds customers, plans, contracts and installations. */
export function addCustomerPages(pages: Pages, services: Services): void {
  const { identity } = services;
  const again = (visit: Visit, form?: Form): Promise<Content> =>
    show(visit, form, identity.clock());

  pages.get(CUSTOMERS, (visit) => again(visit));

  pages.post(
    CUSTOMERS,
    async ({ call }, form) => {
      const body = { customer_id: readId(form, 'customer_id'), name: form.get('customer_name') };
      const request = withKey(form, body);
      const made = await call<typeof createCustomer>('post', '/identity/customers', request);
      return { goTo: CUSTOMERS, message: `The customer ${made.customer_id} is registered.` };
    },
    again,
  );

  pages.post(
    licensePath('plans'),
    async ({ call }, form) => {
      const body = {
        plan_id: readId(form, 'plan_id'),
        name: form.get('plan_name'),
        entitlements: readNames(form, 'plan_entitlements'),
        ttl_seconds: parseDuration(form.get('plan_ttl'), 'leases') ?? null,
        grace_period_seconds: parseDuration(form.get('plan_grace'), 'the grace period') ?? null,
        product: form.get('plan_product') || null,
        binding: readBinding(form),
      };
      const request = withKey(form, body);
      const made = await call<typeof createPlan>('post', '/identity/plans', request);
      return { goTo: CUSTOMERS, message: `The plan ${made.plan_id} is registered.` };
    },
    again,
  );

  pages.post(
    licensePath('contracts'),
    async (visit, form) => {
      const { headers, body } = withKey(form, {
        contract_id: readId(form, 'contract_id'),
        customer_id: form.get('contract_customer'),
        plan_id: form.get('contract_plan'),
        entitlements: readNames(form, 'contract_entitlements'),
        ends_at: parseEnd(form),
      });
      const outcome = await sendWithStepUp(
        visit,
        services,
        contractConfirmation(form),
        form,
        (factor) =>
          visit.call<typeof createContract>('post', '/identity/contracts', {
            headers: { ...headers, ...factor },
            body,
          }),
      );
      if ('ask' in outcome) return outcome.ask;
      const { contract_id } = outcome.sent;
      return { goTo: CUSTOMERS, message: `The contract ${contract_id} is registered.` };
    },
    async (visit, form) =>
      hasFactor(form)
        ? confirmationPage(visit, contractConfirmation(form), form)
        : again(visit, form),
  );

  pages.post(
    licensePath('deployments'),
    async ({ call }, form) => {
      const body = {
        deployment_id: readId(form, 'deployment_id'),
        contract_id: form.get('deployment_contract'),
        name: form.get('deployment_name'),
      };
      const { deployment_id } = await call<typeof createInstallation>(
        'post',
        '/identity/deployments',
        withKey(form, body),
      );
      const message = `The installation ${deployment_id} is registered.`;
      return { goTo: licensePath('deployments', deployment_id), message };
    },
    again,
  );
}

/** Adds the idempotency key of the form, so that a second submission registers nothing. */
function withKey<B>(form: Form, body: B) {
  return { headers: { 'idempotency-key': form.get('key') }, body } as const;
}

/** A contract grants entitlements, so it may need a second factor. */
function contractConfirmation(form: Form): Confirmation {
  const [customer, plan, end] = ['contract_customer', 'contract_plan', 'contract_end'].map((name) =>
    form.get(name),
  );
  return {
    subject: { action: 'identity.license.give', target: `customer:${customer}` },
    title: 'Add a contract',
    what: html`This grants the customer <span class="id">${customer}</span> the entitlements of the
      plan <span class="id">${plan}</span> until ${end}.`,
    fields: [
      'key',
      'contract_id',
      'contract_customer',
      'contract_plan',
      'contract_end',
      'contract_entitlements',
    ],
  };
}

function readId(form: Form, name: string): string | undefined {
  return form.get(name) || undefined;
}

function readNames(form: Form, name: string): string[] {
  return form
    .get(name)
    .split(/[\s,]+/)
    .filter(Boolean);
}

/** @throws ServiceError `invalid_request` */
function parseEnd(form: Form): string {
  const date = form.get('contract_end');
  if (/^\d{4}-\d\d-\d\d$/.test(date) && !Number.isNaN(Date.parse(date))) return `${date}T00:00:00Z`;
  throw new ServiceError('invalid_request', `'${date}' is not a date`, {
    remedy: 'Write it as 2027-01-01.',
  });
}

async function show(
  { call, session }: Visit,
  typed: Form | undefined,
  now: number,
): Promise<Content> {
  const query = { limit: LISTED };
  const [customers, plans, contracts] = await Promise.all([
    call<typeof listCustomers>('get', '/identity/customers', { query }),
    call<typeof listPlans>('get', '/identity/plans', { query }),
    call<typeof listContracts>('get', '/identity/contracts', { query }),
  ]);
  const write = (label: string, name: string, attributes: Attributes = {}, hint?: Child): Html =>
    field(
      label,
      name,
      { autocomplete: 'off', maxlength: 200, ...attributes, value: typed?.get(name) ?? '' },
      hint,
    );
  const newId = (name: string): Html =>
    write('Id', name, { maxlength: 128 }, 'Cannot be changed later. Empty: generated.');
  const pick = (label: string, name: string, ids: readonly string[]): Html =>
    html`${write(label, name, { required: true, list: `${name}-known` })}
      <datalist id="${name}-known">
        ${ids.map((id) => html`<option value="${id}"></option>`)}
      </datalist>`;
  const add = (title: string, action: string, isOpen: boolean, fields: Child): Html =>
    html`<details ${isOpen && html` open`}>
      <summary>${title}</summary>
      <form method="post" action="${action}">
        ${csrfField(session)}
        <input type="hidden" name="key" value="${crypto.randomUUID()}" />
        ${fields}<button class="main">${title}</button>
      </form>
    </details>`;
  const isTyped = (name: string): boolean => (typed?.get(name) ?? '') !== '';
  return {
    title: 'Customers',
    body: html`${licenseTabs('Customers')}
      <p class="note">
        A customer has contracts, each with a plan, and runs installations under them. Plan and
        contract determine what leases grant and for how long. To change a contract, run
        <code>service-local identity contracts update CONTRACT</code>.
      </p>
      <section aria-labelledby="customers">
        <h2 id="customers">Customers</h2>
        ${listOf(customers, customerTable(customers.items, now), 'customers create --id ID --name NAME')}
        ${add('Add a customer', CUSTOMERS, isTyped('customer_name'), [
          newId('customer_id'),
          write('Name', 'customer_name', { required: true }),
        ])}
      </section>
      <section aria-labelledby="plans">
        <h2 id="plans">Plans</h2>
        ${listOf(plans, planTable(plans.items), 'plans create --id ID --name NAME --entitlement live_trading')}
        ${add('Add a plan', licensePath('plans'), isTyped('plan_name'), [
          newId('plan_id'),
          write('Name', 'plan_name', { required: true }),
          write(
            'Entitlements',
            'plan_entitlements',
            { maxlength: 2000 },
            'Names such as live_trading, separated by spaces.',
          ),
          write(
            'Lease duration',
            'plan_ttl',
            { maxlength: 20 },
            'Such as 7d. Empty: the default of the server.',
          ),
          write(
            'Grace period',
            'plan_grace',
            { maxlength: 20 },
            'Such as 3d. Empty: the default of the server.',
          ),
          write(
            'Product',
            'plan_product',
            { maxlength: 128 },
            'The product that its leases license. Empty: the product in the settings of the server.',
          ),
          bindingField(typed?.get('plan_binding')),
        ])}
      </section>
      <section aria-labelledby="contracts">
        <h2 id="contracts">Contracts</h2>
        ${listOf(contracts, contractTable(contracts.items, now), 'contracts create --customer ID --plan ID --ends-at 2027-01-01T00:00:00Z')}
        ${add('Add a contract', licensePath('contracts'), isTyped('contract_customer'), [
          newId('contract_id'),
          pick(
            'Customer',
            'contract_customer',
            customers.items.map(({ customer_id }) => customer_id),
          ),
          pick(
            'Plan',
            'contract_plan',
            plans.items.map(({ plan_id }) => plan_id),
          ),
          write('Ends (UTC)', 'contract_end', { type: 'date', required: true }),
          write(
            'Additional entitlements',
            'contract_entitlements',
            { maxlength: 2000 },
            'Names such as kb_federation, separated by spaces.',
          ),
        ])}
        ${add('Add an installation', licensePath('deployments'), isTyped('deployment_name'), [
          newId('deployment_id'),
          write('Name', 'deployment_name', { required: true }),
          pick(
            'Contract',
            'deployment_contract',
            contracts.items.map(({ contract_id }) => contract_id),
          ),
        ])}
      </section>`,
  };
}

const BOUND_TO: Readonly<Record<Plan['binding'], string>> = {
  none: 'nothing',
  device: 'the key of the device',
  machine: 'the machine',
};

function bindingField(typed: string | undefined): Html {
  const options = Object.entries(BOUND_TO).map(
    ([binding, name]) =>
      html`<option value="${binding}" ${typed === binding && html` selected`}>${name}</option>`,
  );
  return html`<div class="field">
    <label for="field-plan_binding">Leases are bound to</label>
    <select id="field-plan_binding" name="plan_binding">
      ${options}
    </select>
  </div>`;
}

function readBinding(form: Form): Plan['binding'] | undefined {
  const chosen = form.get('plan_binding');
  return (Object.keys(BOUND_TO) as Plan['binding'][]).find((binding) => binding === chosen);
}

type Attributes = NonNullable<Parameters<typeof field>[2]>;

function listOf(
  {
    items,
    next_cursor,
  }: { readonly items: readonly unknown[]; readonly next_cursor: string | null },
  content: Html,
  command: string,
): Html {
  if (items.length === 0) {
    return emptyState(
      'There are none yet. Add one here or from the command line:',
      `service-local identity ${command}`,
    );
  }
  const list = command.split(' ', 1)[0];
  return html`${content}
  ${
    next_cursor !== null &&
    html`<p class="note">
      These are the first ${LISTED}. To list all: <code>service-local identity ${list} list</code>
    </p>`
  }`;
}

function customerTable(customers: readonly Customer[], now: number): Html {
  return table<Customer>(
    'All customers',
    [
      { title: 'Name', isHeader: true, cell: ({ name }) => name },
      { title: 'Id', cell: ({ customer_id }) => html`<span class="id">${customer_id}</span>` },
      { title: 'Created', cell: ({ created_at }) => relative(created_at, now) },
    ],
    customers,
  );
}

function planTable(plans: readonly Plan[]): Html {
  const span = (seconds: number | null): string =>
    seconds === null ? 'server default' : formatSeconds(seconds);
  return table<Plan>(
    'All plans',
    [
      { title: 'Name', isHeader: true, cell: ({ name }) => name },
      { title: 'Id', cell: ({ plan_id }) => html`<span class="id">${plan_id}</span>` },
      { title: 'Entitlements', cell: ({ entitlements }) => entitlements.join(', ') || 'nothing' },
      { title: 'Product', cell: ({ product }) => product ?? 'server default' },
      { title: 'Bound to', cell: ({ binding }) => BOUND_TO[binding] },
      { title: 'Lease duration', cell: ({ ttl_seconds }) => span(ttl_seconds) },
      { title: 'Grace period', cell: ({ grace_period_seconds }) => span(grace_period_seconds) },
    ],
    plans,
  );
}

function contractTable(contracts: readonly Contract[], now: number): Html {
  return table<Contract>(
    'All contracts',
    [
      {
        title: 'Contract',
        isHeader: true,
        cell: ({ contract_id }) => html`<span class="id">${contract_id}</span>`,
      },
      {
        title: 'Customer',
        cell: ({ customer_id }) => html`<span class="id">${customer_id}</span>`,
      },
      { title: 'Plan', cell: ({ plan_id }) => html`<span class="id">${plan_id}</span>` },
      {
        title: 'Additional entitlements',
        cell: ({ entitlements }) => entitlements.join(', ') || '—',
      },
      { title: 'Ends', cell: ({ ends_at }) => moment(ends_at, now) },
    ],
    contracts,
  );
}
