import { html } from 'hono/html';
import type {
  Channel,
  Delivery,
  listNotificationDeliveries,
  listNotificationRules,
  Rule,
  testNotificationChannel,
} from '../../api/notifications.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatAmount } from '../../base/notifications.ts';
import { botPath } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { badge, emptyState, pager, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

export const NOTIFICATIONS_PATH = '/console/notifications';
const TEST_PATH = `${NOTIFICATIONS_PATH}/test`;
const PAGE = 50;

export function addNotificationPages(pages: Pages): void {
  pages.get(NOTIFICATIONS_PATH, show);
  pages.post(
    TEST_PATH,
    async ({ call }, form) => {
      const channel = form.get('channel');
      const { status, error } = await call<typeof testNotificationChannel>(
        'post',
        '/notifications/channels/{channel}/test',
        { params: { channel } },
      );
      if (status !== 'sent') {
        throw new ServiceError(
          'conflict',
          `channel ${channel}: ${error ?? 'the test was not sent'}`,
        );
      }
      return { goTo: NOTIFICATIONS_PATH, message: `Channel ${channel} has accepted the test.` };
    },
    show,
  );
}

async function show(visit: Visit): Promise<Content> {
  const cursor = visit.query('cursor');
  const [{ channels, rules }, deliveries] = await Promise.all([
    visit.call<typeof listNotificationRules>('get', '/notifications', {}),
    visit.call<typeof listNotificationDeliveries>('get', '/notifications/deliveries', {
      query: { limit: PAGE, cursor },
    }),
  ]);
  return {
    title: 'Notifications',
    body: html`<section>
        <h2>Rules</h2>
        ${
          rules.length === 0
            ? emptyState(
                'There is no rule yet. Add one from the command line:',
                'service-local notifications add halts --condition halted --channel NAME',
              )
            : ruleTable(rules)
        }
      </section>
      <section>
        <h2>Channels</h2>
        ${
          channels.length === 0
            ? emptyState(
                'This server has no channel. Add one to the file that this command names:',
                'service-local config explain notifications_file',
              )
            : channelTable(channels, visit)
        }
      </section>
      <section>
        <h2>Deliveries</h2>
        ${deliveries.items.length === 0 ? html`<p class="note">None.</p>` : deliveryTable(deliveries.items)}
        ${pager(NOTIFICATIONS_PATH, { cursor }, deliveries.next_cursor)}
      </section>`,
  };
}

function ruleTable(rules: readonly Rule[]): Html {
  return table<Rule>(
    'Rules',
    [
      { title: 'Rule', isHeader: true, cell: ({ name }) => name },
      { title: 'Condition', cell: conditionOf },
      { title: 'Bots', cell: botsOf },
      { title: 'Channel', cell: ({ channel }) => channel },
      { title: 'Since', cell: ({ created_at }) => time(created_at) },
    ],
    rules,
  );
}

function conditionOf({ condition, amount }: Rule): string {
  return `${condition.replaceAll('_', ' ')} ${formatAmount(condition, amount)}`.trim();
}

function botsOf({ bots }: Rule): Child {
  if (bots === null) return 'all';
  return bots.map(
    ({ id, slug }, at) => html`${at > 0 && ', '}<a href="${botPath(slug ?? id)}">${slug ?? id}</a>`,
  );
}

function channelTable(channels: readonly Channel[], { session }: Visit): Html {
  return table<Channel>(
    'Channels',
    [
      { title: 'Channel', isHeader: true, cell: ({ name }) => name },
      { title: 'Type', cell: ({ type }) => type ?? '' },
      {
        title: 'State',
        cell: ({ fault }) => (fault === null ? badge('good', 'ready') : badge('bad', fault)),
      },
      {
        title: 'Test',
        cell: ({ name, type }) =>
          type !== null &&
          html`<form method="post" action="${TEST_PATH}">
            ${csrfField(session)}<input type="hidden" name="channel" value="${name}" /><button
              aria-label="Send a test to ${name}"
            >
              Send a test
            </button>
          </form>`,
      },
    ],
    channels,
  );
}

const STATUS_KINDS = {
  pending: 'warning',
  sent: 'good',
  failed: 'bad',
  grouped: 'neutral',
} as const;

function deliveryTable(deliveries: readonly Delivery[]): Html {
  return table<Delivery>(
    'Deliveries',
    [
      { title: 'Summary', isHeader: true, cell: ({ summary }) => summary },
      { title: 'Rule', cell: ({ rule }) => rule },
      { title: 'Channel', cell: ({ channel }) => channel },
      {
        title: 'Status',
        cell: ({ status, error }) =>
          html`${badge(STATUS_KINDS[status], status)}${error !== null && html`<span class="sub">${error}</span>`}`,
      },
      { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
      { title: 'Created', cell: ({ created_at }) => time(created_at) },
    ],
    deliveries,
  );
}
