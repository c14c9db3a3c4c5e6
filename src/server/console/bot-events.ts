import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, getBotSnapshot, listBotEvents, PaperSession } from '../../api/bot-state.ts';
import type { AnswerOf } from '../../client/route.ts';
import { formatMoney, formatQuantity } from '../../base/format.ts';
import { TIMELINE } from './assets.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath, eventDetails, shortId, status, taskPath } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import type { Content } from './layout.ts';
import { badge, emptyState, facts, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

const PAGE = 50;

/** Kinds of events about a deployment in a cluster. */
export const DEPLOY_KINDS = [
  'deploy.planned',
  'deploy.applied',
  'deploy.progressing',
  'deploy.ready',
  'deploy.degraded',
  'deploy.missing',
  'deploy.unreachable',
  'deploy.scaled_down',
  'deploy.ended',
] as const;

/** Kinds of events, in the groups by which the page filters. */
const KINDS = {
  bars: { title: 'Bars', kinds: ['data.bars'] },
  orders: {
    title: 'Orders',
    kinds: [
      'order.submitted',
      'order.triggered',
      'order.filled',
      'order.canceled',
      'order.expired',
      'order.rejected',
      'order.denied',
      'account.margin_call',
      'account.latched',
      'order.corrected',
    ],
  },
  log: { title: 'Strategy log', kinds: ['strategy.log'] },
  faults: { title: 'Data faults', kinds: ['data.gap', 'data.refused'] },
  alerts: { title: 'Alerts', kinds: ['alert.raised'] },
  state: { title: 'Account states', kinds: ['session.state'] },
  runs: {
    title: 'Runs',
    kinds: [
      'run.queued',
      'run.started',
      'run.progress',
      'run.requeued',
      'run.stop_requested',
      'run.cancel_requested',
      'run.ended',
    ],
  },
  production: {
    title: 'Production',
    kinds: [
      ...DEPLOY_KINDS,
      'control.denying',
      'venue.report',
      'venue.terms',
      'venue.phase',
      'venue.halted',
      'venue.orphan',
      'venue.foreign',
      'venue.mismatch',
    ],
  },
  halts: { title: 'Halts', kinds: ['control.halted', 'control.resumed', 'control.re_enabled'] },
  bot: {
    title: 'Bot',
    kinds: ['bot.created', 'version.created', 'bot.updated', 'bot.activated', 'bot.archived'],
  },
} as const;

type Group = keyof typeof KINDS;

export function addBotEvents(pages: Pages): void {
  pages.get('/console/bots/:bot_ref/events', showEvents);
}

type Snapshot = AnswerOf<typeof getBotSnapshot>;

async function showEvents(visit: Visit): Promise<Content> {
  const { call, c, query } = visit;
  const bot = await readBot(visit);
  const groups = (Object.keys(KINDS) as Group[]).filter((one) =>
    c.req.queries('show')?.includes(one),
  );
  const requestedSeq = Number(query('at_seq') ?? NaN);
  const params = { bot_ref: bot.id };
  const snapshotAt = (at_seq: number | undefined): Promise<Snapshot> =>
    call<typeof getBotSnapshot>('get', '/bots/{bot_ref}/state/snapshot', {
      params,
      query: { at_seq },
    });
  const snapshot = await snapshotAt(
    Number.isInteger(requestedSeq) && requestedSeq > 0 ? requestedSeq : undefined,
  );
  const kind = groups.flatMap((one) => KINDS[one].kinds).join(',') || undefined;
  const { items } = await call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
    params,
    query: { until_seq: snapshot.seq, kind, last: 'true', limit: PAGE },
  });
  return {
    title: bot.name,
    scripts: [TIMELINE],
    body: botFrame(
      bot,
      'events',
      html`${slider(bot, snapshot, groups)}
        <div id="moment">
          ${stateSection(bot, snapshot)}
          <section aria-labelledby="events">
            <h2 id="events">Events up to this one, newest first</h2>
            ${
              items.length === 0
                ? emptyState(
                    'No event up to this one has a selected kind. To list all events:',
                    `service-local bots events ${bot.slug} --after-seq 0`,
                  )
                : eventTable(bot, items.toReversed(), groups)
            }
          </section>
        </div>
        <p class="note">
          From the command line: <code>service-local bots events ${bot.slug} --follow</code>,
          <code>service-local bots snapshot ${bot.slug} --at-seq ${snapshot.seq}</code>,
          <code>service-local bots replay ${bot.slug}</code>
        </p>`,
    ),
  };
}

