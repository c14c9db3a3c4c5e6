import { html } from 'hono/html';
import type {
  getLease,
  previewInstallationRevocation,
  previewLeaseRevocation,
  Revocation,
  Revoked,
  revokeInstallation,
  revokeLease,
} from '../../api/leases.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import type { StepUpSubject } from '../../identity/step-up.ts';
import type { Services } from '../services.ts';
import { PASSKEYS, WEBAUTHN } from './assets.ts';
import type { Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import {
  licensePath,
  installationLink,
  leaseLink,
  LICENSES,
  moment,
  abbreviatedId,
} from './license-parts.ts';
import { field } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';
import { factorOf, stepUp, stepUpFields } from './step-up.ts';

/** Registers the pages that revoke one lease or all leases of an installation. */
export function addRevokePages(pages: Pages, services: Services): void {
  const { clock } = services.identity;
  const lease = `${LICENSES}/leases/:lease_id/revoke`;
  const installation = `${LICENSES}/deployments/:deployment_id/revoke`;

  pages.get(lease, (visit) => showLease(visit, undefined, clock()));
  pages.post(
    lease,
    async (visit, form) => {
      const params = { lease_id: visit.param('lease_id') };
      const path = '/identity/leases/{lease_id}/revocation';
      const preview = await visit.call<typeof previewLeaseRevocation>('get', path, { params });
      const request = await confirmRevocation(
        visit,
        services,
        form,
        preview,
        `lease:${params.lease_id}`,
      );
      const revoked = await visit.call<typeof revokeLease>(
        'post',
        '/identity/leases/{lease_id}/revoke',
        { params, ...request },
      );
      return revokedMessage(revoked);
    },
    (visit, form) => showLease(visit, form, clock()),
  );

  pages.get(installation, (visit) => showInstallation(visit, undefined, clock()));
  pages.post(
    installation,
    async (visit, form) => {
      const params = { deployment_id: visit.param('deployment_id') };
      const path = '/identity/deployments/{deployment_id}/revocation';
      const preview = await visit.call<typeof previewInstallationRevocation>('get', path, {
        params,
      });
      const target = `deployment:${params.deployment_id}`;
      const request = await confirmRevocation(visit, services, form, preview, target);
      const revoked = await visit.call<typeof revokeInstallation>(
        'post',
        '/identity/deployments/{deployment_id}/revoke',
        { params, ...request },
      );
      return revokedMessage(revoked);
    },
    (visit, form) => showInstallation(visit, form, clock()),
  );
}

function subjectOf(target: string): StepUpSubject {
  return { action: 'identity.license.revoke', target };
}

/** Checks the typed id before it uses up the second factor, and returns the request to revoke. */
async function confirmRevocation(
  visit: Visit,
  services: Services,
  form: Form,
  { deployment_id }: Revocation,
  target: string,
) {
  const confirm = form.get('confirm');
  if (confirm !== deployment_id) {
    throw new ServiceError(
      'confirmation_mismatch',
      `the typed id is not that of the installation, ${deployment_id}`,
      {
        remedy: 'Nothing was revoked. Check that this is the right installation, and type its id.',
      },
    );
  }
  const token = await stepUp(visit, services, subjectOf(target), factorOf(form));
  return {
    headers: { 'service-step-up': token },
    body: { reason: form.get('reason'), confirm },
  };
}

function revokedMessage({
  deployment_id,
  revoked_leases,
  effective_at,
  registry_enforced,
}: Revoked) {
  const last =
    effective_at === null
      ? 'No copy of these leases still works.'
      : `The last copy stops working at ${effective_at}.`;
  const warning = registry_enforced
    ? ''
    : ' The server still renews them, because its setting license_registry_enforced is off.';
  const message = `Revoked: ${formatCountOf(revoked_leases, 'working lease')} of ${deployment_id}. ${last}${warning}`;
  return { goTo: licensePath('deployments', deployment_id), message };
}

async function showLease(visit: Visit, typed: Form | undefined, now: number): Promise<Content> {
  const { call, param } = visit;
  const params = { lease_id: param('lease_id') };
  const path = '/identity/leases/{lease_id}/revocation';
  const [preview, lease] = await Promise.all([
    call<typeof previewLeaseRevocation>('get', path, { params }),
    call<typeof getLease>('get', '/identity/leases/{lease_id}', { params }),
  ]);
  const what =
    lease.device_id === null
      ? html`This revokes the lease ${leaseLink(lease.lease_id)} of
          ${installationLink(lease.deployment_id)} with its renewals. It was issued to a person and
          is not tied to a machine. To stop all machines,
          <a href="${licensePath('deployments', lease.deployment_id, 'revoke')}"
            >revoke the installation</a
          >.`
      : html`This revokes the lease ${leaseLink(lease.lease_id)} of
        ${installationLink(lease.deployment_id)}, and all other leases of its device.`;
  const target = `lease:${lease.lease_id}`;
  return revokePage(visit, 'Revoke a lease', { what, preview, target, typed, now });
}

async function showInstallation(
  visit: Visit,
  typed: Form | undefined,
  now: number,
): Promise<Content> {
  const params = { deployment_id: visit.param('deployment_id') };
  const path = '/identity/deployments/{deployment_id}/revocation';
  const preview = await visit.call<typeof previewInstallationRevocation>('get', path, { params });
  const what = html`This revokes all leases of ${installationLink(params.deployment_id)}. No lease
  is issued to it until it is reinstated.`;
  const target = `deployment:${params.deployment_id}`;
  return revokePage(visit, 'Revoke an installation', { what, preview, target, typed, now });
}

function revokePage(
  { c, session }: Visit,
  title: string,
  {
    what,
    preview,
    target,
    typed,
    now,
  }: {
    readonly what: Html;
    readonly preview: Revocation;
    readonly target: string;
    readonly typed: Form | undefined;
    readonly now: number;
  },
): Content {
  const { deployment_id, working_leases, device_ids, effective_at, registry_enforced } = preview;
  return {
    title,
    scripts: [WEBAUTHN, PASSKEYS],
    body: html`<p>${what}</p>
      <div class="message failure">
        <p>
          <strong>This affects ${formatCountOf(working_leases, 'working lease')}</strong>${
            device_ids.length > 0 &&
            html` on ${formatCountOf(device_ids.length, 'device')}:
            ${device_ids.slice(0, 20).map((id, i) => html`${i > 0 && ', '}${abbreviatedId(id)}`)}${device_ids.length > 20 && ' and others'}`
          }.
        </p>
        <p>
          ${
            effective_at === null
              ? 'No copy of these leases still works.'
              : html`The last copy stops working ${moment(effective_at, now)}. Until then, existing
                copies keep working; only renewal is denied.`
          }
        </p>
        ${
          !registry_enforced &&
          html`<p>
            <strong>Renewal is not denied on this server,</strong> because its setting
            <code>license_registry_enforced</code> is off.
          </p>`
        }
      </div>
      <form method="post" action="${c.req.path}">
        ${csrfField(session)}
        ${field('Reason', 'reason', { required: true, maxlength: 200, autocomplete: 'off', value: typed?.get('reason') ?? '' }, 'Stored with the lease and in the audit log.')}
        ${field(`Type ${deployment_id} to confirm`, 'confirm', { required: true, maxlength: 128, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', value: typed?.get('confirm') ?? '' })}
        ${stepUpFields(subjectOf(target))}
        <div class="actions">
          <button class="danger">Revoke</button>
          <a class="button" href="${licensePath('deployments', deployment_id)}">Cancel</a>
        </div>
      </form>`,
  };
}
