import type { listInstallations } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { INSTALLATION_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the installations',
  options: { contract: { value: 'id', description: 'only those under this contract' } },
  settings: ['server_url'],
  examples: ['identity deployments list', 'identity deployments list --contract acme-2026 --json'],
  run: (context, _args, { contract }) =>
    listAnswer<typeof listInstallations>(
      context,
      'deployments',
      '/identity/deployments',
      INSTALLATION_COLUMNS,
      { query: { contract_id: contract } },
    ),
});
