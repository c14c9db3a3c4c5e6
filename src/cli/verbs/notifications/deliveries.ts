import type { listNotificationDeliveries } from '../../../api/notifications.ts';
import { DELIVERY_STATUSES } from '../../../base/notifications.ts';
import { DELIVERY_COLUMNS } from '../../notifications.ts';
import { defineServerVerb } from '../../server-verb.ts';
import { showItems } from '../../show-items.ts';
import { parseCount } from '../../parse-count.ts';

export const verb = defineServerVerb({
  summary: 'list the newest notifications, and whether they were sent',
  description:
    'The server makes up to twelve attempts, usually within three hours; then the notification fails.',
  options: {
    status: {
      value: 'status',
      description: 'only those with this status',
      choices: DELIVERY_STATUSES,
    },
    limit: {
      value: 'n',
      description: 'number of notifications, at most 1000',
      parse: parseCount,
      default: 50,
    },
  },
  examples: ['notifications deliveries', 'notifications deliveries --status failed --json'],
  async run(server, _args, { status, limit }) {
    const { items } = await server.call<typeof listNotificationDeliveries>(
      'get',
      '/notifications/deliveries',
      { query: { status, limit } },
    );
    return {
      data: { deliveries: items },
      show: (out) => showItems(out, items, DELIVERY_COLUMNS),
    };
  },
});
