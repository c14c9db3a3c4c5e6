import { html } from 'hono/html';
import type { searchAudit } from '../../api/administrators.ts';
import type { getLease, LeaseRecord, listLeases } from '../../api/leases.ts';
import type { Services } from '../services.ts';
import type { Child, Html } from './html.ts';
import type { Content } from './layout.ts';
import {
  licensePath,
  auditPath,
  auditTable,
  installationLink,
  leaseLink,
  leaseTable,
  LICENSES,
  moment,
  licenseTabs,
  stateBadge,
} from './license-parts.ts';
import { facts, who } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

export function addLeasePages(pages: Pages, { identity }: Services): void {
  pages.get(`${LICENSES}/leases/:lease_id`, (visit) => show(visit, identity.clock()));
}

async function show({ call, param }: Visit, now: number): Promise<Content> {
  const params = { lease_id: param('lease_id') };
  const lease = await call<typeof getLease>('get', '/identity/leases/{lease_id}', { params });
  const { lease_id, lineage_id, previous_lease_id, revoked_at } = lease;
  const [line, next, audit] = await Promise.all([
    call<typeof listLeases>('get', '/identity/leases', { query: { lineage_id, limit: 10 } }),
    call<typeof listLeases>('get', '/identity/leases', {
      query: { previous_lease_id: lease_id, limit: 10 },
    }),
    call<typeof searchAudit>('get', '/identity/audit/search', {
      query: { target: `lease:${lease_id}`, limit: 20 },
    }),
  ]);
  return {
    title: `Lease ${lease_id}`,
    body: html`<div class="heading">
        ${licenseTabs('Installations')}
        ${
          revoked_at === null &&
          html`<a class="button danger" href="${licensePath('leases', lease_id, 'revoke')}"
            >Revoke…</a
          >`
        }
      </div>
      <p class="words">${inWords(lease, now)}</p>
      ${facts(
        ['State', stateBadge(lease.state)],
        ['Installation', installationLink(lease.deployment_id)],
        ['Customer', lease.customer_id],
        ['Contract', lease.contract_id],
        ['Issued', moment(lease.issued_at, now)],
        ['Issued by', who(lease.issued_by, lease.issued_by_name)],
        ['Expires', moment(lease.expires_at, now)],
        ['Grace ends', moment(lease.grace_ends_at, now)],
        ['Device', lease.device_id ?? 'none (issued to a person)'],
        ['Signed by the key', lease.public_key_id],
        ['Renewed from', previous_lease_id === null ? 'nothing' : leaseLink(previous_lease_id)],
        ['Renewed to', links(next.items)],
      )}
      <section aria-labelledby="line">
        <h2 id="line">Lineage</h2>
        <p class="note">All leases of this line of renewals, newest first.</p>
        ${leaseTable('Leases of this lineage', line.items, now)}
        ${
          line.next_cursor !== null &&
          html`<p>
            To list all: <code>service-local identity leases list --lineage ${lineage_id}</code>
          </p>`
        }
      </section>
      <section aria-labelledby="audit">
        <h2 id="audit">Audit</h2>
        ${auditTable('Audit entries of this lease', audit.items, now)}
        <p>
          <a href="${auditPath(`lease:${lease_id}`)}">Show in the audit log</a>. Actions on all
          leases at once are recorded under
          <a href="${auditPath(`deployment:${lease.deployment_id}`)}">the installation</a>.
        </p>
      </section>`,
  };
}

function links(leases: readonly LeaseRecord[]): Child {
  if (leases.length === 0) return 'nothing yet';
  return leases.map(({ lease_id }, i) => html`${i > 0 && ', '}${leaseLink(lease_id)}`);
}

/** The claims of the lease in a sentence. */
function inWords(lease: LeaseRecord, now: number): Html {
  const { customer_id, deployment_id, entitlements, expires_at, grace_ends_at, state } = lease;
  const gives =
    entitlements.length > 0 ? entitlements.join(', ') : 'nothing beyond the free features';
  const until = html`until ${moment(expires_at, now)}, and in its grace period until
  ${moment(grace_ends_at, now)}`;
  const holder = html`<strong>${customer_id}</strong> may use <strong>${gives}</strong> in the
    installation <strong>${deployment_id}</strong>`;
  if (state === 'revoked') {
    const by = who(lease.revoked_by!, lease.revoked_by_name);
    const revoked = html`Revoked ${moment(lease.revoked_at!, now)} by ${by}:
    “${lease.revoked_reason}”.`;
    return html`${revoked} It can no longer be renewed; existing copies work ${until}.`;
  }
  if (state === 'expired') return html`Expired. It stated that ${holder} ${until}.`;
  return html`${holder} ${until}.`;
}
