import type { createPlan } from '../../../../api/registry.ts';
import { showItems } from '../../../show-items.ts';
import {
  CONDITION_OPTIONS,
  pickConditions,
  ID_OPTION,
  PLAN_COLUMNS,
  PURPOSE_OPTIONS,
} from '../../../registry.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'create a plan: features and the lifetime of leases',
  options: {
    id: ID_OPTION,
    name: { value: 'text', description: 'display name of the plan', required: true },
    ...CONDITION_OPTIONS,
    ...PURPOSE_OPTIONS,
  },
  examples: [
    'identity plans create --id pro --name Pro --entitlement live_trading --entitlement kb_federation',
    'identity plans create --id trial --name Trial --entitlement live_trading --ttl 1d --grace 0s',
    'identity plans create --id desk --name Desk --entitlement live_trading --binding device',
  ],
  async run(server, _args, { id, name, product, binding, ...conditions }) {
    const plan = await server.call<typeof createPlan>('post', '/identity/plans', {
      body: { plan_id: id, name, product, binding, ...pickConditions(conditions) },
    });
    return { data: plan, show: (out) => showItems(out, [plan], PLAN_COLUMNS) };
  },
});
