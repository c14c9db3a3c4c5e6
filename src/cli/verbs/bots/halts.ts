import type { listHalts } from '../../../api/halts.ts';
import { listAnswer } from '../../list-answer.ts';
import { HALT_COLUMNS } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the halts, halts in force first',
  description:
    'Lists the halts in force first. The last column is the count of deployments that the halt ended.',
  examples: ['bots halts', "bots halts --json | jq '.halts[] | select(.lifted_at == null)'"],
  run: (server) => listAnswer<typeof listHalts>(server, 'halts', '/halts', HALT_COLUMNS, {}),
});
