import type { updatePlan } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import {
  CONDITION_OPTIONS,
  pickChanges,
  NO_ENTITLEMENTS_OPTION,
  PLAN_COLUMNS,
  PURPOSE_OPTIONS,
} from '../../../registry.ts';
import { CODE_OPTION, sendWithStepUp } from '../../../step-up.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'change a plan',
  description:
    'Applies to the next lease of every installation with the plan. The given entitlements replace all former ones. Asks for a code from your authenticator if the change grants more than before.',
  arguments: { plan: { description: 'id of the plan' } },
  options: {
    name: { value: 'text', description: 'display name of the plan' },
    ...CONDITION_OPTIONS,
    ...PURPOSE_OPTIONS,
    noEntitlements: NO_ENTITLEMENTS_OPTION,
    code: CODE_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'identity plans update pro --entitlement live_trading --entitlement byoc_deployments',
    'identity plans update pro --ttl 14d --grace default',
    'identity plans update pro --binding machine',
  ],
  async run(context, args, { name, product, binding, code, ...conditions }) {
    const body = pickChanges(conditions, { name, product, binding });
    const server = await connect(context);
    const params = { plan_id: args.plan };
    const stepUp = { action: 'identity.license.give', target: `plan:${args.plan}`, code } as const;
    const plan = await sendWithStepUp(context, server, stepUp, (headers) =>
      server.call<typeof updatePlan>('patch', '/identity/plans/{plan_id}', {
        params,
        headers,
        body,
      }),
    );
    return { data: plan, show: (out) => showItems(out, [plan], PLAN_COLUMNS) };
  },
});
