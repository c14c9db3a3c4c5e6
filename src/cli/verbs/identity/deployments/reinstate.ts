import type { getInstallation, reinstateInstallation } from '../../../../api/registry.ts';
import { showItems } from '../../../show-items.ts';
import { INSTALLATION_COLUMNS } from '../../../registry.ts';
import { CODE_OPTION, sendWithStepUp } from '../../../step-up.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'reinstate a revoked installation',
  description:
    'Cancels the revocation of an installation and its leases, so that its devices can renew again. ' +
    'Leases that were revoked individually stay revoked. Asks for a code from your authenticator.',
  arguments: { deployment: { description: 'id of the installation' } },
  options: { code: CODE_OPTION },
  examples: [
    'identity deployments reinstate acme-tokyo',
    'identity deployments reinstate acme-tokyo --code 123456',
  ],
  async run(server, args, { code }, context) {
    const params = { deployment_id: args.deployment };
    const present = await server.call<typeof getInstallation>(
      'get',
      '/identity/deployments/{deployment_id}',
      { params },
    );
    if (present.revoked_at === null)
      context.message(`${args.deployment} is not revoked, so nothing changes`);
    const target = `deployment:${args.deployment}`;
    const stepUp = { action: 'identity.license.give', target, code } as const;
    const path = '/identity/deployments/{deployment_id}/reinstate';
    const installation = await sendWithStepUp(context, server, stepUp, (headers) =>
      server.call<typeof reinstateInstallation>('post', path, { params, headers }),
    );
    return {
      data: installation,
      show: (out) => showItems(out, [installation], INSTALLATION_COLUMNS),
    };
  },
});
