import type { createStepUp } from '../../../../api/administrators.ts';
import type {
  getLease,
  LeaseRecord,
  previewInstallationRevocation,
  previewLeaseRevocation,
  revokeInstallation,
  revokeLease,
} from '../../../../api/leases.ts';
import type { Client } from '../../../../client/client.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { ask, requireInteractive } from '../../../ask.ts';
import { connect } from '../../../connect.ts';
import { defineVerb, type Context } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'deny renewal, by lease or by installation',
  description:
    'Denies renewal and new leases from now on. Issued leases remain valid until their end; the date is shown before you confirm and in the result. Revoking a lease revokes all leases of its machine. A lease without a machine, which an administrator issued, can only be revoked with its installation. With --deployment, revokes all leases of the installation, which gets no new lease until it is reinstated.',
  arguments: { lease: { description: 'id of the lease', optional: true } },
  options: {
    deployment: { value: 'id', description: 'revoke the whole installation' },
    reason: { value: 'text', description: 'reason, stored with the lease', required: true },
    confirm: { value: 'id', description: 'id of the installation, instead of a prompt' },
    code: {
      value: 'digits',
      description: 'code of your authenticator, or a recovery code, instead of a prompt',
    },
  },
  settings: ['server_url'],
  examples: [
    'identity leases revoke --deployment acme-tokyo --reason "contract cancelled"',
    'identity leases revoke 0198c0de-0000-7000-8000-00000000aaaa --reason "laptop stolen"',
    'identity leases revoke --deployment acme-tokyo --reason unpaid --confirm acme-tokyo --code 123456',
  ],
  async run(context, { lease }, { deployment, reason, confirm, code }) {
    const target = targetOf(lease, deployment);
    const server = await connect(context);
    const meant = 'lease_id' in target ? await leaseOf(server, target) : target;
    const { deployment_id: installationId } = meant;
    if (confirm === undefined) {
      await tellWhatItDoes(context, server, meant);
      const codeOption = code === undefined ? ['--code DIGITS'] : [];
      requireInteractive(context, `--confirm ${installationId}`, ...codeOption);
    }
    const typed =
      confirm ?? (await ask(context, `Type ${installationId} to confirm:`, '--confirm'));
    if (typed !== installationId) {
      throw new ServiceError('confirmation_mismatch', `'${typed}' is not ${installationId}`, {
        remedy: 'Nothing was revoked. Check the id of the installation.',
      });
    }
    const { step_up_token } = await server.call<typeof createStepUp>('post', '/identity/step-ups', {
      body: {
        action: 'identity.license.revoke',
        target: 'lease_id' in target ? `lease:${target.lease_id}` : `deployment:${installationId}`,
        code: code ?? (await ask(context, 'Code from your authenticator:', '--code')),
      },
    });
    const request = {
      headers: { 'service-step-up': step_up_token },
      body: { reason, confirm: typed },
    };
    const revoked = await ('lease_id' in target
      ? server.call<typeof revokeLease>('post', '/identity/leases/{lease_id}/revoke', {
          params: target,
          ...request,
        })
      : server.call<typeof revokeInstallation>(
          'post',
          '/identity/deployments/{deployment_id}/revoke',
          { params: target, ...request },
        ));
    return {
      data: revoked,
      show(out) {
        const { revoked_leases, effective_at, registry_enforced } = revoked;
        out.line(
          `Revoked: ${formatCountOf(revoked_leases, 'working lease')} of ${installationId}.`,
        );
        out.line(
          effective_at === null
            ? 'None of its leases is still valid.'
            : `The last copy stops working at ${effective_at}.`,
        );
        if (!registry_enforced) {
          out.line(
            out.style.yellow(
              'The server still renews these leases, because its setting license_registry_enforced is off.',
            ),
          );
        }
      },
    };
  },
});

type Target = { readonly lease_id: string } | { readonly deployment_id: string };

function targetOf(lease: string | undefined, deployment: string | undefined): Target {
  if (lease !== undefined && deployment === undefined) return { lease_id: lease };
  if (deployment !== undefined && lease === undefined) return { deployment_id: deployment };
  throw new ServiceError('usage', 'specify either a lease or --deployment', {
    remedy: 'See `service-local identity leases list`.',
  });
}

async function leaseOf(
  server: Client,
  params: { readonly lease_id: string },
): Promise<LeaseRecord> {
  return server.call<typeof getLease>('get', '/identity/leases/{lease_id}', { params });
}

/** Shows the number of affected leases and how long they remain valid, before the confirmation. */
async function tellWhatItDoes(
  { message }: Context,
  server: Client,
  meant: LeaseRecord | { readonly deployment_id: string },
): Promise<void> {
  const { deployment_id } = meant;
  const { working_leases: count, effective_at } = await ('lease_id' in meant
    ? server.call<typeof previewLeaseRevocation>('get', '/identity/leases/{lease_id}/revocation', {
        params: { lease_id: meant.lease_id },
      })
    : server.call<typeof previewInstallationRevocation>(
        'get',
        '/identity/deployments/{deployment_id}/revocation',
        { params: { deployment_id } },
      ));
  const device = 'lease_id' in meant ? meant.device_id : null;
  const owner = device === null ? deployment_id : `the device ${device} of ${deployment_id}`;
  message(
    count === 0
      ? `All valid leases of ${owner} are already revoked.`
      : `This revokes ${formatCountOf(count, 'working lease')} of ${owner}, the last until ${effective_at}. Nothing can end them before.`,
  );
}
