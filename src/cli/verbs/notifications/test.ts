import type { testNotificationChannel } from '../../../api/notifications.ts';
import { ServiceError } from '../../../base/errors.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'send a test to a channel',
  description:
    'Makes one attempt. Exits with 0 if the receiver accepts it, and with 1 if the test fails.',
  arguments: { channel: { description: 'name of the channel; see notifications list' } },
  examples: ['notifications test operations'],
  async run(server, { channel }) {
    const data = await server.call<typeof testNotificationChannel>(
      'post',
      '/notifications/channels/{channel}/test',
      { params: { channel } },
    );
    const { status, error, refused_status } = data;
    if (status !== 'sent') {
      throw new ServiceError('failure', `channel ${channel}: ${error ?? 'the test was not sent'}`, {
        remedy: refused_status
          ? 'The receiver refused the test: look there for the reason. If its address is wrong, correct the channel in the notifications_file of the server, and restart it.'
          : 'Correct the channel in the notifications_file of the server, and restart it.',
      });
    }
    return { data, show: (out) => out.line(`Channel ${channel} has accepted the test.`) };
  },
});
