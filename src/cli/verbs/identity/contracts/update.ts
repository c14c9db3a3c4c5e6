import type { updateContract } from '../../../../api/registry.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import {
  CONDITION_OPTIONS,
  CONTRACT_COLUMNS,
  pickChanges,
  NO_ENTITLEMENTS_OPTION,
  parseEndOrNow,
} from '../../../registry.ts';
import { CODE_OPTION, sendWithStepUp } from '../../../step-up.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'change, extend or end a contract',
  description:
    'Holds for the next lease of each installation under the contract. The entitlements given take ' +
    'the place of all that it had on top of its plan. Leases that are out there work until their ' +
    'own end, also when the contract has ended. A change that gives more asks for a code from ' +
    'your authenticator; one that takes away does not.',
  arguments: { contract: { description: 'id of the contract' } },
  options: {
    plan: { value: 'id', description: 'what was bought instead' },
    endsAt: {
      value: 'time',
      description: 'when it ends: 2027-01-01T00:00:00Z, or now',
      parse: parseEndOrNow,
    },
    ...CONDITION_OPTIONS,
    noEntitlements: NO_ENTITLEMENTS_OPTION,
    code: CODE_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'identity contracts update acme-2026 --ends-at 2028-01-01T00:00:00Z',
    'identity contracts update acme-2026 --plan pro --entitlement byoc_deployments',
  ],
  async run(context, args, { plan, endsAt, code, ...conditions }) {
    const body = pickChanges(conditions, { plan_id: plan, ends_at: endsAt });
    const server = await connect(context);
    const params = { contract_id: args.contract };
    const target = `contract:${args.contract}`;
    const stepUp = { action: 'identity.license.give', target, code } as const;
    const contract = await sendWithStepUp(context, server, stepUp, (headers) =>
      server.call<typeof updateContract>('patch', '/identity/contracts/{contract_id}', {
        params,
        headers,
        body,
      }),
    );
    const { ends_at, last_lease_ends_at: last } = contract;
    return {
      data: contract,
      show(out) {
        showItems(out, [contract], CONTRACT_COLUMNS);
        if (last !== null && Date.parse(last) > Date.parse(ends_at)) {
          out.line(`Leases that were issued before work until ${last}.`);
        }
      },
    };
  },
});
