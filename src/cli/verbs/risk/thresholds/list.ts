import type { listThresholds } from '../../../../api/risk.ts';
import { showItems } from '../../../show-items.ts';
import { THRESHOLD_COLUMNS } from '../../../risk.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the thresholds of clients, instruments, traders, desks and the firm',
  description:
    'Lists the thresholds in force. All sessions of a threshold share its limits of exposure, loss and messages; sessions of each kind, such as paper, share them separately.',
  options: { history: { description: 'include removed and replaced thresholds' } },
  examples: ['risk thresholds list', 'risk thresholds list --history --json'],
  async run(server, _args, { history }) {
    const data = await server.call<typeof listThresholds>('get', '/risk/thresholds', {
      query: { history: history ? 'true' : 'false' },
    });
    return { data, show: (out) => showItems(out, data.thresholds, THRESHOLD_COLUMNS) };
  },
});
