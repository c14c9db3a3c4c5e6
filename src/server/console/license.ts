import { html } from 'hono/html';
import type { searchAudit } from '../../api/administrators.ts';
import type { createEnrollmentCode, Device, listDevices, revokeDevice } from '../../api/devices.ts';
import type { getLicense, License, listLicenses } from '../../api/licenses.ts';
import type { listLeases } from '../../api/leases.ts';
import type {
  getContract,
  getInstallation,
  getPlan,
  reinstateInstallation,
} from '../../api/registry.ts';
import type { Services } from '../services.ts';
import type { Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import {
  licensePath,
  auditPath,
  auditTable,
  installationLink,
  deviceState,
  leaseLink,
  leaseTable,
  LICENSES,
  moment,
  licenseTabs,
  relative,
  abbreviatedId,
  stateBadge,
  timeLeft,
} from './license-parts.ts';
import { badge, emptyState, facts, field, pager, table, who } from './parts.ts';
import type { Pages, Visit } from './pages.ts';
import { confirmationPage, sendWithStepUp, type Confirmation } from './step-up.ts';

const PAGE_SIZE = 50;

/** Number of silent installations displayed above the list. */
const SILENT_SHOWN = 10;

/** Registers the list of installations and the page of each. */
export function addLicensePages(pages: Pages, services: Services): void {
  const {
    identity,
    origins: [origin],
  } = services;
  const { clock } = identity;
  const installation = `${LICENSES}/deployments/:deployment_id`;

  pages.get(LICENSES, (visit) => showLicenses(visit, clock()));
  pages.get(installation, (visit) => showInstallation(visit, clock()));

  pages.post(
    `${installation}/reinstate`,
    async (visit, form) => {
      const params = { deployment_id: visit.param('deployment_id') };
      const path = '/identity/deployments/{deployment_id}/reinstate';
      const outcome = await sendWithStepUp(
        visit,
        services,
        reinstateConfirmation(visit),
        form,
        (headers) => visit.call<typeof reinstateInstallation>('post', path, { params, headers }),
      );
      if ('ask' in outcome) return outcome.ask;
      const message = `${params.deployment_id} can get leases again.`;
      return { goTo: licensePath('deployments', params.deployment_id), message };
    },
    async (visit, form) => confirmationPage(visit, reinstateConfirmation(visit), form),
  );

  pages.post(
    `${installation}/enrolment-codes`,
    async ({ call, param }) => {
      const params = { deployment_id: param('deployment_id') };
      const path = '/identity/deployments/{deployment_id}/enrolment-codes';
      const { code, expires_at } = await call<typeof createEnrollmentCode>('post', path, {
        params,
      });
      return showCode(params.deployment_id, code, moment(expires_at, clock()), origin);
    },
    (visit) => showInstallation(visit, clock()),
  );

  pages.post(
    `${installation}/devices/:device_id/revoke`,
    async ({ call, param }, form) => {
      const params = { device_id: param('device_id') };
      const body = { reason: form.get('reason') };
      const { name } = await call<typeof revokeDevice>(
        'post',
        '/identity/devices/{device_id}/revoke',
        { params, body },
      );
      const message = `The device ${name} can no longer renew. Its leases work until they end.`;
      return { goTo: licensePath('deployments', param('deployment_id')), message };
    },
    (visit) => showInstallation(visit, clock()),
  );
}

async function showLicenses({ call, query }: Visit, now: number): Promise<Content> {
  const filter = {
    state: query('state') as License['state'] | undefined,
    silent: query('silent') === 'true' ? ('true' as const) : undefined,
    search: query('search'),
  };
  const cursor = query('cursor');
  const isWhole = Object.values(filter).every((value) => value === undefined);
  const silentOnTop =
    isWhole && cursor === undefined
      ? await call<typeof listLicenses>('get', '/identity/licenses', {
          query: { silent: 'true', limit: SILENT_SHOWN },
        })
      : { items: [], next_cursor: null };
  const list = await call<typeof listLicenses>('get', '/identity/licenses', {
    query: { ...filter, cursor, limit: PAGE_SIZE },
  });
  return {
    title: 'Licenses',
    body: html`<div class="heading">
        ${licenseTabs('Installations')}<a class="button main" href="${licensePath('issue')}"
          >Issue a lease</a
        >
      </div>
      ${isWhole && list.items.length === 0 ? firstSteps() : filterForm(filter)}
      ${silentOnTop.items.length > 0 && silent(silentOnTop, now)}
      ${
        list.items.length > 0
          ? html`<section aria-labelledby="all">
              <h2 id="all">${isWhole ? 'All installations' : 'Found'}</h2>
              ${licenseTable('Installations', list.items, now)}
              ${pager(LICENSES, { ...filter, cursor }, list.next_cursor)}
            </section>`
          : !isWhole &&
            html`<p>
              No installation matches the filter. <a href="${LICENSES}">Show all installations.</a>
            </p>`
      }`,
  };
}

function firstSteps(): Html {
  return emptyState(
    html`There is no installation yet.
      <a href="${licensePath('customers')}">Register a customer</a>, a plan, a contract and an
      installation; then issue a lease. From the command line, the last step is:`,
    'service-local identity leases issue --deployment ID --out license_lease.json',
  );
}

function filterForm({
  state,
  silent: onlySilent,
  search,
}: {
  readonly state: string | undefined;
  readonly silent: string | undefined;
  readonly search: string | undefined;
}): Html {
  const option = (value: string, text: string): Html =>
    html`<option value="${value}" ${value === (state ?? '') && html` selected`}>${text}</option>`;
  return html`<form method="get" action="${LICENSES}" class="filter" role="search">
    ${field('Search', 'search', { type: 'search', value: search ?? '', maxlength: 200, placeholder: 'Installation, customer, lease or device' })}
    <div class="field">
      <label for="field-state">State</label>
      <select id="field-state" name="state">
        ${option('', 'Any')} ${option('valid', 'Valid')} ${option('grace', 'Grace')}
        ${option('expired', 'Expired')} ${option('revoked', 'Revoked')}
        ${option('none', 'No lease')}
      </select>
    </div>
    <label class="check"
      ><input type="checkbox" name="silent" value="true" ${onlySilent && html` checked`} /> Silent
      only</label
    >
    <button>Filter</button>
  </form>`;
}

function silent(
  {
    items,
    next_cursor,
  }: { readonly items: readonly License[]; readonly next_cursor: string | null },
  now: number,
): Html {
  return html`<section aria-labelledby="silent" class="attention">
    <h2 id="silent">Silent</h2>
    <p class="note">
      A device of each of these installations has not renewed although half of its time to renew has
      passed. Contact the owners before the leases end.
    </p>
    ${licenseTable('Silent installations', items, now)}
    ${next_cursor !== null && html`<p><a href="${LICENSES}?silent=true">All silent installations</a></p>`}
  </section>`;
}

function licenseTable(label: string, licenses: readonly License[], now: number): Html {
  return table<License>(
    label,
    [
      {
        title: 'Installation',
        isHeader: true,
        cell: ({ deployment_id, name }) =>
          html`${installationLink(deployment_id)}${name !== deployment_id && html` <span class="aside">${name}</span>`}`,
      },
      { title: 'Customer', cell: ({ customer }) => customer },
      {
        title: 'State',
        cell: ({ state, silent: isSilent }) =>
          html`${stateBadge(state)}${isSilent && html` ${badge('warning', 'silent')}`}`,
      },
      { title: 'Ends', cell: ({ lease }) => (lease ? timeLeft(lease, now) : '—') },
      {
        title: 'Last renewal',
        cell: ({ lease }) => (lease ? relative(lease.issued_at, now) : '—'),
      },
      { title: 'Lease', cell: ({ lease }) => (lease ? leaseLink(lease.lease_id) : '—') },
      { title: 'Key', cell: ({ lease }) => (lease ? abbreviatedId(lease.public_key_id) : '—') },
    ],
    licenses,
  );
}

function reinstateConfirmation({ param }: Visit): Confirmation {
  const id = param('deployment_id');
  return {
    subject: { action: 'identity.license.give', target: `deployment:${id}` },
    title: 'Reinstate an installation',
    what: html`This reverses the revocation of ${installationLink(id)}. Its devices can then renew
    again.`,
    fields: [],
  };
}

async function showInstallation(visit: Visit, now: number): Promise<Content> {
  const { call, param, query, session } = visit;
  const deployment_id = param('deployment_id');
  const params = { deployment_id };
  const cursor = query('cursor');
  const license = await call<typeof getLicense>('get', '/identity/licenses/{deployment_id}', {
    params,
  });
  const [installation, contract, leases, devices, audit] = await Promise.all([
    call<typeof getInstallation>('get', '/identity/deployments/{deployment_id}', { params }),
    call<typeof getContract>('get', '/identity/contracts/{contract_id}', {
      params: { contract_id: license.contract_id },
    }),
    call<typeof listLeases>('get', '/identity/leases', {
      query: { deployment_id, cursor, limit: 20 },
    }),
    call<typeof listDevices>('get', '/identity/devices', { query: { deployment_id, limit: 100 } }),
    call<typeof searchAudit>('get', '/identity/audit/search', {
      query: { target: `deployment:${deployment_id}`, limit: 10 },
    }),
  ]);
  const plan = await call<typeof getPlan>('get', '/identity/plans/{plan_id}', {
    params: { plan_id: contract.plan_id },
  });
  const { revoked_at, revoked_by, revoked_by_name, revoked_reason } = installation;
  const here = licensePath('deployments', deployment_id);
  return {
    title: license.name === deployment_id ? deployment_id : `${license.name} (${deployment_id})`,
    body: html`<div class="heading">
        ${licenseTabs('Installations')}
        <div class="actions">
          <a
            class="button main"
            href="${licensePath('issue')}?${new URLSearchParams({ deployment_id })}"
            >Issue a lease</a
          >
          ${
            revoked_at === null
              ? html`<a class="button danger" href="${here}/revoke">Revoke…</a>`
              : html`<form method="post" action="${here}/reinstate">
                  ${csrfField(session)}<button>Reinstate</button>
                </form>`
          }
        </div>
      </div>
      ${
        revoked_at !== null &&
        html`<p class="message failure">
          Revoked ${moment(revoked_at, now)} by ${who(revoked_by!, revoked_by_name)}:
          ${revoked_reason}
        </p>`
      }
      ${facts(
        [
          'State',
          html`${stateBadge(license.state)}${license.silent && html` ${badge('warning', 'silent')}`}`,
        ],
        ['Last renewal', license.lease ? moment(license.lease.issued_at, now) : 'never'],
        ['Ends', license.lease ? timeLeft(license.lease, now) : '—'],
        ['Customer', html`${license.customer} <span class="aside">${license.customer_id}</span>`],
        ['Contract', html`${contract.contract_id}, until ${moment(contract.ends_at, now)}`],
        ['Plan', html`${plan.name} <span class="aside">${plan.plan_id}</span>`],
        ['Entitlements of the plan', plan.entitlements.join(', ') || 'nothing'],
        ['Additional entitlements', contract.entitlements.join(', ') || 'nothing'],
      )}
      <section aria-labelledby="leases">
        <h2 id="leases">Leases</h2>
        ${
          leases.items.length > 0
            ? leaseTable('Leases of this installation', leases.items, now)
            : emptyState(
                'This installation has no lease yet. Enroll a device below, which then renews by itself, or issue a lease:',
                `service-local identity leases issue --deployment ${deployment_id} --out license_lease.json`,
              )
        }
        ${pager(here, { cursor }, leases.next_cursor)}
      </section>
      <section aria-labelledby="devices">
        <h2 id="devices">Devices</h2>
        <p class="note">Machines that renew their leases themselves, each with its own key.</p>
        ${devices.items.length > 0 && deviceTable(visit, devices.items, now)}
        ${
          devices.next_cursor !== null &&
          html`<p>
            <a href="${licensePath('devices')}?${new URLSearchParams({ deployment_id })}"
              >All devices</a
            >
          </p>`
        }
        <form method="post" action="${here}/enrolment-codes">
          ${csrfField(session)}<button>Create an enrollment code</button>
        </form>
      </section>
      <section aria-labelledby="audit">
        <h2 id="audit">Audit</h2>
        ${auditTable('Audit entries of this installation', audit.items, now)}
        <p><a href="${auditPath(`deployment:${deployment_id}`)}">Show in the audit log</a></p>
      </section>`,
  };
}

function deviceTable({ session }: Visit, devices: readonly Device[], now: number): Html {
  return table<Device>(
    'Devices of this installation',
    [
      { title: 'Name', isHeader: true, cell: ({ name }) => name },
      { title: 'Device', cell: ({ device_id }) => abbreviatedId(device_id) },
      {
        title: 'State',
        cell: (device) =>
          html`${deviceState(device)}${device.revoked_reason !== null && html` <span class="aside">${device.revoked_reason}</span>`}`,
      },
      { title: 'Enrolled', cell: ({ enrolled_at }) => relative(enrolled_at, now) },
      {
        title: html`<span class="unseen">Revoke</span>`,
        cell: ({ device_id, deployment_id, name, revoked_at }) =>
          revoked_at === null &&
          html`<details>
            <summary>Revoke<span class="unseen"> ${name}</span>…</summary>
            <form
              method="post"
              class="inline"
              action="${licensePath('deployments', deployment_id, 'devices', device_id, 'revoke')}"
            >
              ${csrfField(session)}
              <input
                name="reason"
                required
                maxlength="200"
                aria-label="Reason to revoke ${name}"
                placeholder="Reason"
              />
              <button class="danger">Revoke this device</button>
            </form>
          </details>`,
      },
    ],
    devices,
  );
}

function showCode(deployment_id: string, code: string, expires: Html, origin: string): Content {
  return {
    title: 'Enrollment code',
    body: html`<div class="once" tabindex="-1" data-message>
        <p>
          <strong>This code is shown only once.</strong> It enrolls one device of
          ${installationLink(deployment_id)} and is valid until ${expires}.
        </p>
        <pre id="code"><code>${code}</code></pre>
        <p><button type="button" data-copy="code" hidden>Copy the code</button></p>
      </div>
      <p>On the machine, run this command and enter the code:</p>
      <pre><code>service-local license enroll --url ${origin}</code></pre>
      <p><a href="${licensePath('deployments', deployment_id)}">Back to the installation</a></p>`,
  };
}
