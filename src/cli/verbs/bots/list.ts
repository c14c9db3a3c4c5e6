import { BOT_KINDS, BOT_STATUSES, BOT_COLUMNS, formatHalt } from '../../bots.ts';
import type { BotListItem, listBots } from '../../../api/bots.ts';
import { connect } from '../../connect.ts';
import { haltOfAll } from '../../halts.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the bots of the server',
  description:
    'Above them it says when all bots are halted; --activity shows of each whether it is.',
  options: {
    kind: { value: 'kind', description: 'only these', choices: BOT_KINDS },
    status: { value: 'status', description: 'only these', choices: BOT_STATUSES },
    query: { value: 'text', description: 'only those with it in slug or name' },
    activity: { description: 'also what each does, and what it came to last' },
  },
  settings: ['server_url'],
  examples: ['bots list --activity', 'bots list --status active --json | jq -r .bots[].slug'],
  async run(context, _args, { query: q, activity, ...filters }) {
    const server = await connect(context);
    const query = { ...filters, q, ...(activity && { include: 'activity' as const }) };
    const bots = await Array.fromAsync(server.items<typeof listBots>('get', '/bots', { query }));
    const columns = activity ? { ...BOT_COLUMNS, ...ACTIVITY_COLUMNS } : BOT_COLUMNS;
    const halt = await haltOfAll(server);
    return {
      data: { bots, halt: halt ?? null },
      show(out) {
        if (halt !== undefined) {
          const { requested_at: at, requested_by: by, requested_by_name: by_name } = halt;
          out.line(formatHalt({ ...halt, at, by, by_name }));
          out.line();
        }
        showItems(out, bots, columns);
      },
    };
  },
});

const ACTIVITY_COLUMNS: Columns<BotListItem> = {
  running: ({ activity }) => String(activity!.running),
  halted: ({ activity }) => (activity!.halted === null ? 'no' : 'yes'),
  last: ({ activity }) => {
    const { last } = activity!;
    return last === null ? '' : `${last.target} ${last.status} ${last.ended_at}`;
  },
};
