import type { authoriseOverride } from '../../../../api/risk.ts';
import { connect } from '../../../connect.ts';
import { REASON_OPTION } from '../../../halts.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'authorise an override that risk has verified',
  description:
    'As a person designated for that, neither the one who asked for it nor the one of risk who verified it. From then on one order may pass.',
  arguments: { override: { description: 'id of the override' } },
  options: { reason: REASON_OPTION },
  settings: ['server_url'],
  examples: [
    'bots overrides authorise 0198c0de-0000-7000-8000-0000000000f1 --reason "the position is hedged"',
  ],
  async run(context, { override: override_id }, { reason }) {
    const server = await connect(context);
    const data = await server.call<typeof authoriseOverride>(
      'post',
      '/overrides/{override_id}/authorise',
      { params: { override_id }, body: { reason } },
    );
    return { data, show: (out) => showItems(out, [data], OVERRIDE_COLUMNS) };
  },
});
