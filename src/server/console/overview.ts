/** The start page: what runs, and what needs attention. */
import { html } from 'hono/html';
import type { BotListItem, listBots } from '../../api/bots.ts';
import type { License, listLicenses } from '../../api/licenses.ts';
import type { getOverview, listAlerts, Overview, RaisedAlert } from '../../api/overview.ts';
import { formatCountOf, formatMoney, formatPercent, NO_VALUE } from '../../base/format.ts';
import { OVERVIEW } from './assets.ts';
import {
  BOT_COLUMN,
  BOTS_PATH,
  botPath,
  botStatus,
  figures,
  TASKS_PATH,
  taskPath,
  withQuery,
} from './bot-parts.ts';
import { HALTS_PATH } from './halt-banner.ts';
import type { Child, Html } from './html.ts';
import { START_PAGE, type Content } from './layout.ts';
import { installationLink, LICENSES } from './license-parts.ts';
import { NOTIFICATIONS_PATH } from './notifications.ts';
import { badge, emptyState, pager, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const PAGE = 50;
const ALERTS = 10;
const LEASES = 5;

export function addOverviewPage(pages: Pages): void {
  pages.get(START_PAGE, showOverview);
}

/** Needs the same number of requests for any number of bots. */
async function showOverview({ call, query }: Visit): Promise<Content> {
  const isAll = query('show') === 'all';
  const cursor = query('cursor');
  const [counts, bots, alerts, leases] = await Promise.all([
    call<typeof getOverview>('get', '/overview', {}),
    call<typeof listBots>('get', '/bots', {
      query: { limit: PAGE, cursor, include: 'activity', ...(!isAll && { running: 'true' }) },
    }),
    call<typeof listAlerts>('get', '/alerts', { query: { limit: ALERTS } }),
    call<typeof listLicenses>('get', '/identity/licenses', {
      query: { silent: 'true', limit: LEASES },
    }),
  ]);
  return {
    title: 'Overview',
    scripts: [OVERVIEW],
    body: html`<div id="overview">
      ${attention(counts, leases.items.length, leases.next_cursor !== null)}
      ${figures(
        ['Running bots', counts.running_bots],
        ['All bots', html`<a href="${BOTS_PATH}">${counts.bots}</a>`],
        ['Halts in force', counts.halts.bot + counts.halts.all],
        ['Critical alerts, 24 h', counts.alerts.critical],
        ['Warnings, 24 h', counts.alerts.warning],
        ['Failed runs, 24 h', counts.failed_tasks],
      )}
      <section>
        <div class="heading">
          <h2 id="bots">${isAll ? 'All bots' : 'Running bots'}</h2>
          <a href="${isAll ? START_PAGE : withQuery(START_PAGE, { show: 'all' })}"
            >${isAll ? 'Show running bots' : 'Show all bots'}</a
          >
        </div>
        ${bots.items.length === 0 ? noBots(isAll) : botTable(bots.items)}
        ${pager(START_PAGE, { show: isAll ? 'all' : undefined, cursor }, bots.next_cursor)}
      </section>
      <div class="halves">
        <section>
          <div class="heading">
            <h2 id="alerts">Newest alerts</h2>
            <a href="${NOTIFICATIONS_PATH}">Notifications</a>
          </div>
          ${alerts.items.length === 0 ? html`<p class="note">None.</p>` : alertTable(alerts.items)}
        </section>
        <section>
          <div class="heading">
            <h2 id="leases">Leases running out</h2>
            <a href="${LICENSES}">All licenses</a>
          </div>
          ${leases.items.length === 0 ? html`<p class="note">None.</p>` : leaseTable(leases.items)}
        </section>
      </div>
    </div>`,
  };
}

/** One look: whether something is wrong, and where. */
function attention({ halts, alerts, failed_tasks }: Overview, silent: number, more: boolean): Html {
  const found: Html[] = [];
  if (halts.all > 0) found.push(html`<a href="${HALTS_PATH}">all bots are halted</a>`);
  if (halts.bot > 0)
    found.push(html`<a href="${HALTS_PATH}">${formatCountOf(halts.bot, 'bot')} halted</a>`);
  if (alerts.critical > 0)
    found.push(html`<a href="#alerts">${formatCountOf(alerts.critical, 'critical alert')}</a>`);
  if (failed_tasks > 0)
    found.push(
      html`<a href="${withQuery(TASKS_PATH, { status: 'failed' })}"
        >${formatCountOf(failed_tasks, 'failed run')}</a
      >`,
    );
  if (silent > 0)
    found.push(
      html`<a href="#leases"
        >${more ? `more than ${LEASES} leases` : formatCountOf(silent, 'lease')} not renewed</a
      >`,
    );
  return found.length === 0
    ? html`<p class="message verdict">${badge('good', 'Nothing needs attention.')}</p>`
    : html`<p class="message failure verdict">
        ${badge('bad', 'Needs attention:')}
        <span>${found.map((one, i) => html`${i > 0 && ', '}${one}`)}</span>
      </p>`;
}

function noBots(isAll: boolean): Child {
  return isAll
    ? emptyState(
        'There is no bot yet. Create one from a file:',
        'service-local bots create --file bot.yaml',
      )
    : emptyState('No bot is running. Start a paper session:', 'service-local bots paper start BOT');
}

type Session = NonNullable<BotListItem['activity']>['sessions'][number];

function botTable(bots: readonly BotListItem[]): Html {
  const sum = (
    { activity }: BotListItem,
    value: (session: Session) => number | null,
  ): number | null => {
    const values = activity!.sessions.map(value);
    if (values.length === 0 || values.includes(null)) return null;
    return values.reduce<number>((all, one) => all + one!, 0);
  };
  const today = (bot: BotListItem): Child => {
    const [now, start] = [
      sum(bot, ({ equity }) => equity),
      sum(bot, (one) => one.day_start_equity),
    ];
    if (now === null || start === null || start <= 0) return NO_VALUE;
    const change = now / start - 1;
    return html`<span class="${change > 0 ? 'good' : change < 0 ? 'bad' : ''}"
      >${formatPercent(change)}</span
    >`;
  };
  const exposure = (bot: BotListItem): string => {
    const [held, equity] = [sum(bot, (one) => one.gross_exposure), sum(bot, (one) => one.equity)];
    return held === null || equity === null || equity <= 0
      ? NO_VALUE
      : formatPercent(held / equity);
  };
  const isNumber = true as const;
  return table<BotListItem>(
    'Bots',
    [
      BOT_COLUMN,
      { title: 'Status', cell: (bot) => botStatus(bot.status, bot.activity?.halted) },
      { title: 'Sessions', isNumber, cell: ({ activity }) => activity!.sessions.length },
      {
        title: 'Equity',
        isNumber,
        cell: (bot) => {
          const equity = sum(bot, (one) => one.equity);
          return equity === null ? NO_VALUE : formatMoney(equity);
        },
      },
      { title: 'Today', isNumber, cell: today },
      { title: 'Exposure', isNumber, cell: exposure },
      {
        title: 'Working orders',
        isNumber,
        cell: (bot) => sum(bot, (one) => one.working_orders) ?? NO_VALUE,
      },
      { title: 'Newest bars', cell: newestBars },
    ],
    bots,
  );
}

function newestBars({ activity }: BotListItem): Child {
  const times = activity!.sessions.flatMap(({ time: at }) => at ?? []).toSorted();
  return times.length === 0 ? NO_VALUE : time(times.at(-1)!);
}

function alertTable(alerts: readonly RaisedAlert[]): Html {
  return table<RaisedAlert>(
    'Newest alerts',
    [
      {
        title: 'Alert',
        isHeader: true,
        cell: ({ severity, control, bot_slug, seq }) =>
          html`<a href="${withQuery(botPath(bot_slug, 'events'), { at_seq: seq })}"
              >${control.replaceAll('_', ' ')}</a
            ><span class="sub"
              >${badge(severity === 'critical' ? 'bad' : 'warning', severity)}</span
            >`,
      },
      {
        title: 'Bot',
        cell: ({ bot_slug, bot_name }) => html`<a href="${botPath(bot_slug)}">${bot_name}</a>`,
      },
      {
        title: 'Recorded',
        cell: ({ recorded_at, run_id }) =>
          html`${time(recorded_at)}${run_id !== null && html`<span class="sub"><a href="${taskPath(run_id)}">session</a></span>`}`,
      },
    ],
    alerts,
  );
}

function leaseTable(leases: readonly License[]): Html {
  return table<License>(
    'Leases running out',
    [
      {
        title: 'Installation',
        isHeader: true,
        cell: ({ deployment_id }) => installationLink(deployment_id),
      },
      { title: 'State', cell: ({ state }) => state },
      { title: 'Ends', cell: ({ lease }) => (lease === null ? NO_VALUE : time(lease.expires_at)) },
    ],
    leases,
  );
}
