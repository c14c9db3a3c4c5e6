/** The trading session on the page of a bot: its charts, figures, orders, limits and trades. */
import { html, raw } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, BotState, listBotEvents, PaperSession } from '../../api/bot-state.ts';
import type { getTask } from '../../api/tasks.ts';
import { LOG_BUTTON, RANGE_BUTTONS } from '../../base/charts/chart-buttons.ts';
import { formatMoney, formatPercent, formatQuantity, NO_VALUE } from '../../base/format.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { describeSession } from './client/describe-session.ts';
import { RANGES } from './client/follow-range.ts';
import type { LiveData } from './client/live.ts';
import { logRows } from './client/log-rows.ts';
import { limitsSection, readLimits } from './bot-limits.ts';
import { barTime, botPath, endPath, figures, shortId, taskPath, universeOf } from './bot-parts.ts';
import { tradesSection } from './bot-trades.ts';
import { talkBox } from './chat-talk.ts';
import type { Child, Html } from './html.ts';
import { csrfField } from './layout.ts';
import { badge } from './parts.ts';
import type { Visit } from './pages.ts';

/** Number of bar events searched for the latest close of each instrument. */
const BARS = 50;
/** Number of logged lines that are shown. */
const LOG_LINES = 100;
const EVENTS = '/bots/{bot_ref}/state/events';

/**
 * Reads the session that the query names, else the newest one that runs, else the newest one; undefined
 * if the log of the bot has none.
 *
 * @param head sequence number of the last event in `state`.
 */
export async function readSession(
  visit: Visit,
  bot: BotDetail,
  state: BotState,
  head: number,
): Promise<LiveData | undefined> {
  const { call, query } = visit;
  const params = { bot_ref: bot.id };
  const running = Object.keys(state.sessions).toSorted().toReversed();
  const wanted = query('session') ?? running[0];
  const { items } = await call<typeof listBotEvents>('get', EVENTS, {
    params,
    query: {
      kind: 'session.state',
      last: 'true',
      limit: 1,
      until_seq: head,
      ...(wanted !== undefined && { run_id: wanted }),
    },
  });
  const [newest] = items;
  if (newest?.run_id === undefined || newest.run_id === null) return undefined;
  const session = newest.run_id;
  const { items: bars } = await call<typeof listBotEvents>('get', EVENTS, {
    params,
    query: { kind: 'data.bars', run_id: session, last: 'true', limit: BARS, until_seq: head },
  });
  const { items: first } = await call<typeof listBotEvents>('get', EVENTS, {
    params,
    query: { kind: 'session.state', run_id: session, limit: 1 },
  }).catch(() => ({ items: [] }));
  const { items: logged } = await call<typeof listBotEvents>('get', EVENTS, {
    params,
    query: {
      kind: 'strategy.log',
      run_id: session,
      last: 'true',
      limit: LOG_LINES,
      until_seq: head,
    },
  });
  const opened = first[0]?.payload as PaperSession | undefined;
  const { isDaily } = universeOf(bot);
  return {
    bot: bot.id,
    session,
    hasEnded: state.sessions[session] === undefined,
    state: newest.payload as unknown as PaperSession,
    closes: collectCloses(bars),
    // The API logs its errors.
    limits: await readLimits(visit, bot, session).catch(() => null),
    cash: opened?.equity ?? 0,
    log: logged
      .toReversed()
      .flatMap((event) => logRows(event, isDaily))
      .slice(0, LOG_LINES),
  };
}

/** Latest close of each instrument in events of bars. */
function collectCloses(events: readonly BotEvent[]): Record<string, number> {
  const closes: Record<string, number> = {};
  for (const { payload } of events) {
    const bars = payload['bars'] as Readonly<Record<string, readonly number[]>>;
    for (const [symbol, bar] of Object.entries(bars)) closes[symbol] = bar[3]!;
  }
  return closes;
}

export async function sessionPart(
  visit: Visit,
  bot: BotDetail,
  live: LiveData,
  others: readonly string[],
): Promise<Html> {
  const { state, closes, session: task_id } = live;
  const described = describeSession(state, closes, {
    money: formatMoney,
    percent: formatPercent,
    units: formatQuantity,
    none: NO_VALUE,
  });
  return html`${await sessionHeading(visit, bot, live, others)}
    <div class="desk">
      <div>${chartsSection(bot, visit.query('chart'))}</div>
      <div class="side">
        ${await talkBox(visit, bot)}
        <section>
          <h2 id="positions">Positions</h2>
          ${replaceableTable(
            'positions',
            ['Symbol', 'Units', 'Close', 'Value', 'Share'],
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
        ${limitsSection(live)}
      </div>
    </div>
    ${await visit.part('The trades', () => tradesSection(visit, bot, task_id))}
    <section>
      <div class="heading">
        <h2 id="log">Log of the strategy</h2>
        <p><a href="${botPath(bot.slug, 'events')}?show=log">All lines</a></p>
      </div>
      ${replaceableTable('log', ['Bar', 'Line'], live.log, 'The strategy has logged no line in this session.')}
    </section>`;
}

