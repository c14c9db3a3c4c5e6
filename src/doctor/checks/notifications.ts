import type { listNotificationRules } from '../../api/notifications.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Facts } from '../machine-facts.ts';
import type { Check } from '../run-checks.ts';

/** Reports channels that cannot send, and notifications that were not sent. */
export const NOTIFICATIONS_CHECK: Check<Facts> = {
  code: 'notifications',
  async run({ administrator }) {
    const server = await administrator!();
    const known = await server.call<typeof listNotificationRules>('get', '/notifications', {});
    const { channels, rules, pending, failed } = known;
    const evidence = { channels, rules: rules.length, pending, failed };
    const faults = channels.flatMap(({ name, fault }) =>
      fault === null ? [] : `${name}: ${fault}`,
    );
    const problems = [
      ...faults,
      ...(failed > 0 ? [`${formatCountOf(failed, 'notification')} failed within a day`] : []),
    ];
    if (problems.length > 0) {
      return {
        status: 'warn',
        summary: problems.join('; '),
        evidence,
        remedy:
          'See `service-local notifications deliveries --status failed`. Correct the channel in the notifications_file of the server, restart it, and run `service-local notifications test CHANNEL`.',
      };
    }
    const counts = `${formatCountOf(rules.length, 'rule')}, ${formatCountOf(channels.length, 'channel')}`;
    return { status: 'ok', summary: `${counts}, ${pending} to send`, evidence };
  },
};
