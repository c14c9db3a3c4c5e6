import { BOT_KINDS, BOT_STATUSES, BOT_COLUMNS, formatHalt } from '../../bots.ts';
import type { BotListItem, listBots } from '../../../api/bots.ts';
import { haltOfAll } from '../../halts.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the bots on the server',
  description:
    'Prints a line above the list if all bots are halted. With --activity, the list also shows which bots are halted.',
  options: {
    kind: { value: 'kind', description: 'only bots of this kind', choices: BOT_KINDS },
    status: { value: 'status', description: 'only bots with this status', choices: BOT_STATUSES },
    query: { value: 'text', description: 'only bots with this text in their slug or name' },
    activity: { description: 'also show running tasks, halts and the last result of each bot' },
  },
  examples: ['bots list --activity', 'bots list --status active --json | jq -r .bots[].slug'],
  async run(server, _args, { query: q, activity, ...filters }) {
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
