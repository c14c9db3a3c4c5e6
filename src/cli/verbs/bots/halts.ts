import type { listHalts } from '../../../api/halts.ts';
import { listAnswer } from '../../list-answer.ts';
import { HALT_COLUMNS } from '../../halts.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the halts, halts in force first',
  description:
    'Lists the halts in force first. The last column is the count of deployments that the halt ended.',
  settings: ['server_url'],
  examples: ['bots halts', "bots halts --json | jq '.halts[] | select(.lifted_at == null)'"],
  run: (context) => listAnswer<typeof listHalts>(context, 'halts', '/halts', HALT_COLUMNS, {}),
});
