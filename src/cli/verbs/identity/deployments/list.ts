import type { listInstallations } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { INSTALLATION_COLUMNS } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the installations',
  options: { contract: { value: 'id', description: 'only installations under this contract' } },
  examples: ['identity deployments list', 'identity deployments list --contract acme-2026 --json'],
  run: (server, _args, { contract }) =>
    listAnswer<typeof listInstallations>(
      server,
      'deployments',
      '/identity/deployments',
      INSTALLATION_COLUMNS,
      { query: { contract_id: contract } },
    ),
});
