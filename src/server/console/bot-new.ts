import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type { BotTemplate } from '../../api/bot-specs.ts';
import type { createBot } from '../../api/bots.ts';
import { specText, readDraft, toInput, validateDraft } from './bot-draft.ts';
import { checkedDraft, EDITOR_SCRIPTS, editorForm, readWorkshop } from './bot-editor.ts';
import { botPath, BOTS_PATH } from './bot-parts.ts';
import type { Html } from './html.ts';
import type { Content } from './layout.ts';
import type { Form, GoTo, Pages, Visit } from './pages.ts';

export const NEW_BOT_PATH = `${BOTS_PATH}/new`;

const FIRST_TEMPLATE = 'sma_crossover';

/** Registers the page that creates a bot. */
export function addNewBot(pages: Pages): void {
  pages.get(NEW_BOT_PATH, (visit) => showNew(visit));
  pages.post(NEW_BOT_PATH, create, showNew);
}

async function create(visit: Visit, form: Form): Promise<GoTo | Content> {
  if (form.get('action') === 'check') return showNew(visit, form);
  const request = {
    headers: { 'idempotency-key': form.get('key') },
    body: toInput(readDraft(form)),
  };
  const { slug } = await visit.call<typeof createBot>('post', '/bots', request);
  return { goTo: botPath(slug, 'edit'), message: 'The bot is created. You can backtest it now.' };
}

async function showNew(visit: Visit, form?: Form): Promise<Content> {
  const { templates, ...workshop } = await readWorkshop(visit);
  const asked = visit.query('template');
  const template =
    templates.find(({ name }) => name === asked) ??
    templates.find(({ name }) => name === FIRST_TEMPLATE)!;
  const draft =
    form === undefined
      ? { yaml: specText(template.document), code: template.files }
      : readDraft(form);
  const checked = form?.get('action') === 'check' && (await validateDraft(visit, toInput(draft)));
  return {
    title: 'New bot',
    scripts: EDITOR_SCRIPTS,
    body: html`${form === undefined && templateForm(templates, template)}
      ${editorForm(visit, draft, {
        ...workshop,
        problems: checked && checkedDraft(checked),
        hidden: html`<input type="hidden" name="key" value="${randomUUID()}" />`,
        actions: [
          { name: 'create', label: 'Create the bot', isMain: true },
          { name: 'check', label: 'Check' },
        ],
      })}
      <p class="note">
        From the command line: <code>service-local bots create --file bot.yaml</code>
      </p>`,
  };
}

function templateForm(templates: readonly BotTemplate[], chosen: BotTemplate): Html {
  return html`<form method="get" action="${NEW_BOT_PATH}" class="filter">
      <div>
        <label for="template">Start from</label>
        <select id="template" name="template">
          ${templates.map(({ name }) => html`<option value="${name}" ${name === chosen.name && html`selected`}>${name === 'module' ? 'custom code' : name}</option>`)}
        </select>
      </div>
      <button>Use this template</button>
    </form>
    <p class="note">${chosen.description}</p>`;
}
