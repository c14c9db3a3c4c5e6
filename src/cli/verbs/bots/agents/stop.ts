import { AGENT_COLUMNS, ROLE_ARGUMENT, setSchedule } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'turn off the schedule of an agent',
  description:
    'Stops the schedule, no matter who started it. An answer in progress loses its access to the server.',
  arguments: { bot: BOT_ARGUMENT, role: ROLE_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots agents stop sma-research watcher'],
  async run(context, { bot, role }) {
    const data = await setSchedule(context, bot, role, false);
    return { data, show: (out) => showItems(out, [data], AGENT_COLUMNS) };
  },
});
