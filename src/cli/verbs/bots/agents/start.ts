import { AGENT_COLUMNS, ROLE_ARGUMENT, setSchedule } from '../../../agents.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'turn on the schedule of an agent',
  description:
    'The server asks the agent the question in its spec at the times in its spec: every 5m to 31d, or at a time of day in UTC. The agent runs as you, at most with your scopes read and write. The schedule ends with `bots agents stop`, when your account is disabled or your token is revoked, when the bot is archived, and when the spec no longer has the agent or its schedule. An expired token does not end it, but logout and a new login revoke the token of your login. For an agent that should outlive your login, set SERVICE_LOCAL_TOKEN to a token of `identity tokens create`. Each answer is an event of the bot. A language model may cost money; see the settings chat_turns and chat_tokens.',
  arguments: { bot: BOT_ARGUMENT, role: ROLE_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots agents start sma-research watcher'],
  async run(context, { bot, role }) {
    const data = await setSchedule(context, bot, role, true);
    return { data, show: (out) => showItems(out, [data], AGENT_COLUMNS) };
  },
});
