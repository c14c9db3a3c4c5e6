import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, getBotSnapshot, listBotEvents } from '../../api/bot-state.ts';
import type { listBotDeployments } from '../../api/tasks.ts';
import { CHARTS, CHAT, LIVE } from './assets.ts';
import type { LiveData } from './client/live.ts';
import { eventText } from './client/event-text.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath, universeOf } from './bot-parts.ts';
import { talkBox } from './chat-talk.ts';
import { productionSection } from './bot-production.ts';
import { runTable } from './bot-runs.ts';
import { readSession, sessionPart } from './bot-session.ts';
import { HALTS_PATH } from './halt-banner.ts';
import type { Html } from './html.ts';
import type { Content } from './layout.ts';
import { badge, emptyState, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const TAIL = 12;
const RUNS = 5;

export function addBotPage(pages: Pages): void {
  pages.get('/console/bots/:bot_ref', showBot);
}

async function showBot(visit: Visit): Promise<Content> {
  const { call } = visit;
  const bot = await readBot(visit);
  const params = { bot_ref: bot.id };
  const [snapshot, tail, { items: runs }] = await Promise.all([
    call<typeof getBotSnapshot>('get', '/bots/{bot_ref}/state/snapshot', { params, query: {} }),
    call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
      params,
      query: { last: 'true', limit: TAIL },
    }),
    call<typeof listBotDeployments>('get', '/bots/{bot_ref}/deployments', {
      params,
      query: { limit: RUNS },
    }),
  ]);
  const { state, seq } = snapshot;
  const production = await visit.part('The deployments in production', () =>
    productionSection(visit, bot),
  );
  let live: LiveData | undefined;
  const session = await visit.part('The session', async () => {
    live = await readSession(visit, bot, state, seq);
    if (live === undefined) return html`${noSession(bot)} ${await talkBox(visit, bot)}`;
    const shown = live.session;
    const others = Object.keys(state.sessions).filter((one) => one !== shown);
    return sessionPart(visit, bot, live, others.toSorted().toReversed());
  });
  return {
    title: bot.name,
    scripts: [CHARTS, LIVE, CHAT],
    body: botFrame(
      bot,
      '',
      html`${state.halted !== null && html`<p class="message failure">Halted: ${state.halted.reason}</p>`}
        ${production}
        <div
          id="now"
          data-live="${live === undefined ? '' : JSON.stringify(live)}"
          data-bot="${bot.id}"
          data-head="${seq}"
          ${universeOf(bot).isDaily && html`data-daily`}
        >
          ${session}
          <section>
            <div class="heading">
              <h2 id="tail">Newest events</h2>
              <p>
                <span id="connection">${badge('neutral', 'not connected')}</span>
                <a href="${botPath(bot.slug, 'events')}">All events</a>
              </p>
            </div>
            ${eventTable(tail.items.toReversed())}
          </section>
        </div>
        ${
          runs.length > 0 &&
          html`<section>
            <div class="heading">
              <h2 id="last-runs">Newest runs</h2>
              <a href="${botPath(bot.slug, 'runs')}">All runs</a>
            </div>
            ${runTable(visit, bot, runs)}
          </section>`
        }`,
    ),
  };
}

function noSession({ slug, kind, halted }: BotDetail): Html {
  if (kind === 'research') {
    return emptyState(
      'A research bot does not trade. To backtest it:',
      `service-local bots backtest ${slug}`,
    );
  }
  if (halted !== null) {
    return html`<p>
      No paper session can start until the <a href="${HALTS_PATH}">halt</a> is lifted.
    </p>`;
  }
  return emptyState(
    'No paper session is running. Start one here or from the command line:',
    `service-local bots paper start ${slug} --speed 60`,
  );
}

function eventTable(events: readonly BotEvent[]): Html {
  return html`<div class="events" id="tail-table">
    ${table<BotEvent>(
      'The newest events',
      [
        { title: 'Event', isHeader: true, cell: ({ seq }) => seq },
        { title: 'Kind', cell: ({ kind }) => kind },
        { title: 'Happened', cell: ({ occurred_at }) => time(occurred_at) },
        { title: 'Details', cell: ({ kind, payload }) => eventText(kind, payload) },
      ],
      events,
    )}
  </div>`;
}
