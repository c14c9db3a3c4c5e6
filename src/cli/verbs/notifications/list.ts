import type { listNotificationRules } from '../../../api/notifications.ts';
import { RULE_COLUMNS } from '../../notifications.ts';
import { defineServerVerb } from '../../server-verb.ts';
import { showItems } from '../../show-items.ts';

export const verb = defineServerVerb({
  summary: 'list the rules for notifications, and the channels of the server',
  description:
    'Channels come from the file in the setting notifications_file of the server. A channel with a fault, or one that the server does not have, cannot send.',
  examples: ['notifications list', 'notifications list --json | jq .channels'],
  async run(server) {
    const data = await server.call<typeof listNotificationRules>('get', '/notifications', {});
    return {
      data,
      show(out) {
        showItems(out, data.rules, RULE_COLUMNS);
        for (const { name, type, fault } of data.channels) {
          const state = fault === null ? out.style.green('ready') : out.style.yellow(fault);
          out.line(`channel ${name}${type === null ? '' : ` (${type})`}: ${state}`);
        }
        out.line(`${data.pending} to send, ${data.failed} failed within a day, without tests`);
      },
    };
  },
});
