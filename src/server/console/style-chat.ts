/** Styles of the chat page and of rows of tables. They use colors of `STYLE`, which comes first. */
export const STYLE_OF_CHAT = `
.chat { display: grid; grid-template-columns: minmax(0, 1fr) minmax(12rem, 18rem); gap: 1.5rem 2.5rem; align-items: start; }
.talk > * + * { margin-top: 1.25rem; }
.turns { list-style: none; }
main .turns > li, main .turn > * { max-width: 46rem; }
.turns > li + li { margin-top: 1.5rem; padding-top: 1.5rem; border-top: 1px solid var(--rule); }
.asked { font-weight: 600; }
.asked, .answer { white-space: pre-wrap; overflow-wrap: anywhere; }
.answer { line-height: 1.6; }
blockquote.answer { margin: 0; padding-left: 1rem; border-left: 3px solid var(--rule); }
.sources ul, .calls ul, .conversations ul { list-style: none; font-size: 0.875rem; }
.sources li + li, .calls li + li { margin-top: 0.25rem; }
.sources li { overflow-wrap: anywhere; }
.calls summary, .sources summary { font-weight: 400; color: var(--muted); font-size: 0.875rem; }
#talk { margin-top: 1.75rem; padding: 0.75rem 1rem; border: 1px solid var(--rule); border-radius: 8px; }
#talk > summary h2 { display: inline; font-size: 1rem; }
@media (min-width: 68rem) {
  #talk[open] { max-height: min(44rem, 85vh); overflow-y: auto; }
  #talk #ask { position: sticky; bottom: -0.75rem; padding-block: 0.5rem; background: var(--paper); }
}
.talk #proposals:empty { display: none; }
.rows th[scope='row'] { min-width: 3rem; }
.proposal:target, .turns > li:target { outline: 2px solid var(--accent); outline-offset: 0.5rem; border-radius: 4px; }
.conversations > * + * { margin-top: 0.75rem; }
.conversations li { padding-block: 0.5rem; border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
.conversations a[aria-current] { color: var(--ink); font-weight: 600; text-decoration: none; }
.conversations .sub { white-space: normal; }
.rows td { white-space: nowrap; }
.rows [aria-current] { background: var(--panel); box-shadow: inset 3px 0 var(--accent); font-weight: 600; scroll-margin-top: 8rem; }
.rows th[scope='row'] { padding-left: 0.75rem; }
@media (max-width: 60rem) {
  .chat { grid-template-columns: minmax(0, 1fr); }
}
`;
