/// <reference lib="dom" />
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const MONOSPACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
const SELECTION = 'light-dark(#cfe0fb, #2b456f)';

/** Colors of the page, whose custom properties also apply in a shadow root. */
const THEME = EditorView.theme({
  '&': {
    height: '100%',
    fontSize: '0.8125rem',
    color: 'var(--ink)',
    backgroundColor: 'var(--paper)',
    border: '1px solid var(--edge)',
    borderRadius: '6px',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: MONOSPACE, lineHeight: '1.5', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground':
    { backgroundColor: SELECTION },
  '.cm-gutters': {
    color: 'var(--muted)',
    backgroundColor: 'var(--paper)',
    borderRight: '1px solid var(--rule)',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-activeLineGutter': { color: 'var(--ink)' },
  '.cm-foldPlaceholder, .cm-panels, .cm-tooltip': {
    color: 'var(--ink)',
    backgroundColor: 'var(--panel)',
    borderColor: 'var(--edge)',
  },
  '.cm-tooltip': { border: '1px solid var(--edge)', borderRadius: '6px', overflow: 'hidden' },
  '.cm-tooltip .cm-completionInfo': { maxWidth: '22rem', padding: '0.375rem 0.625rem' },
  '.cm-tooltip-autocomplete > ul': { fontFamily: MONOSPACE, maxWidth: 'min(90vw, 40rem)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    color: 'var(--on-accent)',
    backgroundColor: 'var(--accent)',
  },
  '.cm-completionDetail': { color: 'inherit', opacity: '0.8' },
  '.cm-diagnostic': { borderLeftColor: 'var(--bad)', maxWidth: '34rem' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: SELECTION },
  '.cm-selectionMatch, .cm-searchMatch': { backgroundColor: 'light-dark(#f3e6bd, #4d4220)' },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'light-dark(#e8f4ee, #16302a)' },
  '.cm-deletedChunk': { backgroundColor: 'light-dark(#fbeeea, #3a1f19)', paddingLeft: '6px' },
  '.cm-deletedChunk .cm-deletedLine': { color: 'var(--ink)' },
  '.cm-changedText': { background: 'light-dark(#c4e6d5, #24594a)' },
  '.cm-deletedText, .cm-deletedChunk .cm-deletedText': {
    background: 'light-dark(#f5cfc5, #6d3225)',
  },
  '.cm-collapsedLines': {
    color: 'var(--muted)',
    background: 'var(--panel)',
    paddingLeft: '1rem',
  },
  // Few fonts have the arrows around this text.
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: 'none' },
});

const COLORS = HighlightStyle.define([
  {
    tag: [tags.keyword, tags.moduleKeyword, tags.controlKeyword],
    color: 'light-dark(#7b2ca0, #d3a0f0)',
  },
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warning)' },
  { tag: [tags.typeName, tags.className], color: 'var(--warning)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
]);

export const LOOK: Extension = [THEME, syntaxHighlighting(COLORS)];
