import { html } from 'hono/html';
import { v7 as uuidv7 } from 'uuid';
import type { createLease, DryRun, dryRunRenewal } from '../../api/leases.ts';
import type { getLicense, License, listLicenses } from '../../api/licenses.ts';
import type { getContract, getPlan } from '../../api/registry.ts';
import type { RequestOf } from '../../client/route.ts';
import { formatSpan } from '../../base/format.ts';
import type { Services } from '../services.ts';
import { LEASE } from './assets.ts';
import type { Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import {
  licensePath,
  installationLink,
  leaseLink,
  moment,
  licenseTabs,
  parseDuration,
  stateBadge,
} from './license-parts.ts';
import { emptyState, facts, field, table } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

const ISSUE = licensePath('issue');
const DRY_RUN = '/auth/license/leases/dry-run';

/**
 * Registers the steps of issuing a lease: select the installation, choose the terms, review them,
 * and see the lease once.
 */
export function addIssuePages(pages: Pages, { identity }: Services): void {
  const { clock } = identity;

  pages.get(ISSUE, (visit) => {
    const deployment_id = visit.query('deployment_id');
    return deployment_id === undefined
      ? showSelection(visit)
      : showTerms(visit, deployment_id, undefined, clock());
  });

  pages.post(
    licensePath('issue', 'review'),
    async (visit, form) => showReview(visit, readTerms(form), clock()),
    (visit, form) => showTerms(visit, form.get('deployment_id'), form, clock()),
  );

  pages.post(
    ISSUE,
    async ({ call }, form) => {
      const body = { ...readTerms(form), issue_id: form.get('issue_id') };
      const answer = await call<typeof createLease>('post', '/auth/license/leases', { body });
      return issuedPage(answer, `${JSON.stringify(answer.lease)}\n`, clock());
    },
    // The review accepted the form, so whatever is rejected here has changed since.
    (visit, form) => showTerms(visit, form.get('deployment_id'), form, clock()),
  );
}

type Terms = Extract<RequestOf<typeof dryRunRenewal>['body'], { readonly deployment_id: string }>;

/** @throws ServiceError `invalid_request` */
function readTerms(form: Form): Terms {
  return {
    deployment_id: form.get('deployment_id'),
    entitlements: [...form.all('entitlement')],
    ttl_seconds: parseDuration(form.get('ttl'), 'the lease'),
    grace_period_seconds: parseDuration(form.get('grace'), 'the grace period'),
  };
}

async function showSelection({ call, query }: Visit): Promise<Content> {
  const search = query('search');
  const { items, next_cursor } = await call<typeof listLicenses>('get', '/identity/licenses', {
    query: { search, limit: 20 },
  });
  return {
    title: 'Issue a lease',
    body: html`${licenseTabs('Issue')}
      <p class="note">
        For machines that cannot renew leases themselves. A machine with a device key needs no lease
        from here: create an enrollment code on the page of its installation.
      </p>
      ${
        items.length === 0 && search === undefined
          ? emptyState(
              html`There is no installation yet.
                <a href="${licensePath('customers')}">Register one</a> here or from the command
                line:`,
              'service-local identity deployments create --contract ID --name NAME',
            )
          : html`<form method="get" action="${ISSUE}" class="filter" role="search">
              ${field('For which installation', 'search', { type: 'search', value: search ?? '', maxlength: 200, placeholder: 'Installation or customer' })}
              <button>Search</button>
            </form>`
      }
      ${
        items.length > 0
          ? html`${installationTable(items)}
            ${next_cursor !== null && html`<p class="note">There are more. Search for the one you need.</p>`}`
          : search !== undefined && html`<p>No installation matches the search.</p>`
      }`,
  };
}

function installationTable(items: readonly License[]): Html {
  return table<License>(
    'Installations to issue to',
    [
      {
        title: 'Installation',
        isHeader: true,
        cell: ({ deployment_id, name }) =>
          html`<a href="${ISSUE}?${new URLSearchParams({ deployment_id })}">${deployment_id}</a>
            <span class="aside">${name}</span>`,
      },
      { title: 'Customer', cell: ({ customer }) => customer },
      { title: 'State', cell: ({ state }) => stateBadge(state) },
    ],
    items,
  );
}

/** @param typed the rejected form, whose values are kept. */
async function showTerms(
  { call, session }: Visit,
  deployment_id: string,
  typed: Form | undefined,
  now: number,
): Promise<Content> {
  const license = await call<typeof getLicense>('get', '/identity/licenses/{deployment_id}', {
    params: { deployment_id },
  });
  const params = { contract_id: license.contract_id };
  const contract = await call<typeof getContract>('get', '/identity/contracts/{contract_id}', {
    params,
  });
  const plan = await call<typeof getPlan>('get', '/identity/plans/{plan_id}', {
    params: { plan_id: contract.plan_id },
  });
  const usual = await call<typeof dryRunRenewal>('post', DRY_RUN, { body: { deployment_id } });
  const chosen = typed?.all('entitlement') ?? usual.entitlements;
  return {
    title: 'Issue a lease',
    body: html`${licenseTabs('Issue')}
      ${facts(
        [
          'Installation',
          html`${installationLink(deployment_id)} <span class="aside">${license.name}</span>`,
        ],
        ['Customer', html`${license.customer} <span class="aside">${license.customer_id}</span>`],
        ['Plan', html`${plan.name} <span class="aside">${plan.plan_id}</span>`],
        ['Contract', html`${contract.contract_id}, until ${moment(contract.ends_at, now)}`],
      )}
      <form method="post" action="${licensePath('issue', 'review')}">
        ${csrfField(session)}
        <input type="hidden" name="deployment_id" value="${deployment_id}" />
        <fieldset>
          <legend>Entitlements</legend>
          ${
            usual.entitlements.length === 0 &&
            html`<p>
              Neither the plan nor the contract grants an entitlement, so the lease would grant
              nothing.
            </p>`
          }
          ${usual.entitlements.map(
            (name) =>
              html`<label class="check"
                ><input
                  type="checkbox"
                  name="entitlement"
                  value="${name}"
                  ${chosen.includes(name) && html` checked`}
                />
                ${name}
                <span class="aside"
                  >${plan.entitlements.includes(name) ? 'from the plan' : 'from the contract'}</span
                ></label
              >`,
          )}
        </fieldset>
        ${field('Duration', 'ttl', { value: typed?.get('ttl') ?? '', maxlength: 20, autocomplete: 'off', placeholder: usualLength(usual) }, 'Such as 7d, 12h or 90m. Empty: the duration shown, from the plan, the contract or the server.')}
        ${field('Grace period', 'grace', { value: typed?.get('grace') ?? '', maxlength: 20, autocomplete: 'off' }, 'How long the lease still works after it expires, such as 3d. Empty: the default.')}
        <button class="main">Review the lease</button>
      </form>`,
  };
}

function usualLength({ issued_at, expires_at }: DryRun): string {
  return formatSpan(Date.parse(expires_at) - Date.parse(issued_at));
}

async function showReview({ call, session }: Visit, terms: Terms, now: number): Promise<Content> {
  const body = terms;
  const { entitlements, expires_at, grace_ends_at, limits } = await call<typeof dryRunRenewal>(
    'post',
    DRY_RUN,
    { body },
  );
  const { deployment_id, ttl_seconds, grace_period_seconds } = terms;
  const hidden = (name: string, value: string): Html =>
    html`<input type="hidden" name="${name}" value="${value}" />`;
  return {
    title: 'Issue this lease?',
    body: html`${licenseTabs('Issue')}
      ${facts(
        ['Installation', installationLink(deployment_id)],
        ['Entitlements', entitlements.join(', ') || 'nothing'],
        ['Expires', moment(expires_at, now)],
        ['Grace ends', moment(grace_ends_at, now)],
      )}
      ${
        limits.length > 0 &&
        html`<div class="message caution">
          <p><strong>The lease is shorter than requested.</strong></p>
          <ul>
            ${limits.map((limit) => html`<li>${limitText(limit)}</li>`)}
          </ul>
        </div>`
      }
      <p>
        The signed lease is shown <strong>once</strong>, on the next page. The registry stores its
        claims but not its signature.
      </p>
      <form method="post" action="${ISSUE}">
        ${csrfField(session)} ${hidden('deployment_id', deployment_id)}
        ${entitlements.map((name) => hidden('entitlement', name))}
        ${ttl_seconds !== undefined && hidden('ttl', `${ttl_seconds}s`)}
        ${grace_period_seconds !== undefined && hidden('grace', `${grace_period_seconds}s`)}
        ${hidden('issue_id', uuidv7())}
        <div class="actions">
          <button class="main">Issue the lease</button>
          <a class="button" href="${ISSUE}?${new URLSearchParams({ deployment_id })}">Edit</a>
        </div>
      </form>`,
  };
}

function limitText({ field: what, wanted, granted, because }: DryRun['limits'][number]): string {
  const subject = what === 'ttl_seconds' ? 'It lasts' : 'Its grace period is';
  // A login session has no token, so the lifetime of a token is never the limit here.
  const why = because === 'contract_end' ? 'the contract ends then' : 'the server allows no more';
  return `${subject} ${span(granted)} instead of ${span(wanted)}, as ${why}.`;
}

function span(seconds: number): string {
  return formatSpan(seconds * 1000);
}

function issuedPage(
  { lease_id, deployment_id, expires_at, grace_ends_at }: DryRun & { readonly lease_id: string },
  lease: string,
  now: number,
): Content {
  return {
    title: 'The lease is issued',
    scripts: [LEASE],
    body: html`${licenseTabs('Issue')}
      <div class="once" tabindex="-1" data-message>
        <p>
          <strong>This is the only time that the signed lease is shown.</strong> Download or copy it
          now. It cannot be shown again; if it is lost, issue another one.
        </p>
        <pre id="lease" tabindex="0" aria-label="The signed lease"><code>${lease}</code></pre>
        <div class="actions">
          <button
            type="button"
            class="main"
            data-download="lease"
            data-name="license_lease.json"
            hidden
          >
            Download license_lease.json
          </button>
          <button type="button" data-copy="lease" hidden>Copy</button>
        </div>
      </div>
      ${facts(
        ['Lease', leaseLink(lease_id)],
        ['Installation', installationLink(deployment_id)],
        ['Expires', moment(expires_at, now)],
        ['Grace ends', moment(grace_ends_at, now)],
      )}
      <p>To verify and install it, run on the machine:</p>
      <pre><code>service-local license import license_lease.json</code></pre>`,
  };
}
