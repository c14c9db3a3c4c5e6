/// <reference lib="dom" />
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { languageOf, openView } from './text-view.ts';

/** Shows what the texts of a form change, in a dialog. */
export function reviewChanges(form: HTMLFormElement): void {
  const base = form.dataset['base']!;
  const areas = [...form.querySelectorAll<HTMLTextAreaElement>('textarea[data-original]')];
  const changed = areas.filter((area) => area.value !== area.dataset['original']);
  const dialog = document.createElement('dialog');
  dialog.className = 'review';
  dialog.setAttribute('aria-labelledby', 'review');
  const heading = document.createElement('h2');
  heading.id = 'review';
  heading.textContent = changed.length === 0 ? `No changes from ${base}` : `Changes from ${base}`;
  const actions = document.createElement('p');
  actions.className = 'actions';
  const close = document.createElement('button');
  close.type = 'button';
  close.textContent = 'Back to the text';
  close.addEventListener('click', () => dialog.close());
  const save = form.querySelector<HTMLButtonElement>('button[value=save]')!.cloneNode(true);
  save.addEventListener('click', () => {
    form.requestSubmit(form.querySelector<HTMLButtonElement>('button[value=save]'));
  });
  actions.append(...(changed.length === 0 ? [] : [save]), close);
  dialog.append(heading, ...changed.map((area) => changesOf(area, form)), actions);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function changesOf(area: HTMLTextAreaElement, form: HTMLFormElement): HTMLElement {
  const part = document.createElement('div');
  const name = document.createElement('h3');
  name.textContent = form.querySelector(`label[for="${area.id}"]`)!.textContent.trim();
  const host = document.createElement('div');
  host.className = 'code';
  part.append(name, host);
  openView(host, area.value, [
    languageOf(area),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ 'aria-label': `Changes of ${name.textContent}` }),
    unifiedMergeView({
      original: area.dataset['original']!,
      mergeControls: false,
      collapseUnchanged: { margin: 3, minSize: 6 },
    }),
  ]);
  return part;
}
