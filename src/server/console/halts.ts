import { html } from 'hono/html';
import type { getBot } from '../../api/bots.ts';
import type {
  Halt,
  haltAllBots,
  haltBot,
  HaltReport,
  listHalts,
  resumeAllBots,
  resumeBot,
} from '../../api/halts.ts';
import type { listTasks } from '../../api/tasks.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCount, formatCountOf } from '../../base/format.ts';
import { HALTING } from './assets.ts';
import { readBotNames, type BotNames } from './bot-names.ts';
import { readBot } from './bot-frame.ts';
import { botPath, shortId, status, taskPath, textField } from './bot-parts.ts';
import { HALTS_PATH } from './halt-banner.ts';
import type { Child, Html } from './html.ts';
import { csrfField, HALT_ALL_PATH, type Content } from './layout.ts';
import { badge, emptyState, facts, field, pager, table, time, who } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

const CONFIRMATION = 'HALT';
const BOT_HALT = '/console/bots/:bot_ref/halt';
const PAGE = 50;
/** Number of deployments in the report of a halt, unverified ones first. */
const LISTED = 200;

/** Registers the pages of the kill switch, of halts of one bot, and of resuming. */
export function addHaltPages(pages: Pages): void {
  pages.get(HALTS_PATH, showHalts);

  pages.get(HALT_ALL_PATH, showHaltAll);
  pages.post(
    HALT_ALL_PATH,
    async ({ call }, form) => {
      if (form.get('confirm').trim() !== CONFIRMATION) {
        throw new ServiceError('invalid_request', 'the confirmation is not the expected word', {
          remedy: `Type ${CONFIRMATION} to halt all bots.`,
        });
      }
      const body = { reason: form.get('reason') };
      const report = await call<typeof haltAllBots>('post', '/bots/halt-all', { body });
      return reportPage(report, await readHaltedBots(call, report));
    },
    showHaltAll,
  );

  pages.get(BOT_HALT, showHaltBot);
  pages.post(
    BOT_HALT,
    async ({ call, param }, form) => {
      const request = {
        params: { bot_ref: param('bot_ref') },
        body: { reason: form.get('reason') },
      };
      const report = await call<typeof haltBot>('post', '/bots/{bot_ref}/halt', request);
      return reportPage(report, await readHaltedBots(call, report));
    },
    showHaltBot,
  );

  pages.post(
    '/console/resume-all',
    async ({ call }, form) => {
      const body = { reason: form.get('reason') };
      await call<typeof resumeAllBots>('post', '/bots/resume-all', { body });
      return { goTo: HALTS_PATH, message: 'The halt of all bots is lifted. Nothing was started.' };
    },
    showHalts,
  );
  pages.post(
    '/console/bots/:bot_ref/resume',
    async ({ call, param }, form) => {
      const params = { bot_ref: param('bot_ref') };
      const body = { reason: form.get('reason') };
      await call<typeof resumeBot>('post', '/bots/{bot_ref}/resume', { params, body });
      const { name } = await call<typeof getBot>('get', '/bots/{bot_ref}', { params, headers: {} });
      return {
        goTo: HALTS_PATH,
        message: `The halt of ${name} is lifted. Nothing was started.`,
      };
    },
    showHalts,
  );
}

const WHAT_IT_DOES = html`<p>
  From then on, no session can start. Working orders are canceled and sessions are ended, even if
  their workers do not respond. The result is then verified in the database. Backtests continue.
</p>`;

const REASON_HINT = 'Stored with the halt, in the audit log and in the event logs of the bots.';

/** Steps that a script marks as done while the server is halting. */
const STEPS = html`<ol class="steps" data-steps hidden>
    <li data-step="asked">The request is sent.</li>
    <li data-step="latched">Nothing can start or continue.</li>
    <li data-step="ended">
      Orders are canceled and sessions are ended: <span data-ended>0</span> so far.
    </li>
    <li data-step="verified">Each deployment and each order is verified.</li>
  </ol>
  <p class="failure" role="alert"></p>`;

