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
  summary: 'register the contract of a customer: its plan and its end',
  description:
    'Adds the given entitlements to those of the plan; given times replace those of the plan. Asks for a code from your authenticator.',
  options: {
    id: ID_OPTION,
    customer: { value: 'id', description: 'customer of the contract', required: true },
    plan: { value: 'id', description: 'plan of the contract', required: true },
    endsAt: {
      value: 'time',
      description: 'time after which no lease is valid: 2027-01-01T00:00:00Z',
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