function slider({ slug }: BotDetail, { seq, head_seq }: Snapshot, groups: readonly Group[]): Html {
  return html`<form method="get" action="${botPath(slug, 'events')}" id="timeline">
    <div class="slider">
      <div class="range">
        <label for="at">State after event <output for="at">${seq}</output> of ${head_seq}</label>
        <input
          id="at"
          type="range"
          name="at_seq"
          min="1"
          max="${head_seq}"
          value="${seq}"
          autocomplete="off"
        />
      </div>
      <button>Show</button>
      <a class="button" href="${botPath(slug, 'events')}">Newest</a>
    </div>
    <fieldset>
      <legend>Show only</legend>
      <div class="kinds">
        ${Object.entries(KINDS).map(
          ([group, { title }]) =>
            html`<label
              ><input
                type="checkbox"
                name="show"
                value="${group}"
                autocomplete="off"
                ${groups.includes(group as Group) && html`checked`}
              />
              ${title}</label
            >`,
        )}
      </div>
    </fieldset>
  </form>`;
}

function stateSection({ slug }: BotDetail, { seq, state, state_hash }: Snapshot): Html {
  const sessions = Object.entries(state.sessions);
  return html`<section aria-labelledby="state">
    <h2 id="state">The state after event ${seq}</h2>
    ${facts(
      ['Name', state.name],
      ['Status', state.halted === null ? status(state.status) : badge('bad', 'halted')],
      ['Version', state.version],
      ['Last changed', time(state.updated_at)],
      ['Halted', state.halted === null ? 'no' : state.halted.reason],
      ['Hash of the state', html`<code>${state_hash.slice(0, 16)}…</code>`],
    )}
    ${
      sessions.length === 0
        ? html`<p class="note">No paper session was running.</p>`
        : table<(typeof sessions)[number]>(
            'Paper sessions after this event',
            [
              {
                title: 'Session',
                isHeader: true,
                cell: ([task_id]) => html`<a href="${taskPath(task_id)}">${shortId(task_id)}</a>`,
              },
              { title: 'Status', cell: ([, one]) => status(one.status) },
              {
                title: 'Bars',
                cell: ([, one]) => (one.time === null ? 'none yet' : time(one.time)),
              },
              { title: 'Equity', isNumber: true, cell: ([, one]) => formatMoney(one.equity) },
              { title: 'Cash', isNumber: true, cell: ([, one]) => formatMoney(one.cash) },
              { title: 'Positions', cell: ([, one]) => positionsOf(one) },
              { title: 'Working orders', isNumber: true, cell: ([, one]) => one.working.length },
            ],
            sessions,
          )
    }
    <p class="unseen"><a href="${botPath(slug)}">Current state of the bot</a></p>
  </section>`;
}

function positionsOf({ positions }: PaperSession): string {
  const held = Object.entries(positions).map(
    ([symbol, units]) => `${symbol} ${formatQuantity(units)}`,
  );
  return held.length === 0 ? 'flat' : held.join(', ');
}

function eventTable(
  { slug }: BotDetail,
  events: readonly BotEvent[],
  groups: readonly Group[],
): Child {
  const at = (seq: number): string => {
    const query = new URLSearchParams([
      ['at_seq', String(seq)],
      ...groups.map((one) => ['show', one]),
    ]);
    return `${botPath(slug, 'events')}?${query}`;
  };
  return html`<div class="events">
    ${table<BotEvent>(
      'Events',
      [
        {
          title: 'Event',
          isHeader: true,
          cell: ({ seq }) =>
            html`<a href="${at(seq)}" aria-label="The state after event ${seq}">${seq}</a>`,
        },
        { title: 'Kind', cell: ({ kind }) => kind },
        { title: 'Happened', cell: ({ occurred_at }) => time(occurred_at) },
        { title: 'Recorded', cell: ({ recorded_at }) => time(recorded_at) },
        eventDetails(),
      ],
      events,
    )}
  </div>`;
}
