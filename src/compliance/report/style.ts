import { STYLE as REPORT_STYLE } from '../../base/report-style.ts';

/** Style of the backtest report, extended for long tables and for printing on A4. */
export const STYLE = `${REPORT_STYLE}
body { max-width: 70rem; }
nav ol { columns: 18rem; padding-left: 1.5rem; margin: 0.5rem 0 0; }
h3 { margin: 1.25rem 0 0.375rem; }
section > p { max-width: 46rem; }
.notice { padding: 0.875rem 1rem; border: 2px solid var(--ink); border-radius: 6px; max-width: 58rem; margin-top: 1rem; }
.fields caption { font-weight: 650; color: var(--ink); padding-top: 1rem; }
h2 + .fields:last-child > caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
header ul { list-style: none; }
.marker { display: inline-block; min-width: 1.25rem; padding: 0 0.25rem; border: 1px solid currentColor; border-radius: 3px; font-size: 0.75rem; line-height: 1.4; text-align: center; font-weight: 650; }
.empty { display: inline-block; padding: 0 0.375rem; border: 1px dashed var(--muted); border-radius: 3px; color: var(--muted); }
.source { color: var(--muted); font-size: 0.75rem; overflow-wrap: anywhere; }
.words { white-space: pre-line; overflow-wrap: anywhere; }
table { table-layout: auto; }
th, td { overflow-wrap: break-word; vertical-align: top; }
thead th { white-space: normal; }
.rows code, dd, td td { overflow-wrap: anywhere; }
.record + .record { margin-top: 0.375rem; padding-top: 0.375rem; border-top: 1px dotted var(--rule); }
tbody th { font-weight: 550; }
td table { font-size: 0.8125rem; }
td table :is(th, td) { padding: 0.125rem 0.5rem 0.125rem 0; }
.fields > tbody > tr > th { width: 24%; }
dl.facts { display: grid; grid-template-columns: minmax(4rem, max-content) minmax(0, 1fr); color: inherit; gap: 0.125rem 1rem; }
dl.facts dt { color: var(--muted); }
@media print {
  @page {
    size: A4;
    margin: 18mm 14mm 16mm;
    @top-left { content: 'RTS 6 validation report: annex of one bot'; font: 8pt sans-serif; }
    @bottom-right { content: counter(page) ' / ' counter(pages); font: 8pt sans-serif; }
  }
  body { font-size: 9pt; }
  table, td table { font-size: 8pt; }
  thead { display: table-header-group; }
  tr { break-inside: auto; }
  .fields > tbody > tr, .rows > tbody > tr { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  section.page { break-before: page; }
  nav { break-after: page; }
  a { text-decoration: none; }
}
`;
