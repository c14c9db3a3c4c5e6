import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type {
  BotDetail,
  BotVersion,
  diffBotVersions,
  listBotVersions,
  updateBot,
} from '../../api/bots.ts';
import type { startBacktest } from '../../api/tasks.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatActor } from '../../base/format.ts';
import { formatEtag } from '../../fleet/registry/bots.ts';
import { backtestPart } from './bot-backtest.ts';
import { readDraft, readVersion, toInput, validateDraft } from './bot-draft.ts';
import { checkedDraft, EDITOR_SCRIPTS, editorForm, readWorkshop } from './bot-editor.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath } from './bot-parts.ts';
import { diffTable } from './bot-versions.ts';
import type { Html } from './html.ts';
import type { Content } from './layout.ts';
import type { Form, GoTo, Pages, Visit } from './pages.ts';

const PATH = '/console/bots/:bot_ref/edit';

/** Registers the page that edits a bot, backtests the text and saves it as the next version. */
export function addBotEdit(pages: Pages): void {
  pages.get(PATH, (visit) => showEdit(visit));
  pages.post(PATH, act, (visit, form) => showEdit(visit, { form }));
}

async function act(visit: Visit, form: Form): Promise<GoTo | Content> {
  switch (form.get('action')) {
    case 'save':
      return save(visit, form);
    case 'backtest':
      return showEdit(visit, { form, task_id: await backtest(visit, form) });
    default:
      return showEdit(visit, { form, isChecked: true });
  }
}

async function save(visit: Visit, form: Form): Promise<GoTo> {
  const bot = await readBot(visit);
  const edited = Number(form.get('version'));
  // A first backtest changes the status of a bot, and so its ETag, but not what was edited.
  if (edited !== bot.current_version) throw await versionConflict(visit, bot, edited);
  const { models } = await readVersion(visit, bot);
  const saved = await visit.call<typeof updateBot>('put', '/bots/{bot_ref}', {
    params: { bot_ref: bot.id },
    headers: { 'if-match': formatEtag({ ...bot, bot_id: bot.id }) },
    body: toInput(readDraft(form), models),
  });
  const message =
    saved.current_version === bot.current_version
      ? `The text equals version ${bot.current_version}, so there is no new version.`
      : `Version ${saved.current_version} is saved.`;
  return { goTo: botPath(saved.slug, 'edit'), message };
}

async function versionConflict(
  { call }: Visit,
  { id, slug, current_version }: BotDetail,
  edited: number,
): Promise<ServiceError> {
  const versions = await call<typeof listBotVersions>('get', '/bots/{bot_ref}/versions', {
    params: { bot_ref: id },
    query: { limit: 1 },
  });
  const { created_by, created_by_name, created_at } = versions.items[0] as BotVersion;
  const author = formatActor(created_by, created_by_name);
  return new ServiceError(
    'stale',
    `${author} saved version ${current_version} of ${slug} at ${created_at}, after you opened version ${edited}; your text is below and is not saved`,
    { remedy: `Compare it with version ${current_version}, then save it again` },
  );
}

/** Backtests the typed spec and code without saving them. */
async function backtest(visit: Visit, form: Form): Promise<string> {
  const bot = await readBot(visit);
  const { models } = await readVersion(visit, bot);
  const input = toInput(readDraft(form), models);
  const { valid, problems, patch, files_differ } = await validateDraft(visit, input, bot.id);
  if (!valid) {
    throw new ServiceError('invalid_spec', 'the text has problems, so it cannot run', {
      problems: problems.map(({ code, pointer, detail, line }) => ({
        code,
        pointer,
        message: `line ${line}: ${detail}`,
      })),
    });
  }
  const request = {
    params: { bot_ref: bot.id },
    headers: { 'idempotency-key': form.get('key') },
    body: {
      version: bot.current_version,
      ...(patch !== null && { patch }),
      ...(files_differ && { files: input.files ?? {} }),
    },
  };
  const path = '/bots/{bot_ref}/backtest';
  const { task_id } = await visit.call<typeof startBacktest>('post', path, request);
  return task_id;
}

interface Shown {
  /** The submitted form, whose text is kept. */
  readonly form?: Form;
  readonly isChecked?: boolean;
  readonly task_id?: string;
}

async function showEdit(visit: Visit, { form, isChecked, task_id }: Shown = {}): Promise<Content> {
  const bot = await readBot(visit);
  const { current_version } = bot;
  const running = bot.active_deployments.find(({ target }) => target !== 'backtest')?.version;
  const [current, compared, workshop] = await Promise.all([
    readVersion(visit, bot),
    readVersion(visit, bot, running ?? current_version),
    readWorkshop(visit),
  ]);
  const draft = form === undefined ? current.draft : readDraft(form);
  const checked = isChecked && (await validateDraft(visit, toInput(draft, current.models), bot.id));
  const edited = Number(form?.get('version') ?? current_version);
  const name = `version ${running ?? current_version}${running === undefined ? '' : ', which is running'}`;
  return {
    title: bot.name,
    scripts: EDITOR_SCRIPTS,
    body: botFrame(
      bot,
      'edit',
      html`${edited !== current_version && (await othersChanges(visit, bot, edited))}
        ${editorForm(visit, draft, {
          allowsCode: workshop.allowsCode,
          datasets: workshop.datasets,
          bot: bot.slug,
          base: { name, draft: compared.draft },
          problems: checked && checkedDraft(checked, `version ${current_version}`),
          hidden: html`<input type="hidden" name="version" value="${current_version}" />
            <input type="hidden" name="key" value="${randomUUID()}" />`,
          actions: [
            { name: 'save', label: `Save as version ${current_version + 1}`, isMain: true },
            { name: 'backtest', label: 'Backtest without saving' },
            { name: 'check', label: 'Check' },
          ],
        })}
        ${await backtestPart(visit, task_id ?? visit.query('task'))}
        <p class="note">
          A version keeps the values of the file, not its comments and layout. From the command
          line:
          <code>service-local bots update ${bot.slug} --file bot.yaml</code>
        </p>`,
    ),
  };
}

/** What others changed since the version that was opened for editing. */
async function othersChanges({ call }: Visit, bot: BotDetail, edited: number): Promise<Html> {
  const path = '/bots/{bot_ref}/versions/{version}/diff';
  const { current_version } = bot;
  const { changes, files } = await call<typeof diffBotVersions>('get', path, {
    params: { bot_ref: bot.id, version: String(edited) },
    query: { to: String(current_version) },
  });
  const all = [
    ...changes.map(({ pointer, ...rest }) => ({ ...rest, where: pointer })),
    ...files.map(({ file, ...rest }) => ({ ...rest, where: file })),
  ];
  return html`<section aria-labelledby="conflict">
    <h2 id="conflict">Changes from version ${edited} to ${current_version}</h2>
    ${diffTable(`Changes from version ${edited} to ${current_version}`, [`Version ${edited}`, `Version ${current_version}`], all)}
  </section>`;
}
