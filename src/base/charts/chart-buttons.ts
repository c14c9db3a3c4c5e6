import { html } from '../html.ts';

/** Switches the scale; hidden until `prepareCharts` enables it. */
export const LOG_BUTTON = html`<button type="button" class="log" aria-pressed="false" hidden>
  Log scale
</button>`;

/** Moves and zooms the chart of the surrounding figure; hidden until `prepareCharts` enables it. */
export const RANGE_BUTTONS = html`<div
  class="range"
  role="group"
  aria-label="Range of the chart"
  hidden
>
  <button type="button" value="earlier" aria-label="Earlier">‹</button>
  <button type="button" value="later" aria-label="Later">›</button>
  <button type="button" value="closer" aria-label="Zoom in">+</button>
  <button type="button" value="wider" aria-label="Zoom out">−</button>
  <button type="button" value="all">All</button>
</div>`;
