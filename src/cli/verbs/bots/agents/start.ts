import { AGENT_COLUMNS, ROLE_ARGUMENT, setSchedule } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'have an agent asked by itself, as its schedule says',
  description:
    'Has the server ask it what its schedule in the spec says, and when that says (each 5m to 31d, or at a time of the day in UTC), as you, with read and write of your scopes at most, and never with others. It ends with bots agents stop, when your account is disabled or your token revoked, when the bot is archived, and when its spec has no such agent or schedule any more. A token that expires ends nothing, but logout revokes that of your login, as a login before it has expired does: for an agent that is to outlive those, use a token from identity tokens create in SERVICE_LOCAL_TOKEN. Each answer is an event of the bot. A language model may cost money: see chat_turns and chat_tokens.',
  arguments: { bot: BOT_ARGUMENT, role: ROLE_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots agents start sma-research watcher'],
  async run(context, { bot, role }) {
    const data = await setSchedule(context, bot, role, true);
    return { data, show: (out) => showItems(out, [data], AGENT_COLUMNS) };
  },
});
