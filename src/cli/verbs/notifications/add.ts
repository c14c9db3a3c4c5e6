import type { addNotificationRule } from '../../../api/notifications.ts';
import { parseAmount } from '../../risk.ts';
import { NOTIFICATION_CONDITIONS } from '../../../base/notifications.ts';
import { RULE_COLUMNS } from '../../notifications.ts';
import { defineServerVerb } from '../../server-verb.ts';
import { showItems } from '../../show-items.ts';

export const verb = defineServerVerb({
  summary: 'add a rule for notifications',
  description:
    'Notifies the channel once of each occurrence. halted: a bot or all bots are halted. error: a trading session fails, or raises a critical alert. drawdown: a session has lost the fraction --amount of its highest equity. no_bars: a session records nothing for --amount seconds while its exchange is open. lease: the lease of an installation or of the server expires within --amount hours, and is not renewed. Drawdowns, missing bars and leases that exist already cause a notification, too. Adds the rule also if the channel cannot send, with a warning.',
  arguments: { name: { description: 'name of the rule' } },
  options: {
    condition: {
      value: 'name',
      description: 'what causes a notification',
      required: true,
      choices: NOTIFICATION_CONDITIONS,
    },
    amount: {
      value: 'n',
      description: 'fraction for drawdown, such as 0.1; seconds for no_bars; hours for lease',
      parse: parseAmount,
    },
    bot: { value: 'bot', description: 'only this bot (default: all bots)', repeat: true },
    channel: { value: 'name', description: 'channel of the server', required: true },
  },
  examples: [
    'notifications add halts --condition halted --channel operations',
    'notifications add big-loss --condition drawdown --amount 0.1 --bot sma-crossover --channel operations',
  ],
  async run(server, { name }, { condition, amount, bot, channel }, { message }) {
    const data = await server.call<typeof addNotificationRule>('post', '/notifications/rules', {
      body: { name, condition, amount, bots: bot.length > 0 ? [...bot] : undefined, channel },
    });
    const { channel_fault: fault } = data;
    if (fault) message(`warning: the channel ${channel} cannot send: ${fault}`);
    return { data, show: (out) => showItems(out, [data], RULE_COLUMNS) };
  },
});