async function showHaltAll({ call, session }: Visit, form?: Form): Promise<Content> {
  const query = { status: 'running', kind: 'paper,production', limit: 1000 } as const;
  const { items, next_cursor } = await call<typeof listTasks>('get', '/tasks', { query });
  const count = items.length;
  const sessions =
    next_cursor === null
      ? formatCountOf(count, 'session')
      : `${formatCount(count)} sessions or more`;
  return {
    title: 'Halt all bots',
    scripts: [HALTING],
    body: html`${WHAT_IT_DOES}
      <p><strong>${sessions}</strong> ${count === 1 ? 'is' : 'are'} running now.</p>
      <form method="post" action="${HALT_ALL_PATH}" data-halt="all">
        ${csrfField(session)}
        ${field('Reason', 'reason', { required: true, maxlength: 500, autofocus: true, autocomplete: 'off', value: form?.get('reason') ?? '' }, REASON_HINT)}
        ${field(`Type ${CONFIRMATION} to confirm`, 'confirm', { required: true, pattern: ` *${CONFIRMATION} *`, autocomplete: 'off', autocapitalize: 'characters', spellcheck: 'false' })}
        <button class="danger">Halt all bots</button>
        ${STEPS}
      </form>
      <p class="note">
        From the command line: <code>service-local bots halt-all --reason "…"</code>
      </p>`,
  };
}

async function showHaltBot(visit: Visit, form?: Form): Promise<Content> {
  const { id, name, slug, active_deployments } = await readBot(visit);
  const sessions = active_deployments.filter(
    ({ target }) => target === 'paper' || target === 'k8s',
  );
  return {
    title: `Halt ${name}`,
    scripts: [HALTING],
    body: html`<p><a href="${botPath(slug)}">Back to the bot</a></p>
      ${WHAT_IT_DOES}
      <p>
        <strong>${formatCountOf(sessions.length, 'session')}</strong> of this bot
        ${sessions.length === 1 ? 'is' : 'are'} running now.
      </p>
      <form method="post" action="${botPath(slug, 'halt')}" data-halt="${id}">
        ${csrfField(visit.session)}
        ${field('Reason', 'reason', { required: true, maxlength: 500, autofocus: true, autocomplete: 'off', value: form?.get('reason') ?? '' }, REASON_HINT)}
        <button class="danger">Halt this bot</button>
        ${STEPS}
      </form>
      <p class="note">
        From the command line: <code>service-local bots halt ${slug} --reason "…"</code>
      </p>`,
  };
}

/** Names that cannot be read are left out: a halt that succeeded must not look like a failure. */
async function readHaltedBots(
  call: Visit['call'],
  { bot_id, deployments }: HaltReport,
): Promise<BotNames> {
  const listed = firstUnverified(deployments).map((one) => one.bot_id);
  return readBotNames(call, bot_id === null ? listed : [bot_id, ...listed]).catch(() => new Map());
}

type Deployment = HaltReport['deployments'][number];

function firstUnverified(deployments: readonly Deployment[]): readonly Deployment[] {
  const rank = ({ verified }: Deployment): number => (verified ? 1 : 0);
  return deployments.toSorted((a, b) => rank(a) - rank(b)).slice(0, LISTED);
}

function reportPage(report: HaltReport, names: BotNames): Content {
  const { bot_id, verified, in_force, deployments, latched_ms, verified_ms } = report;
  const whose = bot_id === null ? 'All bots' : (names.get(bot_id)?.name ?? bot_id);
  const orders = deployments.flatMap((one) => one.orders);
  const listed = firstUnverified(deployments);
  const left = deployments.length - listed.length;
  return {
    title: verified
      ? `${whose} ${bot_id === null ? 'are' : 'is'} halted`
      : `The halt of ${bot_id === null ? 'all bots' : whose} is not verified`,
    status: verified ? 200 : 207,
    body: html`${
        verified
          ? html`<p class="message" role="status" tabindex="-1" data-message>
              Verified: ${formatCountOf(deployments.length, 'deployment')} ended and
              ${formatCountOf(orders.length, 'order')} canceled, as verified in the database.
            </p>`
          : html`<div class="message failure" role="alert" tabindex="-1" data-message>
              <p>
                ${in_force ? 'The halt is in force, but not everything could be verified; see the marked rows below.' : 'It could not be verified that the halt is in force.'}
                Submit the halt again. If that does not help, stop the servers and workers.
              </p>
            </div>`
      }
      ${facts(
        ['Halt', html`<code>${report.halt_id}</code>`],
        ['Reason', report.reason],
        ['Since', time(report.requested_at)],
        ['In force after', `${formatCount(latched_ms)} ms`],
        ['Verified after', `${formatCount(verified_ms)} ms`],
      )}
      ${listed.length === 0 ? html`<p>Nothing was trading.</p>` : deploymentTable(listed, names)}
      ${left > 0 && html`<p class="note">${formatCountOf(left, 'more deployment')} ${left === 1 ? 'is' : 'are'} not listed. To verify again and list all: <code>service-local bots ${bot_id === null ? 'halt-all' : `halt ${names.get(bot_id)?.slug ?? bot_id}`} --reason "…" --json</code></p>`}
      <p class="actions">
        ${bot_id !== null && html`<a class="button" href="${botPath(names.get(bot_id)?.slug ?? bot_id)}">To the bot</a>`}
        <a class="button" href="${HALTS_PATH}">All halts</a>
      </p>`,
  };
}