async function sessionHeading(
  { call, session: { csrf_token } }: Visit,
  bot: BotDetail,
  { session: task_id, state, closes, hasEnded, cash: start }: LiveData,
  others: readonly string[],
): Promise<Html> {
  const { slug, active_deployments } = bot;
  const { equity, cash, working, time: newest, carry } = state;
  const money = { money: formatMoney, percent: formatPercent, units: formatQuantity };
  const described = describeSession(state, closes, { ...money, none: NO_VALUE });
  const task = await call<typeof getTask>('get', '/tasks/{task_id}', { params: { task_id } });
  const isProduction = task.kind === 'production';
  const canStop = active_deployments.some((one) => one.task_id === task_id);
  const day = carry?.risk.day_start_equity ?? 0;
  return html`<section aria-labelledby="session">
    <div class="heading">
      <h2 id="session">
        ${isProduction ? 'Production' : 'Paper'} session
        <a href="${taskPath(task_id)}">${shortId(task_id)}</a>
        ${hasEnded && badge(task.status === 'failed' ? 'bad' : 'neutral', `ended: ${task.status}`)}
      </h2>
      ${
        canStop &&
        html`<form
          method="post"
          action="${endPath(slug, task_id, isProduction ? 'production' : 'paper')}"
          data-stop
        >
          ${csrfField({ csrf_token })}<button>Stop the session</button>
        </form>`
      }
    </div>
    <p class="message ended" ${!hasEnded && html`hidden`}>
      <span>${hasEnded && 'No session is running. The page shows the record of this one. '}</span
      ><a href="${taskPath(task_id)}">See the result</a>
    </p>
    ${
      others.length > 0 &&
      html`<p class="line">
        Other sessions:
        ${others
          .slice(0, 10)
          .map((one) => html`<a href="${botPath(slug)}?session=${one}">${shortId(one)}</a> `)}
      </p>`
    }
    ${figures(
      ['Equity', formatMoney(equity), 'equity'],
      ['Today', day > 0 ? formatPercent(equity / day - 1) : NO_VALUE, 'today'],
      ['Since the start', start > 0 ? formatPercent(equity / start - 1) : NO_VALUE, 'change'],
      ['Drawdown', NO_VALUE, 'drawdown'],
      [RUN_FIGURES.max_drawdown.label, NO_VALUE, 'deepest'],
      ['Cash', formatMoney(cash), 'cash'],
      ['Net exposure', described.net, 'net'],
      ['Gross exposure', described.gross, 'gross'],
      ['Working orders', working.length, 'orders'],
      [
        'Newest bars',
        newest === null ? 'none yet' : barTime(newest, universeOf(bot).isDaily),
        'time',
      ],
    )}
  </section>`;
}

function chartsSection(bot: BotDetail, chosen: string | undefined): Html {
  const { symbols } = universeOf(bot);
  return html`<section id="charts">
    ${chart(
      'prices',
      'Prices',
      html`${
          symbols.length > 1 &&
          html`<label class="unseen" for="chart-symbol">Instrument of the chart</label>
            <select id="chart-symbol">
              ${symbols.map((one) => html`<option ${one === chosen && html`selected`}>${one}</option>`)}
            </select>`
        }
        <div class="presets" role="group" aria-label="Newest part of the charts">
          ${Object.entries(RANGES).map(rangeButton)}
        </div>
        ${raw(RANGE_BUTTONS.source)}${raw(LOG_BUTTON.source)}`,
      html`<div class="indicators"></div>
        <p class="note" id="no-indicators" hidden>
          The report of a backtest draws the indicators of custom code.
        </p>`,
    )}
    ${chart('equity', 'Equity and drawdown', '', EQUITY_TABLE)}
  </section>`;
}

function rangeButton([name, seconds]: readonly [string, number]): Html {
  return html`<button
    type="button"
    data-range="${name}"
    data-seconds="${seconds}"
    aria-pressed="false"
    hidden
  >
    ${name}
  </button>`;
}

function chart(id: 'prices' | 'equity', title: string, controls: Child, below: Child): Html {
  return html`<figure>
    <div class="heading">
      <h2 id="${id}-title">${title}</h2>
      <div class="controls">${controls}</div>
    </div>
    <p class="readings"></p>
    <div
      class="chart"
      id="${id}"
      role="img"
      aria-labelledby="${id}-title"
      aria-describedby="${id}-text"
    ></div>
    ${below}
    <figcaption class="note" id="${id}-text">
      ${
        id === 'prices'
          ? html`Up arrows are purchases, down arrows sales, squares denied or rejected orders;
              dotted lines are working orders. Charts by
              <a href="https://www.tradingview.com/" rel="noreferrer"
                >TradingView Lightweight Charts™</a
              >.`
          : 'The table lists the same figures.'
      }
    </figcaption>
  </figure>`;
}

const EQUITY_TABLE = html`<details id="points">
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
</details>`;

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
