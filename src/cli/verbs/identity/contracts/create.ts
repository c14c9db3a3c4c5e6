import type { createContract } from '../../../../api/registry.ts';
import { showItems } from '../../../show-items.ts';
import {
  CONDITION_OPTIONS,
  CONTRACT_COLUMNS,
  pickConditions,
  ID_OPTION,
  parseEnd,
} from '../../../registry.ts';
import { CODE_OPTION, sendWithStepUp } from '../../../step-up.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'register what a customer has bought, and until when',
  description:
    'The entitlements given here are added to those of the plan; times replace those of the plan. It asks for a code from your authenticator.',
  options: {
    id: ID_OPTION,
    customer: { value: 'id', description: 'whose contract it is', required: true },
    plan: { value: 'id', description: 'what was bought', required: true },
    endsAt: {
      value: 'time',
      description: 'when no lease works any more: 2027-01-01T00:00:00Z',
      required: true,
      parse: parseEnd,
    },
    ...CONDITION_OPTIONS,
    code: CODE_OPTION,
  },
  examples: [
    'identity contracts create --id acme-2026 --customer acme --plan pro --ends-at 2027-01-01T00:00:00Z',
  ],
  async run(server, _args, { id, customer, plan, endsAt, code, ...conditions }, context) {
    const body = {
      contract_id: id,
      customer_id: customer,
      plan_id: plan,
      ends_at: endsAt,
      ...pickConditions(conditions),
    };
    const stepUp = {
      action: 'identity.license.give',
      target: `customer:${customer}`,
      code,
    } as const;
    const contract = await sendWithStepUp(context, server, stepUp, (headers) =>
      server.call<typeof createContract>('post', '/identity/contracts', { headers, body }),
    );
    return { data: contract, show: (out) => showItems(out, [contract], CONTRACT_COLUMNS) };
  },
});
