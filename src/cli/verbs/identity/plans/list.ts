import type { listPlans } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { PLAN_COLUMNS } from '../../../registry.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the plans',
  settings: ['server_url'],
  examples: ['identity plans list', 'identity plans list --json | jq .plans[].entitlements'],
  async run(context) {
    const server = await connect(context);
    const plans = await Array.fromAsync(
      server.items<typeof listPlans>('get', '/identity/plans', {}),
    );
    return { data: { plans }, show: (out) => showItems(out, plans, PLAN_COLUMNS) };
  },
});
