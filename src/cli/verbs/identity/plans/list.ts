import type { listPlans } from '../../../../api/registry.ts';
import { listAnswer } from '../../../list-answer.ts';
import { PLAN_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the plans',
  settings: ['server_url'],
  examples: ['identity plans list', 'identity plans list --json | jq .plans[].entitlements'],
  run: (context) =>
    listAnswer<typeof listPlans>(context, 'plans', '/identity/plans', PLAN_COLUMNS, {}),
});
