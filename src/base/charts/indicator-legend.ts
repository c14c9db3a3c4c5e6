/// <reference lib="dom" />
import type { Level } from './level.ts';
import type { ChartTools } from './chart-tools.ts';
import type { StyledLine } from './indicator-lines.ts';

declare const chartTools: ChartTools;

/** Fills the legend with a toggle of each indicator, and returns a function that updates their values. */
export function drawLegend(
  legend: HTMLElement,
  level: Level,
  lines: readonly StyledLine[],
  hidden: Set<string>,
  onToggle: () => void,
): (candle: number) => void {
  const { amount, price } = chartTools;
  const readings: ((candle: number) => void)[] = [];

  function key({ hue, dash }: StyledLine): SVGElement {
    const name = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(name, 'svg');
    const line = svg.appendChild(document.createElementNS(name, 'line'));
    const shape = { x1: 0, y1: 4, x2: 24, y2: 4, 'stroke-dasharray': dash.join(' ') || 'none' };
    for (const [attribute, value] of Object.entries(shape)) {
      line.setAttribute(attribute, String(value));
    }
    svg.setAttribute('class', `line-${hue}`);
    svg.setAttribute('viewBox', '0 0 24 8');
    svg.setAttribute('aria-hidden', 'true');
    return svg;
  }

  function toggle(label: string, parts: readonly (Node | string)[]): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.ariaPressed = String(!hidden.has(label));
    button.append(...parts);
    button.addEventListener('click', () => {
      if (!hidden.delete(label)) hidden.add(label);
      button.ariaPressed = String(!hidden.has(label));
      onToggle();
    });
    return button;
  }

  function reading(text: (candle: number) => string): HTMLElement {
    const value = document.createElement('output');
    readings.push((candle) => (value.textContent = text(candle)));
    return value;
  }
  const newElement = (tag: string, text: string): HTMLElement =>
    Object.assign(document.createElement(tag), { textContent: text });

  function valueOf({ indicator, lineIndex, index }: StyledLine): HTMLElement {
    return reading((candle) => {
      const found = level.ranges[index]!.close[candle];
      if (found === null || found === undefined) return '—';
      return indicator.lines[lineIndex]!.pane === 'volume' ? amount(found, 0) : price(found);
    });
  }

  const entries = [...Map.groupBy(lines, ({ indicator }) => indicator)].map(([indicator, own]) => {
    const values = own.flatMap((line) => {
      const { name } = indicator.lines[line.lineIndex]!;
      return [key(line), ...(name === '' ? [] : [newElement('small', name)]), valueOf(line)];
    });
    const name = indicator.name === '' ? [] : [newElement('b', indicator.name)];
    return toggle(indicator.label, [...name, newElement('span', indicator.label), ...values]);
  });
  const { volume } = level.candles;
  if (volume.some((value) => value > 0)) {
    const value = reading((candle) => amount(volume[candle] ?? 0, 0));
    entries.push(toggle('volume', [newElement('span', 'Volume'), value]));
  }
  legend.replaceChildren(...entries);
  return (candle) => readings.forEach((update) => update(candle));
}
