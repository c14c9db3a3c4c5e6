import type { authoriseOverride } from '../../../../api/risk.ts';
import { connect } from '../../../connect.ts';
import { REASON_OPTION } from '../../../halts.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'authorize an override that risk has verified',
  description:
    'Authorizes the override, after which one order may pass. You must be designated for this, and must be neither the person who requested the override nor the one who verified it.',
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
