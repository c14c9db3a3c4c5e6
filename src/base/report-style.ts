import { CHART_COLORS, CHART_CSS } from './charts/chart-style.ts';
import { THEME_CSS } from './theme.ts';

/** Maximum number of rows of a table when printed. */
export const PRINTED_ROWS = 60;

/** Style sheet of the reports. Each color has a value for the light and one for the dark scheme. */
export const STYLE = `
:root {${THEME_CSS}${CHART_COLORS}}
:root[data-theme='light'], :root.printing { color-scheme: light; }
:root[data-theme='dark']:not(.printing) { color-scheme: dark; }

* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto;
  padding: clamp(1rem, 3vw, 3rem);
  max-width: 82rem;
  background: var(--paper);
  color: var(--ink);
  font-size: 0.9375rem;
}
h1, h2, h3, p, dl, dd, figure, ul { margin: 0; padding: 0; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.6vw, 2.25rem); line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.125rem; font-weight: 650; letter-spacing: -0.005em; }
h3 { font-size: 0.9375rem; font-weight: 650; }
a { color: inherit; }
code { font: 0.8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--equity); outline-offset: 2px; border-radius: 2px; }
figcaption, .note { color: var(--muted); }
.note, figcaption { font-size: 0.875rem; max-width: 46rem; text-wrap: pretty; }
.gain { color: var(--gain); }
.loss { color: var(--loss); }

button, select {
  font: inherit;
  font-size: 0.875rem;
  color: inherit;
  background: var(--paper);
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 0.25rem 0.625rem;
  min-height: 2rem;
}
button { cursor: pointer; }
button:hover, select:hover { border-color: var(--muted); }

header { display: grid; gap: 0.375rem; }
.topline { display: flex; justify-content: space-between; align-items: center; color: var(--muted); }
.topline button { flex: none; }
.facts { display: flex; flex-wrap: wrap; gap: 0.125rem 1.25rem; color: var(--muted); }
.verdict { display: flex; flex-wrap: wrap; gap: 0.5rem; margin-top: 0.75rem; padding: 0; list-style: none; }
.verdict li { display: inline-flex; align-items: baseline; gap: 0.5rem; padding: 0.25rem 0.75rem; border-radius: 99px; background: var(--panel); font-weight: 550; }
.verdict li::before { content: ''; width: 0.5rem; height: 0.5rem; border-radius: 50%; background: var(--muted); align-self: center; }
.verdict .pass::before { background: var(--gain); }
.verdict .fail::before, .verdict .critical::before { background: var(--loss); }
.verdict .warning::before { background: var(--warning); }

.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.25rem, 1fr)); gap: 1rem 1.25rem; margin-top: 1.5rem; padding: 1rem 0; border: solid var(--rule); border-width: 1px 0; }
.figures dt { color: var(--muted); font-size: 0.8125rem; }
.figures dd { font-size: 1.375rem; line-height: 1.3; font-weight: 600; letter-spacing: -0.01em; white-space: nowrap; }
.figures dd + dd { font-size: 0.8125rem; font-weight: 400; letter-spacing: 0; color: var(--muted); white-space: normal; }

section { margin-top: 2.75rem; }
section > h2, .heading { margin-bottom: 0.625rem; }
.scroll + .note, table + .note, table + .pairs { margin-top: 0.75rem; }
.note + .scroll { margin-top: 0.625rem; }
.heading { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; }
.heading h2 { margin: 0; }
.controls { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.chart { width: 100%; margin: 0.375rem 0 0.75rem; }
#equity { height: clamp(20rem, 48vh, 34rem); }
#prices { --prices: clamp(18rem, 42vh, 30rem); height: var(--prices); position: relative; }
${CHART_CSS}
:is(.log, .single)[aria-pressed='true'] { border-color: var(--ink); font-weight: 600; }
.picture { display: none; }

.scroll { overflow: auto; }
.scroll.tall { max-height: 34rem; border: 1px solid var(--rule); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
caption { text-align: left; color: var(--muted); padding-bottom: 0.5rem; }
th, td { padding: 0.3125rem 0.75rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: baseline; }
th { font-weight: 550; }
thead th { color: var(--muted); white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
tbody tr:last-child > * { border-bottom-color: transparent; }
.plain th:first-child, .plain td:first-child { padding-left: 0; }
.plain th:last-child, .plain td:last-child { padding-right: 0; }
.plain td.number { font-weight: 550; }
.stack tbody th { width: 28%; }
.stack .number { width: 16%; }
.plain .how { color: var(--muted); font-size: 0.8125rem; }
.plain tbody th { white-space: nowrap; font-weight: 450; }
.plain .group th { padding-top: 1.25rem; font-weight: 650; white-space: normal; }
.plain tbody:first-of-type .group th { padding-top: 0.25rem; }

.side { white-space: nowrap; }
.side :is(thead th, tbody:not(:has(.group)) th, tr:not(.group) th):first-child { position: sticky; left: 0; z-index: 1; background: var(--paper); }
.side .key { margin-right: 0.25rem; }
.causes { padding-left: 1.25rem; margin-bottom: 0.625rem; overflow-wrap: anywhere; }
.notes { display: grid; gap: 0.75rem; }
.notes .judgement { margin: 0; }

.sortable { white-space: nowrap; }
.sortable thead th { position: sticky; top: 0; z-index: 1; padding: 0; background: var(--panel); }
.sortable thead button { width: 100%; border: 0; border-radius: 0; padding: 0.375rem 0.75rem; background: none; color: inherit; font-weight: 550; text-align: inherit; white-space: normal; }
.sortable thead button:hover { color: var(--ink); }
.sortable thead button:focus-visible { outline-offset: -2px; }
.sortable thead button::after { content: '↕' / ''; margin-left: 0.375rem; opacity: 0.35; }
.sortable [aria-sort='ascending'] button::after { content: '↑' / ''; opacity: 1; }
.sortable [aria-sort='descending'] button::after { content: '↓' / ''; opacity: 1; }
.sortable td[data-value] { text-align: right; }
.sortable tbody tr:hover { background: var(--panel); }
button.trade { min-height: 0; font-size: inherit; padding: 0 0.5rem; border-color: transparent; background: none; text-decoration: underline; text-decoration-color: var(--muted); text-underline-offset: 3px; }

.heat { border-collapse: separate; border-spacing: 2px; font-size: 0.8125rem; }
.heat th, .heat td { border: 0; border-radius: 3px; padding: 0.25rem 0.375rem; text-align: right; white-space: nowrap; }
.heat thead th { font-weight: 450; }
.heat tbody th { font-weight: 550; text-align: left; position: sticky; left: 0; background: var(--paper); }
.heat .total { font-weight: 650; padding-left: 0.75rem; }
.heat .best { outline: 2px solid var(--ink); outline-offset: -1px; font-weight: 650; }
${[1, 2, 3, 4, 5]
  .flatMap((level) =>
    [
      ['up', 'gain'],
      ['down', 'loss'],
      ['more', 'equity'],
    ].map(
      ([direction, color]) =>
        `.${direction}-${level} { background: color-mix(in srgb, var(--${color}) ${level * 9}%, var(--paper)); }`,
    ),
  )
  .join('\n')}

.nowrap { white-space: nowrap; }
.smalls { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1.5rem 2rem; align-items: start; }
.groups { columns: 23rem; column-gap: 2rem; }
.groups > * { break-inside: avoid; margin-bottom: 1.5rem; }
.groups :is(th, td) { padding-inline: 0.375rem; }
.groups thead th { white-space: normal; vertical-align: bottom; }
.groups table { font-size: 0.8125rem; }
.groups + .smalls { margin-top: 1.75rem; }
.note + .groups, .smalls + .note { margin-top: 0.75rem; }
.small { max-width: 36rem; }
.parallel { display: block; width: 100%; min-width: 36rem; font-size: 12px; font-variant-numeric: tabular-nums; }
.parallel polyline { fill: none; stroke: var(--rule); stroke-width: 1; }
.parallel .best { stroke: var(--equity); stroke-width: 1.5; opacity: 0.85; }
.parallel .axis line { stroke: var(--muted); }
.parallel text { fill: var(--muted); text-anchor: middle; }
.parallel .name { fill: var(--ink); font-weight: 600; }
.small svg { display: block; width: 100%; margin: 0.375rem 0; font-size: 12px; font-variant-numeric: tabular-nums; overflow: visible; }
.small figcaption { font-size: 0.8125rem; }
.small text { fill: var(--muted); }
.small path { fill: none; }
.small .grid { stroke: var(--rule); }
.small .zero { stroke: var(--muted); }
.small .line { stroke: currentColor; stroke-width: 1.5; stroke-linejoin: round; }
.small .dashed { stroke-dasharray: 5 4; }
.small .dots { stroke: currentColor; stroke-width: 4.5; stroke-linecap: round; opacity: 0.6; }
.small .dots.best { stroke-width: 9; opacity: 1; }
.small rect { fill: currentColor; opacity: 0.85; }
.small rect:hover { opacity: 1; }

.brief { max-width: 46rem; }
.heat th:first-child { width: 1%; }

.findings { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 0.75rem; list-style: none; }
.findings li, .judgement { padding: 0.875rem 1rem; border-left: 3px solid var(--muted); border-radius: 0 6px 6px 0; background: var(--panel); }
.findings .warning, .judgement.warning { border-color: var(--warning); }
.findings .critical { border-color: var(--loss); }
.findings .severity { font-size: 0.8125rem; color: var(--muted); }
.findings .warning .severity { color: var(--warning); }
.findings .critical .severity { color: var(--loss); }
.judgement { max-width: 58rem; margin-top: 1.25rem; text-wrap: pretty; }
.judgement.pass { border-color: var(--gain); }
.findings p, .findings h3 { overflow-wrap: anywhere; }
.findings .remedy { margin-top: 0.375rem; }
.pairs { display: flex; flex-wrap: wrap; gap: 0 1.25rem; font-size: 0.8125rem; color: var(--muted); }
.pairs div { display: flex; gap: 0.375rem; }
.pairs dd { color: var(--ink); overflow-wrap: anywhere; }

.legend { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin-bottom: 0.375rem; font-size: 0.8125rem; color: var(--muted); }
.key { display: inline-block; width: 0.875rem; height: 0.1875rem; border-radius: 1px; vertical-align: middle; background: currentColor; }
.equity { color: var(--equity); }
.benchmark { color: var(--benchmark); }
.provenance { margin-top: 0.625rem; font-size: 0.875rem; }
.provenance div { padding: 0.25rem 0; }
.provenance dt { color: var(--muted); font-size: 0.8125rem; overflow-wrap: anywhere; }
.provenance dd { line-height: 1.35; }

.undefined { position: relative; cursor: help; color: var(--muted); }
.undefined span { display: none; position: absolute; right: 0; bottom: calc(100% + 0.375rem); z-index: 2; width: max-content; max-width: 16rem; padding: 0.375rem 0.625rem; border-radius: 6px; background: var(--ink); color: var(--paper); font-size: 0.8125rem; font-weight: 400; letter-spacing: 0; line-height: 1.4; text-align: left; white-space: normal; }
.figures .undefined span { right: auto; left: 0; }
.undefined:is(:hover, :focus) span { display: block; }

footer { margin-top: 3.5rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--muted); font-size: 0.8125rem; }

@media (min-width: 112rem) {
  body { max-width: 128rem; font-size: 1rem; }
  .columns { display: grid; grid-template-columns: minmax(0, 1fr) 38rem; gap: 0 4rem; }
}
@media (max-width: 84rem) {
  .figures:has(> :nth-child(8)) { grid-template-columns: repeat(4, 1fr); }
}
@media (max-width: 40rem) {
  .plain th, .plain td { padding-inline: 0.25rem; }
  .groups table { font-size: 0.75rem; }
  .stack tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--rule); padding: 0.375rem 0; }
  .plain.stack :is(th, td) { border: 0; padding: 0; width: auto; }
  .plain.stack .group th { padding-top: 1rem; }
  .stack .how { grid-column: 1 / -1; }
  .stack thead { display: none; }
  .figures, .figures:has(> :nth-child(8)) { grid-template-columns: 1fr 1fr; }
  .figures dd { font-size: 1.1875rem; }
}

.print-only { display: none; }
@media print {
  .print-only { display: block; }
  @page { margin: 14mm; }
  :root { color-scheme: light; font-size: 80%; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; }
  .controls, #theme, .readings, .chart { display: none !important; }
  .picture { display: block; width: 100%; height: auto; margin: 0.5rem 0; }
  .columns { display: block; }
  section { margin-top: 1.75rem; }
  figure, .findings li, .figures, tr, .heat { break-inside: avoid; }
  h2, .heading { break-after: avoid; }
  .scroll, .scroll.tall { overflow: visible; max-height: none; border: 0; }
  .sortable, .heat { font-size: 0.6875rem; }
  .heat { border-spacing: 1px; }
  .heat :is(th, td) { padding: 0.125rem; }
  .sortable th, .sortable td, .sortable thead button { padding: 0.125rem 0.25rem; }
  .sortable thead th { position: static; }
  .sortable thead button::after { content: none; }
  .sortable tbody tr:nth-child(n + ${PRINTED_ROWS + 1}) { display: none; }
  .undefined span { display: inline; position: static; padding: 0; background: none; color: inherit; }
}
`;
