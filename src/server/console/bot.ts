import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, getBotSnapshot, listBotEvents } from '../../api/bot-state.ts';
import type { listBotDeployments } from '../../api/tasks.ts';
import { formatMoney, formatPercent, formatQuantity, NO_VALUE } from '../../base/format.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { CHARTS, LIVE } from './assets.ts';
import { describeSession } from './client/describe-session.ts';
import { eventText } from './client/event-text.ts';
import type { LiveData } from './client/live.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath, endPath, figures, shortId, taskPath } from './bot-parts.ts';
import { productionSection } from './bot-production.ts';
import { runTable } from './bot-runs.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { badge, emptyState, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const TAIL = 12;
/** Number of bar events searched for the latest close of each instrument. */
const BARS = 50;
const RUNS = 5;

export function addBotPage(pages: Pages): void {
  pages.get('/console/bots/:bot_ref', showBot);
}

async function showBot(visit: Visit): Promise<Content> {
  const { call, query } = visit;
  const bot = await readBot(visit);
  const params = { bot_ref: bot.id };
  const eventsPath = '/bots/{bot_ref}/state/events';
  const [snapshot, tail, bars, { items: runs }] = await Promise.all([
    call<typeof getBotSnapshot>('get', '/bots/{bot_ref}/state/snapshot', { params, query: {} }),
    call<typeof listBotEvents>('get', eventsPath, { params, query: { last: 'true', limit: TAIL } }),
    call<typeof listBotEvents>('get', eventsPath, {
      params,
      query: { kind: 'data.bars', last: 'true', limit: BARS },
    }),
    call<typeof listBotDeployments>('get', '/bots/{bot_ref}/deployments', {
      params,
      query: { limit: RUNS },
    }),
  ]);
  const production = await productionSection(visit, bot);
  const sessions = Object.entries(snapshot.state.sessions).sort(([a], [b]) => (a < b ? 1 : -1));
  const current = sessions.find(([task_id]) => task_id === query('session')) ?? sessions[0];
  const live: LiveData | undefined = current && {
    bot: bot.id,
    session: current[0],
    head: snapshot.seq,
    state: current[1],
    closes: collectCloses(bars.items, current[0]),
  };
  return {
    title: bot.name,
    scripts: [CHARTS, LIVE],
    body: botFrame(
      bot,
      '',
      html`${snapshot.state.halted !== null && html`<p class="message failure">Halted: ${snapshot.state.halted.reason}</p>`}
        ${production}
        <div
          id="now"
          data-live="${live === undefined ? '' : JSON.stringify(live)}"
          data-bot="${bot.id}"
          data-head="${snapshot.seq}"
        >
          ${
            live === undefined
              ? noSession(bot)
              : sessionPart(
                  visit,
                  bot,
                  live,
                  sessions.map(([task_id]) => task_id),
                )
          }
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

function noSession({ slug, kind }: BotDetail): Html {
  return kind === 'research'
    ? emptyState(
        'A research bot does not trade. To backtest it:',
        `service-local bots backtest ${slug}`,
      )
    : emptyState(
        'No paper session is running. Start one here or from the command line:',
        `service-local bots paper start ${slug} --speed 60`,
      );
}

/** Latest close of each instrument in a session. */
function collectCloses(events: readonly BotEvent[], task_id: string): Record<string, number> {
  const closes: Record<string, number> = {};
  for (const { run_id, payload } of events) {
    if (run_id !== task_id) continue;
    const bars = payload['bars'] as Readonly<Record<string, readonly number[]>>;
    for (const [symbol, bar] of Object.entries(bars)) closes[symbol] = bar[3]!;
  }
  return closes;
}

function sessionPart(
  { session: { csrf_token } }: Visit,
  { slug, active_deployments }: BotDetail,
  { session: task_id, state, closes }: LiveData,
  others: readonly string[],
): Html {
  const { equity, cash, working, time: barTime } = state;
  const described = describeSession(state, closes, {
    money: formatMoney,
    percent: formatPercent,
    units: formatQuantity,
    none: NO_VALUE,
  });
  const isProduction = active_deployments.some(
    (one) => one.task_id === task_id && one.target === 'k8s',
  );
  return html`<section aria-labelledby="session">
      <div class="heading">
        <h2 id="session">
          ${isProduction ? 'Production' : 'Paper'} session
          <a href="${taskPath(task_id)}">${shortId(task_id)}</a>
        </h2>
        <form
          method="post"
          action="${endPath(slug, task_id, isProduction ? 'production' : 'paper')}"
          data-stop
        >
          ${csrfField({ csrf_token })}<button>Stop the session</button>
        </form>
      </div>
      <p class="message ended" hidden>
        <span></span><a href="${taskPath(task_id)}">See the result</a>
      </p>
      ${
        others.length > 1 &&
        html`<p class="line">
          Other sessions:
          ${others
            .filter((one) => one !== task_id)
            .slice(0, 10)
            .map((one) => html`<a href="${botPath(slug)}?session=${one}">${shortId(one)}</a> `)}
        </p>`
      }
      ${figures(
        ['Equity', formatMoney(equity), 'equity'],
        ['Change', NO_VALUE, 'change'],
        ['Drawdown', NO_VALUE, 'drawdown'],
        [RUN_FIGURES.max_drawdown.label, NO_VALUE, 'deepest'],
        ['Cash', formatMoney(cash), 'cash'],
        ['Net exposure', described.net, 'net'],
        ['Gross exposure', described.gross, 'gross'],
        ['Working orders', working.length, 'orders'],
        [
          'Newest bars',
          barTime === null ? 'none yet' : barTime.replace('T', ' ').replace('Z', ''),
          'time',
        ],
      )}
      <figure>
        <div
          id="chart"
          class="chart"
          role="img"
          aria-label="Equity and drawdown"
          aria-describedby="chart-text"
        ></div>
        <figcaption class="note">
          <span id="chart-text"
            >Recorded equity, with drawdown below. The table lists the same figures.</span
          >
          Charts by
          <a href="https://www.tradingview.com/" rel="noreferrer">TradingView Lightweight Charts™</a
          >.
        </figcaption>
        <details id="points">
          <summary>The chart as a table</summary>
          <div class="scroll stream" role="region" aria-label="Equity over time" tabindex="0">
            <table>
              <thead>
                <tr>
                  <th scope="col">Time</th>
                  <th scope="col" class="number">Equity</th>
                  <th scope="col" class="number">Drawdown</th>
                </tr>
              </thead>
              <tbody></tbody>
            </table>
          </div>
        </details>
      </figure>
    </section>
    <div class="halves">
      <section>
        <h2 id="positions">Positions</h2>
        ${replaceableTable(
          'positions',
          ['Symbol', 'Units', 'Close', 'Value', 'Share of equity'],
          described.positions,
          'No open positions.',
        )}
      </section>
      <section>
        <h2 id="working">Working orders</h2>
        ${replaceableTable(
          'working',
          ['Order', 'Symbol', 'Type', 'Units', 'Price'],
          described.orders,
          'None.',
        )}
      </section>
    </div>`;
}

/**
 * A table whose rows `client/live.ts` replaces. The first column names the row, and all columns
 * after the second are numbers.
 */
function replaceableTable(
  id: string,
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  none: string,
): Child {
  return html`<p class="note" id="${id}-none" ${rows.length > 0 && html`hidden`}>${none}</p>
    <div
      class="scroll"
      role="region"
      aria-labelledby="${id}"
      tabindex="0"
      id="${id}-table"
      ${rows.length === 0 && html`hidden`}
    >
      <table>
        <thead>
          <tr>
            ${titles.map((title) => html`<th scope="col">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ([first, ...rest]) =>
              html`<tr>
                <th scope="row">${first}</th>
                ${rest.map((cell) => html`<td>${cell}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>`;
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
