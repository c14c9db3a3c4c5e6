/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';

/** Adds a tooltip to the chart, which is hidden at first. */
export function addTooltip(chart: Charts.IChartApi, element: HTMLElement) {
  const tooltip = element.appendChild(document.createElement('div'));
  tooltip.className = 'tooltip';
  tooltip.hidden = true;
  tooltip.ariaLive = 'polite';
  return {
    /** Shows lines of text beside a candle; hides the tooltip without lines. */
    show(candle: number, lines: readonly string[]): void {
      const x = chart.timeScale().logicalToCoordinate(candle as Charts.Logical);
      tooltip.hidden = lines.length === 0 || x === null;
      if (tooltip.hidden) return;
      tooltip.replaceChildren(
        ...lines.map((text) => Object.assign(document.createElement('div'), { textContent: text })),
      );
      const left = Math.min(x! + 12, element.clientWidth - tooltip.offsetWidth - 64);
      tooltip.style.left = `${Math.max(4, left)}px`;
    },
    hide(): void {
      tooltip.hidden = true;
    },
  };
}
