/// <reference lib="dom" />
import type { FigureUnit } from '../../../base/run-figure.ts';

/** Data of the page's map, embedded in the page as JSON. Every `of` has one entry per trial. */
export interface HeatMapData {
  /** `of` contains indices into `values`, which are in the order of the axis. */
  readonly params: readonly {
    readonly name: string;
    readonly values: readonly string[];
    readonly of: readonly number[];
  }[];
  /** Trials are ranked, so the first trial of a cell is its best. */
  readonly metrics: readonly {
    readonly label: string;
    readonly unit: FigureUnit;
    readonly of: readonly (number | null)[];
  }[];
}

/** Fills `#map` from the page's data: a table of two parameters, with colors for a metric. */
export function drawHeatMap(): void {
  const data = JSON.parse(document.querySelector('#data')!.textContent) as HeatMapData;
  const longestAxis = 60;
  const metric = document.querySelector<HTMLSelectElement>('#metric')!;
  const across = document.querySelector<HTMLSelectElement>('#across')!;
  const down = document.querySelector<HTMLSelectElement>('#down');

  const format = (value: number | null | undefined, unit: FigureUnit): string => {
    if (value === undefined) return '';
    if (value === null) return '—';
    const digits = { ratio: 2, percent: 1, count: 0, money: 0, days: 0 }[unit];
    const text = (unit === 'percent' ? value * 100 : value).toLocaleString('en-US', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      signDisplay: 'negative',
    });
    return text.replace('-', '−');
  };
  /** Ratios and percentages have diverging colors around zero; counts and money a sequential scale. */
  const shader = (values: readonly number[], unit: FigureUnit): ((value: number) => string) => {
    const high = Math.max(...values);
    const low = Math.min(...values);
    if (unit === 'count' || unit === 'money') {
      return (value) => {
        const level = high > low ? Math.round(((value - low) / (high - low)) * 5) : 0;
        return level > 0 ? `more-${level}` : '';
      };
    }
    const size = Math.max(high, -low);
    return (value) => {
      const level = Math.ceil((Math.abs(value) / size) * 5);
      return level > 0 ? `${value > 0 ? 'up' : 'down'}-${level}` : '';
    };
  };

  type Axis = { name: string; labels: string[]; of: (trial: number) => number };
  /** Divides a long axis into ranges of adjacent values. */
  const axisOf = (param: HeatMapData['params'][number]): Axis => {
    const { name, values, of } = param;
    const places = Math.min(values.length, longestAxis);
    const place = (index: number): number => Math.floor((index * places) / values.length);
    const ranges: string[][] = Array.from({ length: places }, () => []);
    values.forEach((value, index) => ranges[place(index)]!.push(value));
    const labels = ranges.map((range) =>
      range.length === 1 ? range[0]! : `${range[0]} to ${range.at(-1)}`,
    );
    return { name, labels, of: (trial) => place(of[trial]!) };
  };

  const element = <K extends keyof HTMLElementTagNameMap>(
    tag: K,
    text: string,
    properties: Partial<HTMLElementTagNameMap[K]> = {},
  ): HTMLElementTagNameMap[K] =>
    Object.assign(document.createElement(tag), { textContent: text, ...properties });

  let drawn = { across: -1, down: -1 };
  /** Keeps the two axes different: choosing the parameter of the other axis swaps them. */
  function swapIfEqual(): void {
    if (down === null) return;
    if (across.selectedIndex === down.selectedIndex) {
      if (across.selectedIndex === drawn.across) across.selectedIndex = drawn.down;
      else down.selectedIndex = drawn.across;
    }
    drawn = { across: across.selectedIndex, down: down.selectedIndex };
  }

  function draw(): void {
    swapIfEqual();
    const { unit, of: results } = data.metrics[metric.selectedIndex]!;
    const x = axisOf(data.params[across.selectedIndex]!);
    const y: Axis = down
      ? axisOf(data.params[down.selectedIndex]!)
      : { name: '', labels: [''], of: () => 0 };

    const cells = y.labels.map(() => x.labels.map((): number | undefined => undefined));
    results.forEach((_, trial) => {
      cells[y.of(trial)]![x.of(trial)] ??= trial;
    });
    const values = cells.flat().flatMap((trial) => (trial === undefined ? [] : [results[trial]!]));
    const shade = shader(
      values.filter((value) => value !== null),
      unit,
    );

    const table = element('table', '', { className: 'heat' });
    const header = table.createTHead().insertRow();
    header.append(
      element('th', down ? `${y.name} ↓  ${x.name} →` : `${x.name} →`, { scope: 'col' }),
    );
    header.append(...x.labels.map((label) => element('th', label, { scope: 'col' })));
    const body = table.createTBody();
    cells.forEach((row, rowIndex) => {
      const line = body.insertRow();
      line.append(element('th', y.labels[rowIndex]!, { scope: 'row' }));
      for (const trial of row) {
        const value = trial === undefined ? undefined : results[trial];
        const cell = line.appendChild(element('td', format(value, unit)));
        if (typeof value === 'number') cell.className = shade(value);
        if (trial === 0) cell.classList.add('best');
      }
    });
    document.querySelector('#map')!.replaceChildren(table);
  }

  const option = (text: string): HTMLOptionElement => new Option(text);
  metric.append(...data.metrics.map(({ label }) => option(label)));
  for (const select of [across, down]) {
    select?.append(...data.params.map(({ name }) => option(name)));
  }
  // At first, the axes are the two parameters with the most values.
  const [first, second] = data.params
    .map(({ values }, index) => ({ size: values.length, index }))
    .toSorted((a, b) => b.size - a.size);
  across.selectedIndex = first!.index;
  if (down) down.selectedIndex = second!.index;

  metric.addEventListener('change', draw);
  across.addEventListener('change', draw);
  down?.addEventListener('change', draw);
  draw();
}
