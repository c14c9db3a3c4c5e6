/** Styles of the pages of bots and tasks. They use colors of `STYLE`, which comes first. */
export const STYLE_OF_BOTS = `
a.button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600; }
.who .button { min-height: 2rem; padding-block: 0.125rem; }
.halted { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; max-width: 88rem; margin-inline: auto; padding: 0.5rem clamp(1rem, 3vw, 2.5rem); border-bottom: 2px solid var(--bad); background: var(--panel); overflow-wrap: anywhere; }
.offline { position: sticky; top: 0; z-index: 3; max-width: none; margin: 0; padding: 0.625rem clamp(1rem, 3vw, 2.5rem); border-block: 2px solid var(--bad); background: var(--panel); color: var(--bad); font-weight: 600; }
.stale { margin: 0 0 0.25rem; color: var(--bad); font-size: 0.8125rem; font-weight: 600; }
[data-offline] main :is(dd, td) { font-style: italic; }
[data-offline] main canvas { opacity: 0.5; }
.cannot { font-weight: 400; }
a.button[aria-disabled] { opacity: 0.5; cursor: not-allowed; }
.halted .button { min-height: 2rem; padding-block: 0.125rem; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.sub { display: block; white-space: nowrap; color: var(--muted); font-weight: 400; font-size: 0.8125rem; }
.tabs ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; list-style: none; border-bottom: 1px solid var(--rule); }
.tabs a { display: block; padding: 0.375rem 0; margin-bottom: -1px; border-bottom: 2px solid transparent; color: var(--muted); text-decoration: none; }
.tabs a:hover { color: var(--ink); }
.tabs a[aria-current] { color: var(--ink); font-weight: 600; border-color: var(--accent); }
.filter select { width: auto; min-width: 9rem; }
.filter .field input { max-width: none; }

.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 8.75rem), 1fr)); gap: 0.75rem 1.5rem; }
.figures dt { color: var(--muted); font-size: 0.8125rem; }
.figures dd { font-size: 1.1875rem; font-weight: 600; letter-spacing: -0.01em; overflow-wrap: anywhere; }
.figures dd[data-figure='time'] { font-size: 0.9375rem; font-weight: 400; line-height: 1.8; letter-spacing: 0; white-space: nowrap; }
.heading .badge { margin-inline: 0.25rem 0.5rem; }
.chart { position: relative; width: 100%; }
#prices { --prices: clamp(17rem, 40vh, 27rem); height: var(--prices); }
#equity { height: clamp(12rem, 26vh, 17rem); }
#charts figure + figure { margin-top: 1.5rem; }
#charts figure > * + * { margin-top: 0.375rem; }
.controls { display: flex; flex-wrap: wrap; gap: 0.375rem 0.75rem; align-items: center; }
.controls button, .controls select { min-height: 1.875rem; padding: 0.125rem 0.5rem; font-size: 0.8125rem; width: auto; border-color: var(--rule); }
.controls button:hover { border-color: var(--muted); }
.presets { display: flex; flex-wrap: wrap; gap: 0.25rem; }
.controls [aria-pressed='true'] { background: var(--panel); border-color: var(--ink); font-weight: 600; }
.indicators { margin-bottom: 0; }
.indicators button { border-color: var(--rule); }
.desk { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2.5rem; }
.desk section { margin-top: 1.75rem; }
.side :is(th, td) { padding-right: 0.75rem; }
.side tbody th { min-width: 0; }
@media (min-width: 68rem) { .desk { grid-template-columns: minmax(0, 2fr) minmax(19rem, 1fr); } }
.limits { list-style: none; }
.limits li { display: grid; grid-template-columns: 1fr auto; gap: 0 0.75rem; padding-block: 0.375rem; font-size: 0.875rem; max-width: none; }
.limits .use { color: var(--muted); text-align: right; }
.limits .use b { color: var(--ink); font-weight: 600; }
.limits .share { display: inline-block; min-width: 3rem; }
.limits meter { grid-column: 1 / -1; width: 100%; height: 0.5rem; margin-top: 0.25rem; }
meter { appearance: none; border: 0; border-radius: 99px; background: var(--rule); overflow: hidden; }
meter::-webkit-meter-inner-element { display: block; height: 100%; }
meter::-webkit-meter-bar { height: 100%; border: 0; border-radius: 99px; background: var(--rule); }
meter::-webkit-meter-optimum-value, meter::-webkit-meter-suboptimum-value, meter::-webkit-meter-even-less-good-value { background: var(--accent); }
.loss-limit meter::-webkit-meter-optimum-value { background: var(--good); }
.loss-limit meter::-webkit-meter-suboptimum-value { background: var(--warning); }
.loss-limit meter::-webkit-meter-even-less-good-value { background: var(--bad); }
meter::-moz-meter-bar { background: var(--accent); }
.loss-limit meter::-moz-meter-bar { background: var(--good); }
.loss-limit meter:-moz-meter-sub-optimum::-moz-meter-bar { background: var(--warning); }
.loss-limit meter:-moz-meter-sub-sub-optimum::-moz-meter-bar { background: var(--bad); }
.verdict { display: flex; flex-wrap: wrap; gap: 0.25rem 0.5rem; align-items: baseline; max-width: none; }
#overview > * + * { margin-top: 1.25rem; }
#overview section { margin-top: 2rem; }
kbd { font: 0.75rem/1 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; padding: 0.125rem 0.375rem; border: 1px solid var(--edge); border-radius: 4px; background: var(--panel); color: var(--ink); white-space: nowrap; }
dialog.palette { width: min(36rem, calc(100vw - 2rem)); margin: 12vh auto auto; padding: 0.75rem; border: 1px solid var(--edge); border-radius: 10px; background: var(--paper); color: var(--ink); box-shadow: 0 1rem 3rem rgb(0 0 0 / 0.3); }
dialog.palette::backdrop { background: rgb(0 0 0 / 0.35); }
dialog.palette > * + * { margin-top: 0.5rem; }
.palette ul { list-style: none; max-height: 50vh; overflow: auto; }
.palette li { padding: 0.4375rem 0.625rem; border-radius: 6px; cursor: pointer; max-width: none; display: flex; justify-content: space-between; gap: 1rem; overflow-wrap: anywhere; }
.palette li:hover { background: var(--panel); }
.palette li[aria-selected='true'] { background: var(--panel); box-shadow: inset 3px 0 var(--accent); }
.help dl { display: grid; grid-template-columns: auto 1fr; gap: 0.375rem 1rem; }
.toasts { position: fixed; right: 1rem; bottom: 1rem; z-index: 4; display: grid; gap: 0.5rem; width: min(22rem, calc(100vw - 2rem)); }
.toast { display: flex; flex-wrap: wrap; gap: 0.25rem 0.5rem; align-items: center; padding: 0.5rem 0.5rem 0.5rem 0.875rem; border: 1px solid var(--edge); border-left: 4px solid var(--warning); border-radius: 8px; background: var(--paper); box-shadow: 0 0.5rem 1.5rem rgb(0 0 0 / 0.2); font-size: 0.875rem; }
.toast.critical { border-left-color: var(--bad); }
.toast a { color: var(--ink); font-weight: 600; }
.toast button { margin-left: auto; min-height: 1.75rem; padding: 0 0.5rem; font-size: 1.125rem; }
#trades-rows { margin-top: 0.75rem; }
#trades-rows > * + * { margin-top: 0.75rem; }
.trades td, .trades th { white-space: nowrap; }
.halves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 2.5rem; }
.line { display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: baseline; justify-content: space-between; }
.stream { max-height: 22rem; }
.events table { min-width: 44rem; }
.events tbody th { min-width: 0; }
.events td { white-space: nowrap; }
.events td:last-child { width: 60%; white-space: normal; overflow-wrap: anywhere; }
.events summary { font-weight: 400; padding: 0; }
.events pre { margin-top: 0.5rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); gap: 0.75rem 1rem; }
.pair select { width: 100%; }
fieldset > .pair + .check { margin-top: 0.75rem; }
form.actions > * + * { margin-top: 0; }
.findings { list-style: none; }
.findings li + li { margin-top: 0.25rem; }
.slider { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: end; max-width: none; }
.slider > * { margin: 0; }
.slider .range { flex: 1 1 16rem; }
.slider .range input { padding: 0; border: 0; background: none; accent-color: var(--accent); }
.slider .at input { width: 8rem; }
.kinds { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
.kinds label { display: inline-flex; gap: 0.375rem; align-items: center; font-weight: 400; margin: 0; min-height: 1.75rem; }
td:has(progress) { white-space: nowrap; }
progress { width: 7rem; height: 0.5rem; vertical-align: middle; accent-color: var(--accent); }
progress.wide { width: min(100%, 28rem); height: 0.75rem; }
.report { display: block; width: 100%; height: min(80vh, 60rem); border: 1px solid var(--rule); border-radius: 8px; background: var(--panel); }
.diff { overflow-wrap: anywhere; }
.diff table { min-width: 34rem; }
.diff td:nth-child(2) { white-space: nowrap; }
#tasks td:nth-child(3):has(a) { min-width: 9rem; }
#tasks td:first-child { padding-right: 0.75rem; }
.trades tbody th { min-width: 2.5rem; }
.report.tall { height: max(88vh, 48rem); }
a.sort { color: inherit; text-decoration: none; }
a.sort:hover { color: var(--ink); text-decoration: underline; }
th[aria-sort] a.sort { color: var(--ink); font-weight: 650; }
th[aria-sort='descending'] a.sort::after { content: ' ↓'; }
th[aria-sort='ascending'] a.sort::after { content: ' ↑'; }
.diff del { color: var(--bad); text-decoration: none; }
.diff ins { color: var(--good); text-decoration: none; }
.steps { list-style: none; }
.steps li { display: flex; gap: 0.5rem; padding-block: 0.125rem; }
.steps li::before { content: '○'; color: var(--muted); }
.steps li[data-done]::before { content: '●'; color: var(--good); }
.steps li[data-failed]::before { content: '●'; color: var(--bad); }
@media (min-width: 112rem) { .halted { max-width: 112rem; } }
@media (max-width: 40rem) {
  .tabs ul { column-gap: 0.875rem; }
  #overview td time { display: inline-block; min-width: 5.75rem; white-space: normal; }
  #tasks td:nth-child(3):has(a) { min-width: 7rem; }
  #tasks tbody th { min-width: 0; }
  .who .button { padding-inline: 0.5rem; }
  #prices { --prices: 16rem; }
  #palette-open { display: none; }
  #equity { height: 12rem; }
}
`;
