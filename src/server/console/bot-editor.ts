import { html } from 'hono/html';
import type { BotTemplate, BotValidation, listBotTemplates } from '../../api/bot-specs.ts';
import type { listDatasets } from '../../api/research.ts';
import { EDITOR } from './assets.ts';
import type { Draft } from './bot-draft.ts';
import { diffTable } from './bot-versions.ts';
import type { Child, Html } from './html.ts';
import { csrfField } from './layout.ts';
import { sentence } from './layout.ts';
import type { Visit } from './pages.ts';

/** What an editor shows besides the typed text. */
export interface EditorParts {
  /** Texts to compare with, and their name, such as `version 3`. */
  readonly base?: { readonly name: string; readonly draft: Draft } | undefined;
  /** Bot of which the text becomes a version. */
  readonly bot?: string | undefined;
  /** Whether the server accepts code. */
  readonly allowsCode: boolean;
  /** Names of datasets, for completion. */
  readonly datasets: readonly string[];
  readonly problems?: Child;
}

export interface Action {
  readonly name: string;
  readonly label: string;
  readonly isMain?: true;
}

/** Scripts of a page with an editor; none if the bundle was not built. */
export const EDITOR_SCRIPTS = EDITOR === undefined ? [] : [EDITOR];

/** Reads what both editors need from the API. */
export async function readWorkshop({ call }: Pick<Visit, 'call'>) {
  const [{ items: templates }, { items: datasets }] = await Promise.all([
    call<typeof listBotTemplates>('get', '/bots/templates', {}),
    call<typeof listDatasets>('get', '/data/datasets', {}),
  ]);
  const allowsCode = templates.some(({ name }: BotTemplate) => name === 'module');
  return { templates, allowsCode, datasets: datasets.map(({ name }) => name) };
}

/** The form with the texts. Without scripts it is complete, too. */
export function editorForm(
  { session }: Pick<Visit, 'session'>,
  { yaml, code }: Draft,
  parts: EditorParts & { readonly actions: readonly Action[]; readonly hidden: Child },
): Html {
  const { base, bot, allowsCode, datasets, problems, actions, hidden } = parts;
  const files = Object.entries(code);
  return html`<form
    method="post"
    class="editor"
    data-editor
    data-bot="${bot ?? ''}"
    data-base="${base?.name ?? ''}"
    data-datasets="${JSON.stringify(datasets)}"
  >
    ${csrfField(session)} ${hidden}
    <div class="texts" ${files.length > 0 && html`data-split`}>
      ${textArea('spec', 'bot.yaml', 'spec', yaml, base?.draft.yaml)}
      ${files.map(
        ([name, text], i) =>
          html`<div class="file">
            <input type="hidden" name="file" value="${name}" />
            ${textArea(`code-${i}`, name, 'code', text, base === undefined ? undefined : (base.draft.code[name] ?? ''))}
          </div>`,
      )}
    </div>
    <div id="problems">${problems}</div>
    <div class="actions">
      ${actions.map(({ name, label, isMain }) => html`<button name="action" value="${name}" ${isMain && html`class="main"`}>${label}</button>`)}
      <button type="button" data-review hidden>Show changes</button>
    </div>
    ${allowsCode && anotherFile(files.length)}
  </form>`;
}

function textArea(
  id: string,
  label: string,
  name: string,
  text: string,
  original: string | undefined,
): Html {
  // A browser drops the first line feed of a text area.
  return html`<div class="text">
    <label for="${id}"><code>${label}</code></label>
    <textarea
      id="${id}"
      name="${name}"
      rows="28"
      spellcheck="false"
      autocapitalize="off"
      wrap="off"
      data-language="${name === 'spec' ? 'yaml' : 'typescript'}"
      ${original !== undefined && html`data-original="${original}"`}
    >
${text}</textarea>
  </div>`;
}

function anotherFile(count: number): Html {
  return html`<details>
    <summary>Add a file with code</summary>
    <div class="field">
      <label for="another-file">Path</label>
      <input
        id="another-file"
        name="file"
        type="text"
        autocomplete="off"
        placeholder="strategy.ts"
      />
      <p class="note">
        Relative to <code>bot.yaml</code>. <code>strategy.module</code> names the main file. A file
        without text is left out.
      </p>
    </div>
    <div class="field">
      <label for="code-${count}">Text</label>
      <textarea id="code-${count}" name="code" rows="12" spellcheck="false" wrap="off"></textarea>
    </div>
  </details>`;
}

/** The result of a check: a list of problems, and the differences from the current version. */
export function checkedDraft({ problems, changes, valid }: BotValidation, base?: string): Html {
  if (!valid) return problemList(problems);
  return html`<p class="good">No problems.</p>
    ${
      changes.length > 0 &&
      base !== undefined &&
      diffTable(
        `Differences from ${base}`,
        [sentence(base).slice(0, -1), 'Typed'],
        changes.map(({ pointer, ...rest }) => ({ ...rest, where: pointer })),
      )
    }`;
}

function problemList(problems: BotValidation['problems']): Html {
  return html`<ul class="problems" aria-label="Problems">
    ${problems.map(
      ({ line, pointer, detail, suggestion }) =>
        html`<li>
          <span class="place">${line === undefined ? pointer : `Line ${line}`}</span>
          ${detail}${suggestion !== undefined && `; did you mean ${suggestion}?`}
        </li>`,
    )}
  </ul>`;
}
