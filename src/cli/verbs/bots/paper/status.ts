import type { getBotSnapshot, PaperSession } from '../../../../api/bot-state.ts';
import type { BotDeployment, listBotDeployments } from '../../../../api/tasks.ts';
import type { Client } from '../../../../client/client.ts';
import { formatMoney } from '../../../../base/format.ts';
import { BOT_ARGUMENT, findBot } from '../../../bots.ts';
import { showItems, type Columns } from '../../../show-items.ts';
import { defineServerVerb } from '../../../server-verb.ts';

type Session = PaperSession & { readonly task_id: string };

const COLUMNS: Columns<Session> = {
  task: ({ task_id }) => task_id,
  version: ({ version }) => String(version),
  time: ({ time }) => time ?? '',
  equity: ({ equity }) => formatMoney(equity),
  cash: ({ cash }) => formatMoney(cash),
  positions: ({ positions }) =>
    Object.entries(positions)
      .map(([symbol, units]) => `${symbol} ${units}`)
      .join(', '),
  orders: ({ working }) =>
    working.map(({ side, symbol, type }) => `${side} ${symbol} (${type})`).join(', '),
};

export const verb = defineServerVerb({
  summary: 'show the running paper sessions of a bot',
  description:
    'Shows the last recorded state of each running paper session: the time of its newest bars, its account and its working orders. If none is running, shows the last one that ended.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots paper status sma-crossover', 'bots paper status sma-crossover --json'],
  async run(server, { bot: bot_ref }) {
    const path = '/bots/{bot_ref}/state/snapshot';
    const { state } = await server.call<typeof getBotSnapshot>('get', path, {
      params: { bot_ref },
      query: {},
    });
    const { answer: bot } = await findBot(server, bot_ref);
    const inProduction = new Set(
      bot.active_deployments.filter(({ target }) => target === 'k8s').map(({ task_id }) => task_id),
    );
    const sessions = Object.entries(state.sessions)
      .filter(([task_id]) => !inProduction.has(task_id))
      .map(([task_id, session]): Session => ({ task_id, ...session }));
    const last = sessions.length === 0 ? await lastSession(server, bot_ref) : undefined;
    return {
      data: { sessions, ...(last && { last }) },
      show(out) {
        showItems(out, sessions, COLUMNS);
        if (last === undefined) return;
        out.line(
          `The last session, task ${last.task_id}, ended at ${last.ended_at}: ${last.status}.`,
        );
        out.line(`See \`service-local bots deployments ${bot_ref}\`.`);
      },
    };
  },
});

async function lastSession(server: Client, bot_ref: string): Promise<BotDeployment | undefined> {
  const path = '/bots/{bot_ref}/deployments';
  const all = server.items<typeof listBotDeployments>('get', path, { params: { bot_ref } });
  for await (const one of all) if (one.target === 'paper' && one.ended_at !== null) return one;
  return undefined;
}
