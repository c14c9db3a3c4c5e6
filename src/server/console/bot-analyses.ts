import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { startAnalysis } from '../../api/analyses.ts';
import { readBot } from './bot-frame.ts';
import { botPath, select, taskPath } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { field } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

const PATH = '/console/bots/:bot_ref/analyses';
const KINDS = {
  sweep: 'Sweep: which parameters did best, and how likely that is luck',
  walk_forward: 'Walk-forward: what choosing again over time would have earned out of sample',
  robustness: 'Robustness: whether the result survives permuted prices and worse conditions',
} as const;
type Kind = keyof typeof KINDS;
const METHODS = ['grid', 'random', 'tpe'] as const;

/** Registers the form that starts a sweep, a walk-forward analysis or a robustness test. */
export function addAnalyses(pages: Pages): void {
  pages.get(PATH, showForm);
  pages.post(
    PATH,
    async ({ call, param }, form) => {
      const path = '/bots/{bot_ref}/analyses';
      const headers = { 'idempotency-key': form.get('key') };
      const request = { params: { bot_ref: param('bot_ref') }, headers, body: readForm(form) };
      const { task_id } = await call<typeof startAnalysis>('post', path, request);
      return { goTo: taskPath(task_id), message: 'The search is queued.' };
    },
    showForm,
  );
}

function kindOf(form: Form | undefined): Kind {
  const asked = form?.get('kind') ?? '';
  return Object.hasOwn(KINDS, asked) ? (asked as Kind) : 'sweep';
}

/** Leaves out empty fields and those of other kinds of analyses. */
function readForm(form: Form) {
  const kind = kindOf(form);
  const text = (name: string) => form.get(name).trim() || undefined;
  const number = (name: string) => (text(name) === undefined ? undefined : Number(text(name)));
  const lines = (name: string) => {
    const all = form
      .get(name)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    return all.length === 0 ? undefined : all;
  };
  const method = METHODS.find((one) => one === form.get('method'));
  const isSampled = method !== undefined && method !== 'grid';
  return {
    kind,
    version: number('version'),
    from: text('from'),
    to: text('to'),
    parameters: lines('parameters'),
    method,
    trials: isSampled ? number('trials') : undefined,
    seed: isSampled || kind === 'robustness' ? number('seed') : undefined,
    objectives: lines('objectives'),
    where: lines('where'),
    ...(kind === 'walk_forward' && {
      train: text('train'),
      test: text('test'),
      anchored: form.get('anchored') !== '' || undefined,
    }),
    ...(kind === 'robustness' && { permutations: number('permutations') }),
  };
}

async function showForm(visit: Visit, form?: Form): Promise<Content> {
  const bot = await readBot(visit);
  const { slug, name } = bot;
  const typed = (of: string): string => form?.get(of) ?? '';
  return {
    title: `Search parameters of ${name}`,
    body: html`<p><a href="${botPath(slug)}">Back to the bot</a></p>
      <form method="post" action="${botPath(slug, 'analyses')}">
        ${csrfField(visit.session)}
        <input type="hidden" name="key" value="${form?.get('key') || randomUUID()}" />
        ${kindField(kindOf(form))} ${searchFields(bot, form)} ${windowFields(form)}
        <fieldset>
          <legend>Data</legend>
          <div class="pair">
            ${field('From', 'from', { value: typed('from'), placeholder: '2010-01-01', autocomplete: 'off' }, 'First day used.')}
            ${field('To', 'to', { value: typed('to'), placeholder: '2020-12-31', autocomplete: 'off' }, 'Last day used.')}
            ${field('Version', 'version', { type: 'number', min: 1, value: typed('version'), placeholder: bot.current_version }, 'Empty: the current version.')}
          </div>
        </fieldset>
        <button class="main">Start the search</button>
      </form>
      <p class="note">
        Every trial counts in the trial ledger of this server. From the command line:
        <code>service-local backtest sweep bot.yaml -p fast=5:50:5</code>
      </p>`,
  };
}

function kindField(chosen: Kind): Html {
  return html`<fieldset>
    <legend>Question</legend>
    ${(Object.keys(KINDS) as Kind[]).map(
      (kind) =>
        html`<label class="check"
          ><input type="radio" name="kind" value="${kind}" ${kind === chosen && html`checked`} />
          ${KINDS[kind]}</label
        >`,
    )}
  </fieldset>`;
}

/** Example of values around the present one, from half to double. */
function exampleOf(name: string, value: unknown): string {
  if (typeof value !== 'number' || value <= 0) return `${name}=${String(value)}`;
  if (!Number.isInteger(value)) return `${name}=${value / 2}:${value * 2}:${value / 4}`;
  const step = Math.max(1, Math.round(value / 4));
  return `${name}=${Math.ceil(value / 2)}:${value * 2}:${step}`;
}

function searchFields({ document }: BotDetail, form: Form | undefined): Child {
  const { strategy } = (document as { readonly spec: { readonly strategy?: { params?: object } } })
    .spec;
  const examples = Object.entries(strategy?.params ?? {}).map(([name, value]) =>
    exampleOf(name, value),
  );
  const typed = (of: string): string => form?.get(of) ?? '';
  const method = METHODS.find((one) => one === typed('method'));
  return html`<fieldset>
    <legend>Search</legend>
    ${area('Parameters', 'parameters', typed('parameters'), examples.join('\n') || 'fast=5:50:5', 'One a line: FROM:TO:STEP, or values such as 5,10,20. A robustness test may have none.')}
    <div class="pair">
      ${select('Combinations', 'method', METHODS, method ?? 'grid')}
      ${field('Trials', 'trials', { type: 'number', min: 1, value: typed('trials'), placeholder: 100 }, 'Of random and tpe.')}
      ${field('Seed', 'seed', { type: 'number', min: 0, value: typed('seed'), placeholder: 1 })}
    </div>
    <div class="pair">
      ${area('Rank by', 'objectives', typed('objectives'), 'sharpe', 'One figure a line.')}
      ${area('Only trials with', 'where', typed('where'), 'trades>=30', 'One condition a line.')}
    </div>
  </fieldset>`;
}

function windowFields(form: Form | undefined): Child {
  const typed = (of: string): string => form?.get(of) ?? '';
  return html`<fieldset>
      <legend>Walk-forward only</legend>
      <div class="pair">
        ${field('Training window', 'train', { value: typed('train'), placeholder: '3y', autocomplete: 'off' })}
        ${field('Test window', 'test', { value: typed('test'), placeholder: '1y', autocomplete: 'off' })}
      </div>
      <label class="check"
        ><input
          type="checkbox"
          name="anchored"
          value="true"
          ${typed('anchored') !== '' && html`checked`}
        />
        Begin every training window at the first bar</label
      >
    </fieldset>
    <fieldset>
      <legend>Robustness only</legend>
      ${field('Permutations', 'permutations', { type: 'number', min: 0, value: typed('permutations'), placeholder: 1000 }, 'Of the price changes; each repeats the whole search.')}
    </fieldset>`;
}

function area(label: string, name: string, value: string, placeholder: string, hint: string): Html {
  const id = `field-${name}`;
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <textarea
      id="${id}"
      name="${name}"
      rows="2"
      placeholder="${placeholder}"
      spellcheck="false"
      aria-describedby="${id}-hint"
    >
${value}</textarea>
    <p class="note" id="${id}-hint">${hint}</p>
  </div>`;
}
