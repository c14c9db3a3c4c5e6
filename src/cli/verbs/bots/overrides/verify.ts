import type { verifyOverride } from '../../../../api/risk.ts';
import { REASON_OPTION } from '../../../halts.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS } from '../../../risk.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'verify an override, as risk',
  description:
    'Confirms, as risk management, that the order may pass. You must not be the person who requested the override. Another person still has to authorize it.',
  arguments: { override: { description: 'id of the override' } },
  options: { reason: REASON_OPTION },
  examples: [
    'bots overrides verify 0198c0de-0000-7000-8000-0000000000f1 --reason "the position is hedged"',
  ],
  async run(server, { override: override_id }, { reason }) {
    const data = await server.call<typeof verifyOverride>(
      'post',
      '/overrides/{override_id}/verify',
      { params: { override_id }, body: { reason } },
    );
    return { data, show: (out) => showItems(out, [data], OVERRIDE_COLUMNS) };
  },
});
