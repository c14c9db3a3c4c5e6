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
    'Applies to the next lease of each installation under the contract. The given entitlements ' +
    'replace all entitlements that the contract adds to its plan. Issued leases remain valid until ' +
    'their end, even if the contract has ended. Asks for a code from your authenticator if the ' +
    'change grants more than before.',
  arguments: { contract: { description: 'id of the contract' } },
  options: {
    plan: { value: 'id', description: 'new plan of the contract' },
    endsAt: {
      value: 'time',
      description: 'end of the contract: 2027-01-01T00:00:00Z, or now',
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
          out.line(`Leases that were already issued work until ${last}.`);
        }
      },
    };
  },
});
