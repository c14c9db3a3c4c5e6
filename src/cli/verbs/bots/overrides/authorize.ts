import type { authorizeOverride } from '../../../../api/risk.ts';
import { REASON_OPTION } from '../../../halts.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'authorize an override that risk has verified',
  description:
    'Authorizes the override, after which one order may pass. You must be designated for this, and must be neither the person who requested the override nor the one who verified it.',
  arguments: { override: { description: 'id of the override' } },
  options: { reason: REASON_OPTION },
  examples: [
    'bots overrides authorize 0198c0de-0000-7000-8000-0000000000f1 --reason "the position is hedged"',
  ],
  async run(server, { override: override_id }, { reason }) {
    const data = await server.call<typeof authorizeOverride>(
      'post',
      '/overrides/{override_id}/authorize',
      { params: { override_id }, body: { reason } },
    );
    return { data, show: (out) => showItems(out, [data], OVERRIDE_COLUMNS) };
  },
});
