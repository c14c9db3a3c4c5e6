import type { listHalts } from '../../../api/halts.ts';
import { listAnswer } from '../../list-answer.ts';
import { HALT_COLUMNS } from '../../halts.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the halts, halts in force first',
  description:
    'Lists the halts in force first. The column "ended" counts the deployments that the halt ended; a paper session is a deployment with the target paper.',
  examples: ['bots halts', "bots halts --json | jq '.halts[] | select(.lifted_at == null)'"],
  run: (server) => listAnswer<typeof listHalts>(server, 'halts', '/halts', HALT_COLUMNS, {}),
});
