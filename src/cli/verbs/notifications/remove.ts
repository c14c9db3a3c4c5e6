import type { removeNotificationRule } from '../../../api/notifications.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'remove a rule for notifications',
  description: 'Notifications that the rule has caused are still sent.',
  arguments: { name: { description: 'name of the rule' } },
  examples: ['notifications remove big-loss'],
  async run(server, { name }) {
    await server.call<typeof removeNotificationRule>('delete', '/notifications/rules/{name}', {
      params: { name },
    });
    return { data: { name, removed: true }, show: (out) => out.line(`Rule ${name} is removed.`) };
  },
});
