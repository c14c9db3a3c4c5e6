import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { startPaper, stopPaper } from '../../api/paper.ts';
import type { BotDeployment, startBacktest } from '../../api/tasks.ts';
import { ServiceError } from '../../base/errors.ts';
import { TASKS } from './assets.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath, endPath, endVerb, metricColumns, status, taskPath } from './bot-parts.ts';
import { addProduction } from './bot-production.ts';
import type { Child } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { emptyState, field, table, time } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';
import { runList } from './run-list.ts';

const PATH = '/console/bots/:bot_ref';

/** Registers the pages that list, start and stop runs of a bot. */
export function addBotRuns(pages: Pages): void {
  pages.get(`${PATH}/runs`, showRuns);

  pages.get(`${PATH}/backtest`, showBacktest);
  pages.post(
    `${PATH}/backtest`,
    async ({ call, param }, form) => {
      const bot_ref = param('bot_ref');
      const path = '/bots/{bot_ref}/backtest';
      const body = {
        ...readOverrides(form),
        ...(form.get('verify_lock') !== '' && { verify_lock: true }),
      };
      const request = { params: { bot_ref }, headers: idempotencyHeader(form), body };
      const { task_id } = await call<typeof startBacktest>('post', path, request);
      return { goTo: taskPath(task_id), message: 'The backtest is queued.' };
    },
    showBacktest,
  );

  pages.get(`${PATH}/paper`, showPaper);
  pages.post(
    `${PATH}/paper`,
    async ({ call, param }, form) => {
      const bot_ref = param('bot_ref');
      const path = '/bots/{bot_ref}/paper/start';
      const body = { ...readOverrides(form), ...readFeed(form) };
      const request = { params: { bot_ref }, headers: idempotencyHeader(form), body };
      await call<typeof startPaper>('post', path, request);
      return { goTo: botPath(bot_ref), message: 'The paper session is queued.' };
    },
    showPaper,
  );

  pages.post(
    `${PATH}/paper/:task_id/stop`,
    async ({ call, param }) => {
      const bot_ref = param('bot_ref');
      const params = { bot_ref, task_id: param('task_id') };
      await call<typeof stopPaper>('post', '/bots/{bot_ref}/paper/stop/{task_id}', { params });
      return {
        goTo: botPath(bot_ref, 'runs'),
        message: 'The paper session is stopping. It ends within seconds.',
      };
    },
    showRuns,
  );
  addProduction(pages, showRuns);
}

async function showRuns(visit: Visit): Promise<Content> {
  const bot = await readBot(visit);
  const list = await runList(visit, {
    path: botPath(bot.slug, 'runs'),
    bot: bot.id,
    none: emptyState(
      'This bot has not run yet. To backtest it:',
      `service-local bots backtest ${bot.slug}`,
    ),
  });
  return {
    title: bot.name,
    scripts: [TASKS],
    body: botFrame(
      bot,
      'runs',
      html`<section>
        <h2 id="runs">Runs</h2>
        ${list}
      </section>`,
    ),
  };
}

export function runTable(
  { session }: Pick<Visit, 'session'>,
  { slug }: Pick<BotDetail, 'slug'>,
  runs: readonly BotDeployment[],
): Child {
  const isOpen = ({ ended_at }: BotDeployment): boolean => ended_at === null;
  return table<BotDeployment>(
    'Runs',
    [
      {
        title: 'Run',
        isHeader: true,
        cell: ({ task_id, target, version, result_summary }) =>
          html`<a href="${taskPath(task_id)}">${target}</a
            ><span class="sub"
              >version
              ${version}${result_summary?.['unsaved_bundle'] !== undefined && ', unsaved code'}</span
            >`,
      },
      { title: 'Status', cell: (run) => status(run.status) },
      { title: 'Started', cell: ({ created_at }) => time(created_at) },
      { title: 'Ended', cell: ({ ended_at }) => (ended_at === null ? '' : time(ended_at)) },
      ...metricColumns<BotDeployment>((run) => run),
      {
        title: html`<span class="unseen">End</span>`,
        cell: (run) =>
          isOpen(run) &&
          html`<form method="post" action="${endPath(slug, run.task_id, run.target)}">
            ${csrfField(session)}<button
              aria-label="${endVerb(run.target)} the ${run.target} of ${run.created_at}"
            >
              ${endVerb(run.target)}
            </button>
          </form>`,
      },
    ],
    runs,
  );
}

/** A second submission of the same form has the same key and starts nothing. */
function idempotencyHeader(form: Form): { readonly 'idempotency-key': string } {
  return { 'idempotency-key': form.get('key') };
}

