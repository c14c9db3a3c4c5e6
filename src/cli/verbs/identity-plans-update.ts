import type { updatePlan } from '../../api/registry.ts';
import { connect } from '../connect.ts';
import { showItems } from '../items.ts';
import {
  CONDITION_OPTIONS,
  givenChanges,
  NO_ENTITLEMENTS_OPTION,
  PLAN_COLUMNS,
  PURPOSE_OPTIONS,
} from '../registry.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Holds for the next lease of everybody who has the plan. The entitlements given take the place ' +
    'of all that it had.',
  arguments: { plan: { description: 'id of the plan' } },
  options: {
    name: { value: 'text', description: 'what people call the plan' },
    ...CONDITION_OPTIONS,
    ...PURPOSE_OPTIONS,
    noEntitlements: NO_ENTITLEMENTS_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'identity plans update pro --entitlement live_trading --entitlement byoc_deployments',
    'identity plans update pro --ttl 14d --grace default',
    'identity plans update pro --binding machine',
  ],
  async run(context, args, { name, product, binding, ...conditions }) {
    const body = givenChanges(conditions, { name, product, binding });
    const server = await connect(context);
    const plan = await server.call<typeof updatePlan>('patch', '/identity/plans/{plan_id}', {
      params: { plan_id: args.plan },
      body,
    });
    return { data: plan, show: (out) => showItems(out, [plan], PLAN_COLUMNS) };
  },
});
