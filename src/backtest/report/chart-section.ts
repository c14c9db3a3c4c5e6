import { RANGE_BUTTONS } from '../../base/charts/chart-buttons.ts';
import { html, type Html, nothing } from '../../base/html.ts';

/** Switches between the overview and single bars; hidden until `connectLevels` enables it. */
export const SINGLE_BARS_BUTTON = html`<button
  type="button"
  class="single"
  aria-pressed="false"
  hidden
>
  Single bars
</button>`;

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
