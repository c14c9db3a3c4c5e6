import type { createInstallation } from '../../../../api/registry.ts';
import { showItems } from '../../../show-items.ts';
import { INSTALLATION_COLUMNS, ID_OPTION } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'register an installation, so that it can get leases',
  options: {
    id: ID_OPTION,
    contract: { value: 'id', description: 'contract of the installation', required: true },
    name: { value: 'text', description: 'display name of the installation', required: true },
  },
  examples: ['identity deployments create --id acme-tokyo --contract acme-2026 --name Tokyo'],
  async run(server, _args, { id, contract, name }) {
    const installation = await server.call<typeof createInstallation>(
      'post',
      '/identity/deployments',
      {
        body: { deployment_id: id, contract_id: contract, name },
      },
    );
    return {
      data: installation,
      show: (out) => showItems(out, [installation], INSTALLATION_COLUMNS),
    };
  },
});
