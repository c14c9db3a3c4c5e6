/** Styles of the pages that create and edit bots. They use colors of `STYLE`, which comes first. */
export const STYLE_OF_EDITOR = `
form.editor { max-width: none; }
.texts { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem 1.25rem; }
@media (min-width: 64rem) { .texts[data-split] { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
.texts textarea, .editor details textarea { font: 0.8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; overflow-x: auto; }
.code { display: block; height: min(66vh, 44rem); min-height: 18rem; }
.problems { list-style: none; display: grid; gap: 0.25rem; max-width: none; }
.problems li { display: flex; gap: 0.75rem; max-width: none; align-items: baseline; overflow-wrap: anywhere; font-size: 0.875rem; }
.problems .place { flex: none; min-width: 4rem; min-height: 0; padding: 0; border: 0; background: none; color: var(--bad); font-weight: 600; font-size: inherit; text-align: left; }
.problems button.place { text-decoration: underline; text-underline-offset: 3px; }
.review { width: min(72rem, calc(100vw - 2rem)); max-height: calc(100vh - 3rem); border: 1px solid var(--edge); border-radius: 8px; padding: 1.25rem; background: var(--paper); color: var(--ink); }
.review::backdrop { background: #0008; }
.review > * + * { margin-top: 0.75rem; }
.review .code { height: auto; min-height: 0; max-height: 55vh; overflow: auto; }
#backtest .figures { margin-top: 0.75rem; }
`;
