import type { listPlans } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { PLAN_COLUMNS } from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the plans',
  examples: ['identity plans list', 'identity plans list --json | jq .plans[].entitlements'],
  run: (server) =>
    listAnswer<typeof listPlans>(server, 'plans', '/identity/plans', PLAN_COLUMNS, {}),
});