/** Overrides of the values in the spec. Empty fields are left out. */
function readOverrides(form: Form) {
  const [version, from, to, params] = ['version', 'from', 'to', 'params'].map((name) =>
    form.get(name).trim(),
  ) as [string, string, string, string];
  return {
    ...(version !== '' && { version: Number(version) }),
    ...(from !== '' && { from }),
    ...(to !== '' && { to }),
    ...(params !== '' && { params: parseParams(params) }),
  };
}

function parseParams(text: string): Record<string, number> {
  try {
    return JSON.parse(text) as Record<string, number>;
  } catch (error) {
    throw new ServiceError('invalid_request', 'the parameters are not valid JSON', {
      remedy: 'Write them as {"fast": 12}.',
      cause: error,
    });
  }
}

function readFeed(form: Form) {
  const exchange = form.get('exchange').trim();
  if (form.get('source') === 'live') return { live: exchange === '' ? {} : { exchange } };
  const speed = form.get('speed').trim();
  return speed === '' ? {} : { speed: speed === 'max' ? ('max' as const) : Number(speed) };
}

/** @param form the rejected form, whose values are kept. */
function overrideFields(bot: BotDetail, form: Form | undefined): Child {
  const typed = (name: string): string => form?.get(name) ?? '';
  return html`<input type="hidden" name="key" value="${form?.get('key') || randomUUID()}" />
    ${field('Version', 'version', { type: 'number', min: 1, value: typed('version'), placeholder: bot.current_version }, 'Empty: the current version.')}
    ${field('From', 'from', { value: typed('from'), placeholder: '2020-01-31', autocomplete: 'off' }, 'First day used.')}
    ${field('To', 'to', { value: typed('to'), placeholder: '2024-12-31', autocomplete: 'off' }, 'Last day used.')}
    ${field('Parameters', 'params', { value: typed('params'), placeholder: '{"fast": 12}', autocomplete: 'off', spellcheck: 'false' }, 'As JSON. Parameters that you omit keep their value in the spec.')}`;
}

async function showBacktest(visit: Visit, form?: Form): Promise<Content> {
  const bot = await readBot(visit);
  const { slug, name } = bot;
  return {
    title: `Backtest ${name}`,
    body: html`<p><a href="${botPath(slug)}">Back to the bot</a></p>
      <form method="post" action="${botPath(slug, 'backtest')}">
        ${csrfField(visit.session)} ${overrideFields(bot, form)}
        <label class="check"
          ><input
            type="checkbox"
            name="verify_lock"
            value="true"
            ${form?.get('verify_lock') === 'true' && html`checked`}
          />
          Fail if data, engine, strategy or seed differ from the first successful backtest of this
          version with these values</label
        >
        <button class="main">Start the backtest</button>
      </form>
      <p class="note">From the command line: <code>service-local bots backtest ${slug}</code></p>`,
  };
}

function showNoPaper({ slug, name }: BotDetail): Content {
  return {
    title: `Paper session of ${name}`,
    body: html`<p><a href="${botPath(slug)}">Back to the bot</a></p>
      ${emptyState('A research bot does not trade. To backtest it:', `service-local bots backtest ${slug}`)}`,
  };
}

async function showPaper(visit: Visit, form?: Form): Promise<Content> {
  const bot = await readBot(visit);
  const { slug, name, kind } = bot;
  if (kind === 'research') return showNoPaper(bot);
  const isLive = form?.get('source') === 'live';
  return {
    title: `Paper session of ${name}`,
    body: html`<p><a href="${botPath(slug)}">Back to the bot</a></p>
      <form method="post" action="${botPath(slug, 'paper')}">
        ${csrfField(visit.session)}
        <fieldset>
          <legend>Bars</legend>
          <label class="check"
            ><input type="radio" name="source" value="catalogue" ${!isLive && html`checked`} /> From
            the catalogue, paced like a live feed</label
          >
          ${field('Speed', 'speed', { value: form?.get('speed') ?? '', placeholder: '1', autocomplete: 'off' }, 'Multiple of the speed of the market, or max.')}
          <label class="check"
            ><input type="radio" name="source" value="live" ${isLive && html`checked`} /> Live, from
            an exchange</label
          >
          ${field('Exchange', 'exchange', { value: form?.get('exchange') ?? '', autocomplete: 'off' }, 'Its name in the exchanges_file of the server. Empty: the only one configured there.')}
        </fieldset>
        ${overrideFields(bot, form)}
        <button class="main">Start the paper session</button>
      </form>
      <p class="note">
        From the command line: <code>service-local bots paper start ${slug}</code>
      </p>`,
  };
}
