import type { createContract } from '../../api/registry.ts';
import { connect } from '../connect.ts';
import { showItems } from '../items.ts';
import {
  CONDITION_OPTIONS,
  CONTRACT_COLUMNS,
  givenConditions,
  ID_OPTION,
  parseEnd,
} from '../registry.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'What is said here of entitlements comes on top of the plan; of times, instead of it.',
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
  },
  settings: ['server_url'],
  examples: [
    'identity contracts create --id acme-2026 --customer acme --plan pro --ends-at 2027-01-01T00:00:00Z',
  ],
  async run(context, _args, { id, customer, plan, endsAt, ...conditions }) {
    const server = await connect(context);
    const contract = await server.call<typeof createContract>('post', '/identity/contracts', {
      body: {
        contract_id: id,
        customer_id: customer,
        plan_id: plan,
        ends_at: endsAt,
        ...givenConditions(conditions),
      },
    });
    return { data: contract, show: (out) => showItems(out, [contract], CONTRACT_COLUMNS) };
  },
});
