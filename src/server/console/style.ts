import { THEME_CSS } from '../../base/theme.ts';

/**
 * Style sheet of all pages. Each color is a pair for light and dark, as in the reports; the color
 * scheme of the page selects one.
 */
export const STYLE = `
:root {${THEME_CSS}  --edge: light-dark(#868e9c, #6f7887);
  --accent: light-dark(#2458b3, #86b0ff);
  --on-accent: light-dark(#ffffff, #10131a);
  --good: light-dark(#0b7457, #4fc3a1);
  --warning: light-dark(#8a5a00, #e5b455);
  --bad: light-dark(#b23a1e, #ff9478);
}
:root[data-theme='light'] { color-scheme: light; }
:root[data-theme='dark'] { color-scheme: dark; }

* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--paper); color: var(--ink); font-size: 0.9375rem; }
h1, h2, h3, p, dl, dd, ul, ol, pre, figure, fieldset { margin: 0; padding: 0; }
h1 { font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.125rem; font-weight: 650; }
h3 { font-size: 0.9375rem; font-weight: 650; }
a { color: var(--accent); text-underline-offset: 3px; overflow-wrap: anywhere; }
code, pre { font: 0.8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
:focus-visible, input[type='date']:focus-within { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
main:focus, [data-message]:focus { outline: none; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: 0.5rem; top: -4rem; z-index: 2; padding: 0.5rem 0.75rem; border-radius: 6px; background: var(--ink); color: var(--paper); }
.skip:focus { top: 0.5rem; }

.top, main { padding-inline: clamp(1rem, 3vw, 2.5rem); max-width: 88rem; margin-inline: auto; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 1.5rem; padding-block: 0.625rem; border-bottom: 1px solid var(--rule); }
.brand { font-weight: 650; color: var(--ink); text-decoration: none; }
.top nav ul { display: flex; flex-wrap: wrap; gap: 0 0.25rem; list-style: none; }
.top nav a { display: block; padding: 0.375rem 0.625rem; border-radius: 6px; color: var(--muted); text-decoration: none; }
.top nav a:hover { color: var(--ink); background: var(--panel); }
.top nav a[aria-current] { color: var(--ink); font-weight: 600; background: var(--panel); }
.who { display: flex; align-items: center; gap: 0.25rem; margin-left: auto; }
.who .name { color: var(--muted); }
main { padding-block: 1.5rem 4rem; }
main > * + * { margin-top: 1.25rem; }
main p:not(.actions), main li { max-width: 46rem; }
article > * + * { margin-top: 0.75rem; }
article + article { margin-top: 1.5rem; }
section { margin-top: 2.25rem; }
section > * + * { margin-top: 0.75rem; }
.narrow { max-width: 26rem; }
.narrow > * + * { margin-top: 1.25rem; }
.note { color: var(--muted); font-size: 0.875rem; max-width: 46rem; text-wrap: pretty; }
.heading { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; }

button, .button, input, select, textarea {
  font: inherit;
  color: inherit;
  background: var(--paper);
  border: 1px solid var(--edge);
  border-radius: 6px;
  padding: 0.375rem 0.75rem;
  min-height: 2.25rem;
}
input, select, textarea { width: 100%; }
input[type='checkbox'], input[type='radio'] { width: auto; min-height: 0; accent-color: var(--accent); }
button, .button { cursor: pointer; font-size: 0.875rem; }
.button { display: inline-flex; align-items: center; text-decoration: none; }
button:hover, .button:hover { border-color: var(--ink); }
button:disabled { cursor: default; opacity: 0.6; }
button.main, .button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600; }
button.quiet { border-color: transparent; background: none; color: var(--ink); }
button.quiet:hover { border-color: var(--rule); }
form { max-width: 46rem; }
form > * + * { margin-top: 1rem; }
table form, .who form { display: inline; }
table form > * + *, .who form > * + * { margin: 0; }
label, legend { display: block; font-weight: 550; margin-bottom: 0.25rem; }
.field .note { margin-top: 0.25rem; }
.field input { max-width: 28rem; }
fieldset { border: 1px solid var(--rule); border-radius: 8px; padding: 0.75rem 1rem 1rem; min-width: 0; }
fieldset legend { padding: 0 0.375rem; margin: 0 0 0 -0.375rem; }
fieldset > * + * { margin-top: 0.75rem; }
.filter { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: end; max-width: none; }
.filter > * { margin: 0; }
.filter .field { flex: 0 1 14rem; }
summary { cursor: pointer; font-weight: 550; padding: 0.25rem 0; width: fit-content; }
details[open] > summary { margin-bottom: 0.75rem; }
.or { border-top: 1px solid var(--rule); padding-top: 1.25rem; }

.message { padding: 0.625rem 0.875rem; border-left: 3px solid var(--good); border-radius: 0 6px 6px 0; background: var(--panel); max-width: 58rem; overflow-wrap: anywhere; }
.message.failure { border-color: var(--bad); }
.message ul { padding-left: 1.25rem; }
.failure { color: var(--bad); }
.message.failure { color: inherit; }
.failure:empty { display: none; }
.warning { color: var(--warning); }
.good { color: var(--good); }
.bad { color: var(--bad); }

.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: 0.75rem 1.5rem; }
.facts dt { color: var(--muted); font-size: 0.8125rem; }
.facts dd { overflow-wrap: anywhere; }
.badge { display: inline-flex; align-items: baseline; gap: 0.375rem; font-weight: 550; white-space: nowrap; }
.badge::before { content: ''; width: 0.5rem; height: 0.5rem; border-radius: 50%; background: currentColor; align-self: center; }
.badge.neutral { color: var(--muted); }

.scroll { position: relative; overflow: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
caption { text-align: left; color: var(--muted); padding-bottom: 0.5rem; }
th, td { padding: 0.4375rem 1.25rem 0.4375rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
th { font-weight: 550; }
thead th { color: var(--muted); white-space: nowrap; }
tbody th { font-weight: 550; min-width: 8rem; }
.number { text-align: right; white-space: nowrap; }
time { white-space: nowrap; }
td:last-child:has(> form, > details > form) { text-align: right; }
table a { overflow-wrap: break-word; }
td button { min-height: 1.75rem; padding-block: 0.125rem; }
.pager { display: flex; gap: 0.75rem; }

.empty { padding: 1.5rem; border: 1px dashed var(--edge); border-radius: 8px; max-width: 46rem; }
.empty pre { margin-top: 0.75rem; }
pre { padding: 0.75rem 1rem; border-radius: 6px; background: var(--panel); overflow: auto; white-space: pre-wrap; }

.parts ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; list-style: none; }
.parts a { display: block; padding: 0.25rem 0; color: var(--muted); text-decoration: none; border-bottom: 2px solid transparent; }
.parts a:hover { color: var(--ink); }
.parts a[aria-current] { color: var(--ink); font-weight: 600; border-color: var(--accent); }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.actions form { display: inline; }
a.button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600; }
.aside { color: var(--muted); font-weight: 400; font-size: 0.8125rem; }
.id { font-size: 0.8125rem; overflow-wrap: anywhere; }
td a.id, th a.id, td code { white-space: nowrap; }
td:has(> span.id) { min-width: 9rem; }
.filter input:not([type='checkbox']), .filter select { height: 2.25rem; }
.filter .field:has(select) { flex-basis: auto; }
.filter.many .field { flex: 1 1 11rem; }
.details { display: block; font-weight: 400; min-width: 16rem; max-width: 44rem; font-size: 0.8125rem; color: var(--muted); overflow-wrap: anywhere; }
.words { max-width: 46rem; font-size: 1.0625rem; overflow-wrap: anywhere; text-wrap: pretty; }
.check { display: flex; gap: 0.5rem; align-items: baseline; font-weight: 400; margin: 0; }
:is(fieldset, form:not(.filter)) > .field + .check { margin-top: 1rem; }
.filter .check { align-self: end; min-height: 2.25rem; align-items: center; }
.attention { border-left: 3px solid var(--warning); padding-left: 1rem; }
.once { border: 1px solid var(--accent); border-radius: 8px; padding: 1rem 1.25rem; max-width: 58rem; }
.once > * + * { margin-top: 0.75rem; }
.once pre { max-height: 12rem; overflow-wrap: anywhere; }
.message.caution { border-color: var(--warning); }
td details form.inline { display: flex; flex-wrap: wrap; gap: 0.375rem; }
td details input { width: auto; min-height: 1.75rem; padding-block: 0.125rem; }
td summary { padding: 0; font-weight: 400; white-space: nowrap; }
.badge:has(+ .badge) { margin-right: 0.625rem; }
.filter .field:has([type='search']) { flex-basis: 22rem; }

@media (min-width: 112rem) {
  .top, main { max-width: 112rem; }
  body { font-size: 1rem; }
}
@media (max-width: 40rem) {
  .top nav { order: 3; width: 100%; }
  .top nav ul { gap: 0; margin-inline: -0.375rem; }
  .top nav a { padding-inline: 0.375rem; font-size: 0.875rem; }
  th, td { padding-right: 0.875rem; }
  td:has(> span.id) { min-width: 5rem; }
  .top { column-gap: 0.5rem; }
  .who { gap: 0; }
  .who button { padding-inline: 0.5rem; }
  .who .name { display: none; }
  .who .more { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
}
@media print {
  .top, .skip, form { display: none; }
}
`;
