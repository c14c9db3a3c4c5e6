import { html } from 'hono/html';
import type { BotListItem, listBots } from '../../api/bots.ts';
import { FIRM_PATH } from './assessment/firm-page.ts';
import { addBotPage } from './bot.ts';
import { addBotEdit } from './bot-edit.ts';
import { addBotEvents } from './bot-events.ts';
import { addNewBot, NEW_BOT_PATH } from './bot-new.ts';
import { addBotRuns } from './bot-runs.ts';
import { addBotTrades } from './bot-trades.ts';
import { addBotVersions } from './bot-versions.ts';
import {
  BOT_COLUMN,
  BOTS_PATH,
  botStatus,
  metricColumns,
  select,
  status,
  taskPath,
} from './bot-parts.ts';
import type { Child } from './html.ts';
import type { Content } from './layout.ts';
import { emptyState, field, pager, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const STATUSES = [
  'draft',
  'active',
  'archived',
] as const satisfies readonly BotListItem['status'][];
const PAGE = 50;

export function addBotPages(pages: Pages): void {
  pages.get(BOTS_PATH, showBots);
  // Before the page of a bot, whose path would match its own.
  addNewBot(pages);
  addBotPage(pages);
  addBotEdit(pages);
  addBotEvents(pages);
  addBotRuns(pages);
  addBotTrades(pages);
  addBotVersions(pages);
}

async function showBots({ call, query }: Visit): Promise<Content> {
  const filter = {
    q: query('q'),
    status: STATUSES.find((one) => one === query('status')),
  };
  const cursor = query('cursor');
  const { items, next_cursor } = await call<typeof listBots>('get', '/bots', {
    query: { ...filter, cursor, limit: PAGE, include: 'activity' },
  });
  const isFiltered = filter.q !== undefined || filter.status !== undefined;
  return {
    title: 'Bots',
    body: html`<p class="actions">
        <a class="button main" href="${NEW_BOT_PATH}">New bot</a>
        <a class="button" href="${FIRM_PATH}">RTS 6 of all bots</a>
      </p>
      ${
        (items.length > 0 || isFiltered) &&
        html`<form method="get" action="${BOTS_PATH}" class="filter" role="search">
          ${field('Name or slug', 'q', { type: 'search', value: filter.q ?? '', maxlength: 120 })}
          ${select('Status', 'status', STATUSES, filter.status)}
          <button>Search</button>
          ${isFiltered && html`<a class="button" href="${BOTS_PATH}">Show all</a>`}
        </form>`
      }
      ${items.length === 0 ? none(isFiltered) : list(items)}
      ${pager(BOTS_PATH, { ...filter, cursor }, next_cursor)}`,
  };
}

function none(isFiltered: boolean): Child {
  return isFiltered
    ? emptyState(
        'No bot matches the filter. To search from the command line:',
        'service-local bots list --query TEXT',
      )
    : emptyState(
        'There is no bot yet. Create one with the button, or from a file:',
        'service-local bots create --file bot.yaml',
      );
}

function list(bots: readonly BotListItem[]): Child {
  return table<BotListItem>(
    'Bots',
    [
      BOT_COLUMN,
      { title: 'Status', cell: (bot) => botStatus(bot.status, bot.activity?.halted) },
      { title: 'Version', isNumber: true, cell: ({ current_version }) => current_version },
      { title: 'Running', isNumber: true, cell: ({ activity }) => activity!.running },
      { title: 'Last run', cell: lastRun },
      ...metricColumns<BotListItem>(({ activity }) => activity!.last),
    ],
    bots,
  );
}

function lastRun({ activity }: BotListItem): Child {
  const last = activity!.last;
  if (last === null) return html`<span class="note">none</span>`;
  return html`${status(last.status)} <a href="${taskPath(last.task_id)}">${last.target}</a>
    <span class="sub">${time(last.ended_at!)}</span>`;
}
