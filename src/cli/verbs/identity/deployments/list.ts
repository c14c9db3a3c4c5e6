import type { listInstallations } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { INSTALLATION_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the installations',
  options: { contract: { value: 'id', description: 'only those under this contract' } },
  settings: ['server_url'],
  examples: ['identity deployments list', 'identity deployments list --contract acme-2026 --json'],
  async run(context, _args, { contract }) {
    const server = await connect(context);
    const list = server.items<typeof listInstallations>('get', '/identity/deployments', {
      query: { contract_id: contract },
    });
    const installations = await Array.fromAsync(list);
    return {
      data: { deployments: installations },
      show: (out) => showItems(out, installations, INSTALLATION_COLUMNS),
    };
  },
});