function deploymentTable(deployments: readonly Deployment[], names: BotNames): Html {
  return table<Deployment>(
    'Halted deployments',
    [
      {
        title: 'Bot',
        isHeader: true,
        cell: ({ bot_id }) => {
          const { slug, name } = names.get(bot_id) ?? { slug: bot_id, name: bot_id };
          return html`<a href="${botPath(slug)}">${name}</a>`;
        },
      },
      {
        title: 'Run',
        cell: ({ target, task_id }) =>
          html`<a href="${taskPath(task_id)}">${target} ${shortId(task_id)}</a>`,
      },
      { title: 'Status', cell: (one) => status(one.status) },
      {
        title: 'Orders',
        cell: ({ orders }) => (orders.length === 0 ? 'none' : orders.map(haltedOrder)),
      },
      {
        title: 'Verification',
        cell: ({ verified, faults }) =>
          verified ? badge('good', 'verified') : badge('bad', faults.join(', ')),
      },
    ],
    deployments,
  );
}

function haltedOrder({ order: number, symbol, verified }: Deployment['orders'][number]): Html {
  return html`<span class="sub"
    >${number} ${symbol}
    ${verified ? badge('good', 'canceled') : badge('bad', 'not verified')}</span
  >`;
}

async function showHalts({ call, session, query }: Visit): Promise<Content> {
  const cursor = query('cursor');
  const { items, next_cursor } = await call<typeof listHalts>('get', '/halts', {
    query: { cursor, limit: PAGE },
  });
  const names = await readBotNames(
    call,
    items.flatMap(({ bot_id }) => (bot_id === null ? [] : [bot_id])),
  );
  const inForce = items.filter(({ lifted_at }) => lifted_at === null);
  const lifted = items.filter(({ lifted_at }) => lifted_at !== null);
  return {
    title: 'Halts',
    body: html`${
      items.length === 0
        ? emptyState(
            'No bot has been halted. To halt one:',
            'service-local bots halt BOT --reason "…"',
          )
        : html`<section aria-labelledby="in-force">
              <h2 id="in-force">In force</h2>
              ${inForce.length === 0 ? html`<p>None.</p>` : inForce.map((halt) => haltCard(halt, names, session))}
            </section>
            ${
              lifted.length > 0 &&
              html`<section aria-labelledby="lifted">
                <h2 id="lifted">Lifted</h2>
                ${liftedTable(lifted, names)}
              </section>`
            }`
    }
    ${pager(HALTS_PATH, { cursor }, next_cursor)}`,
  };
}

function haltSubject({ bot_id }: Halt, names: BotNames): Child {
  if (bot_id === null) return 'All bots';
  const { slug, name } = names.get(bot_id) ?? { slug: bot_id, name: bot_id };
  return html`<a href="${botPath(slug)}">${name}</a>`;
}

function haltCard(halt: Halt, names: BotNames, session: Visit['session']): Html {
  const { halt_id, bot_id, reason, requested_by, requested_by_name, requested_at } = halt;
  const action = bot_id === null ? '/console/resume-all' : botPath(bot_id, 'resume');
  const whose = bot_id === null ? 'all bots' : (names.get(bot_id)?.name ?? bot_id);
  return html`<article aria-label="Halt of ${whose}">
    <h3>${haltSubject(halt, names)}</h3>
    ${facts(
      ['Reason', reason],
      ['By', who(requested_by, requested_by_name)],
      ['Since', time(requested_at)],
      ['Deployments ended', halt.deployments],
    )}
    <details>
      <summary>Resume ${whose}…</summary>
      <form method="post" action="${action}">
        ${csrfField(session)}
        <p class="note">Lifting the halt starts nothing by itself.</p>
        ${textField('Reason', 'reason', `reason-${halt_id}`, html`required maxlength="500"`)}
        <button class="main">Lift the halt</button>
      </form>
    </details>
  </article>`;
}

function liftedTable(halts: readonly Halt[], names: BotNames): Html {
  return table<Halt>(
    'Lifted halts',
    [
      { title: 'Bot', isHeader: true, cell: (halt) => haltSubject(halt, names) },
      { title: 'Reason', cell: ({ reason }) => reason },
      { title: 'From', cell: ({ requested_at }) => time(requested_at) },
      { title: 'Until', cell: ({ lifted_at }) => time(lifted_at!) },
      { title: 'Lifted because', cell: ({ lift_reason }) => lift_reason },
      { title: 'Deployments ended', isNumber: true, cell: ({ deployments }) => deployments },
    ],
    halts,
  );
}
