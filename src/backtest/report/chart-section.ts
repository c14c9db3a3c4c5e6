import { html, type Html, nothing } from '../../base/html.ts';

/** Switches the scale; hidden until `prepareCharts` enables it. */
export const LOG_BUTTON = html`<button type="button" class="log" aria-pressed="false" hidden>
  Log scale
</button>`;

/** Switches between the overview and single bars; hidden until `connectLevels` enables it. */
export const SINGLE_BARS_BUTTON = html`<button
  type="button"
  class="single"
  aria-pressed="false"
  hidden
>
  Single bars
</button>`;

/** Moves and zooms the chart of the surrounding figure; hidden until `prepareCharts` enables it. */
const RANGE_BUTTONS = html`<div class="range" role="group" aria-label="Range of the chart" hidden>
  <button type="button" value="earlier" aria-label="Earlier">‹</button>
  <button type="button" value="later" aria-label="Later">›</button>
  <button type="button" value="closer" aria-label="Zoom in">+</button>
  <button type="button" value="wider" aria-label="Zoom out">−</button>
  <button type="button" value="all">All</button>
</div>`;

/** A section with a chart that a script draws into the element `#id`. */
export function chartSection(
  id: 'equity' | 'prices',
  title: string,
  parts: { selector?: Html; legend: Html; caption: string; note?: Html },
): Html {
  const { selector = nothing, legend, caption, note = nothing } = parts;
  return html`<section aria-labelledby="${id}-title">
    <figure>
      <div class="heading">
        <h2 id="${id}-title">${title}</h2>
        <div class="controls">${selector}${RANGE_BUTTONS}</div>
      </div>
      <p class="readings"></p>
      <div
        class="chart"
        id="${id}"
        role="img"
        aria-labelledby="${id}-title"
        aria-describedby="${id}-summary"
      ></div>
      <p class="legend">${legend}</p>
      ${id === 'prices' ? html`<div class="indicators"></div>` : nothing}
      <figcaption id="${id}-summary">${caption}</figcaption>
      ${note}
    </figure>
  </section>`;
}
