/// <reference lib="dom" />
import { javascript } from '@codemirror/lang-javascript';
import { yaml } from '@codemirror/lang-yaml';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { basicSetup } from 'codemirror';
import { LOOK } from './look.ts';

/**
 * Replaces a text area by an editor that keeps its value up to date. The editor lives in a shadow
 * root: there, CodeMirror adopts style sheets, where it would otherwise add a style element, which
 * the policy of the page forbids.
 */
export function replaceArea(area: HTMLTextAreaElement, extensions: Extension): EditorView {
  const host = document.createElement('div');
  host.className = 'code';
  area.after(host);
  area.hidden = true;
  const { id } = area;
  const label = document.querySelector<HTMLLabelElement>(`label[for="${id}"]`)!;
  const view = openView(host, area.value, [
    EditorView.contentAttributes.of({ 'aria-label': label.textContent }),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (!docChanged) return;
      area.value = state.doc.toString();
      area.dispatchEvent(new Event('input', { bubbles: true }));
    }),
    languageOf(area),
    extensions,
  ]);
  label.addEventListener('click', (event) => {
    event.preventDefault();
    view.focus();
  });
  return view;
}

export function openView(host: HTMLElement, doc: string, extensions: Extension): EditorView {
  const root = host.attachShadow({ mode: 'open' });
  // Without a tabindex, accessibility checks do not know that the text can be focused.
  const focusable = EditorView.contentAttributes.of({ tabindex: '0' });
  const state = EditorState.create({ doc, extensions: [basicSetup, LOOK, focusable, extensions] });
  return new EditorView({ state, root, parent: root });
}

export function languageOf({ dataset }: HTMLTextAreaElement): Extension {
  return dataset['language'] === 'yaml' ? yaml() : javascript({ typescript: true });
}
