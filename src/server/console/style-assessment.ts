/** Styles of the self-assessment, and of all pages on paper. They follow `STYLE_OF_BOTS`. */
export const STYLE_OF_ASSESSMENT = `
.assessment > * + * { margin-top: 1.25rem; }
.assessment .heading .filter { display: flex; align-items: center; flex-wrap: nowrap; }
.assessment .heading .filter label { margin: 0; }
.assessment .heading .filter .field { display: flex; gap: 0.5rem; align-items: center; flex: 0 1 10rem; }
.answers { max-width: 58rem; }
.answers textarea { max-width: none; resize: vertical; }
.answers select { width: auto; min-width: 12rem; max-width: 100%; }
.answers .field + .field { margin-top: 0.75rem; }
.answers .group > * + * { margin-top: 0.75rem; }
.answers .pair { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); gap: 0.75rem 1rem; }
.answers .pair.two { grid-template-columns: minmax(0, 3fr) minmax(10rem, 2fr); }
.answers .paragraph { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 0.75rem 1rem; }
.answers .paragraph select { width: 100%; min-width: 0; }
.answers :is(.pair, .paragraph) .field { margin: 0; min-width: 0; }
@media (max-width: 40rem) { .answers .paragraph { grid-template-columns: minmax(0, 1fr); } }
.answers .pair .wide { grid-column: 1 / -1; }
.answers .field .check { margin-top: 0.375rem; }
.answers legend { max-width: 100%; overflow-wrap: anywhere; }
.answers .gaps { padding-left: 1.25rem; font-size: 0.875rem; }
.answers :is(input, select, textarea) { scroll-margin-block: 5rem; }
.answers [aria-invalid] { border-color: var(--bad); }
.sticky { position: sticky; bottom: 0; z-index: 1; padding-block: 0.75rem; background: var(--paper); border-top: 1px solid var(--rule); }
.facts-of-records table { font-size: 0.8125rem; }
.facts-of-records th, .facts-of-records td { vertical-align: top; overflow-wrap: anywhere; white-space: normal; }
.facts-of-records dl.facts { grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: 0.125rem 1rem; }
.facts-of-records .source { color: var(--muted); font-size: 0.75rem; }
.facts-of-records .marker { display: none; }
.firm .details { font-size: inherit; color: inherit; }
.firm thead th { white-space: normal; vertical-align: bottom; }
@media print {
  @page {
    size: A4;
    margin: 16mm 14mm;
    @top-left { content: 'service-local'; font: 8pt sans-serif; }
    @bottom-right { content: counter(page) ' / ' counter(pages); font: 8pt sans-serif; }
  }
  @page rts6 {
    @top-left { content: 'RTS 6 self-assessment'; font: 8pt sans-serif; }
  }
  @page rts6-wide {
    size: A4 landscape;
    @top-left { content: 'RTS 6 self-assessment of all bots'; font: 8pt sans-serif; }
  }
  :root, :root[data-theme] { color-scheme: light; font-size: 9pt; }
  main:has(.assessment) { page: rts6; }
  main:has(.firm) { page: rts6-wide; }
  main { max-width: none; padding: 0; }
  body { font-size: 9pt; }
  .screen, .tabs, .parts, .pager, .actions, .offline, .halted, dialog, .toasts { display: none !important; }
  .scroll { overflow: visible; }
  table { font-size: 8pt; }
  th, td { padding: 0.1875rem 0.5rem 0.1875rem 0; overflow-wrap: break-word; }
  thead { display: table-header-group; }
  thead th, .number, time, .badge, .sub, td code { white-space: normal; }
  tbody th, .details { min-width: 0; }
  tr, figure, .figures > div { break-inside: avoid; }
  h1, h2, h3 { break-after: avoid; }
  section { margin-top: 1.25rem; }
  .figures dd { font-size: 0.9375rem; }
  a { color: inherit; text-decoration: none; }
}
`;
