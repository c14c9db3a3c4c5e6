import { formatCount, formatInstant, formatPercent, formatRatio } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { samplingPeriod } from '../../base/run-figures.ts';
import { momentsOf } from '../deflated-sharpe.ts';
import { benchmarkName } from './benchmark-section.ts';
import { histogramOf } from './histogram.ts';
import type { ReportInput } from './input.ts';
import { rollingFigures, sampledReturns } from './rolling.ts';
import { monthlyReturns } from './series.ts';
import {
  type Bar,
  type Mark,
  type Point,
  rangeAxis,
  svgChart,
  tickPercent,
  timeAxis,
  valueAxis,
} from './svg-chart.ts';

const MAX_POINTS = 800;

/** Small charts of the returns: by year and month, their distribution, and over rolling windows. */
export function returnsSection({ summary, result, benchmark }: ReportInput): Html {
  const sampled = sampledReturns(result, summary.conventions.sampling);
  const charts = [
    ...calendarCharts(result, benchmark, benchmarkName(summary)),
    histogramChart(sampled.returns, summary),
    ...rollingCharts(sampled, summary),
  ].filter((chart) => chart !== nothing);
  if (charts.length === 0) return nothing;
  return html`<section aria-labelledby="returns">
    <h2 id="returns">Returns</h2>
    <div class="smalls">${charts}</div>
  </section>`;
}

function calendarCharts(
  { time, equity, initialCash }: ReportInput['result'],
  benchmark: Float64Array | undefined,
  benchmarkLabel: string,
): Html[] {
  const years = monthlyReturns(time, equity, initialCash);
  const ofYears = years.flatMap(({ year, total }) =>
    total === null ? [] : { at: Date.UTC(year), until: Date.UTC(year + 1), name: `${year}`, total },
  );
  const ofMonths = years.flatMap(({ year, months }) =>
    months.flatMap((total, month) =>
      typeof total === 'number'
        ? {
            at: Date.UTC(year, month),
            until: Date.UTC(year, month + 1),
            name: new Date(Date.UTC(year, month)).toISOString().slice(0, 7),
            total,
          }
        : [],
    ),
  );
  const held = benchmark === undefined ? [] : monthlyReturns(time, benchmark, initialCash);
  const line = held.flatMap(({ year, total }) =>
    total === null
      ? []
      : [[Date.UTC(year), total] as const, [Date.UTC(year + 1), total] as const, null],
  );
  return [
    ofYears.length < 2
      ? nothing
      : periodChart('years', 'Yearly returns', ofYears, { line, label: benchmarkLabel }),
    ofMonths.length < 2
      ? nothing
      : periodChart('month-bars', 'Monthly returns over time', ofMonths),
  ];
}

interface PeriodReturn {
  /** Beginning of the period and of the next, ms since the epoch. */
  readonly at: number;
  readonly until: number;
  readonly name: string;
  readonly total: number;
}

function periodChart(
  id: string,
  title: string,
  periods: readonly PeriodReturn[],
  benchmark: { readonly line: readonly (Point | null)[]; readonly label: string } = {
    line: [],
    label: '',
  },
): Html {
  const { line, label } = benchmark;
  const bars = periods.map(({ at, until, name, total }): Bar => {
    const gap = (until - at) * 0.1;
    return { from: at + gap, to: until - gap, y: total, text: `${name}: ${formatPercent(total)}` };
  });
  const best = periods.reduce((a, b) => (b.total > a.total ? b : a));
  const worst = periods.reduce((a, b) => (b.total < a.total ? b : a));
  const ups = periods.filter(({ total }) => total > 0).length;
  return svgChart({
    id,
    title,
    caption: `Positive in ${formatCount(ups)} of ${formatCount(periods.length)}; best ${best.name} with ${formatPercent(best.total)}, worst ${worst.name} with ${formatPercent(worst.total)}.${line.length > 0 ? ` Horizontal lines: ${label}.` : ''}`,
    x: timeAxis(periods[0]!.at, periods.at(-1)!.until),
    y: valueAxis(
      [...periods.map(({ total }) => total), ...line.flatMap((point) => point?.[1] ?? [])],
      tickPercent,
    ),
    marks: [...signed(bars), { kind: 'line', className: 'benchmark', points: line }],
  });
}

/** Bars above zero in the color of gains, others in that of losses. */
function signed(bars: readonly Bar[]): Mark[] {
  return [
    { kind: 'bars', className: 'gain', bars: bars.filter(({ y }) => y >= 0) },
    { kind: 'bars', className: 'loss', bars: bars.filter(({ y }) => y < 0) },
  ];
}

function histogramChart(returns: Float64Array, { conventions }: ReportInput['summary']): Html {
  const { mean, deviation } = momentsOf(returns);
  const changes = returns.filter((value) => value !== 0);
  const histogram = histogramOf(changes, { mean, deviation });
  if (histogram === undefined) return nothing;
  const { from, width, counts } = histogram;
  const edges = (bin: number): [number, number] => [from + bin * width, from + (bin + 1) * width];
  const groups = ['gain', 'loss'].map((className): Mark => ({
    kind: 'bars',
    className,
    bars: counts.flatMap((count, bin) => {
      const [low, high] = edges(bin);
      // A bin edge at zero can be off by a rounding error.
      if (count === 0 || low > -width / 2 !== (className === 'gain')) return [];
      const text = `${formatPercent(low)} to ${formatPercent(high)}: ${formatCount(count)}`;
      return { from: low + width * 0.06, to: high - width * 0.06, y: count, text };
    }),
  }));
  const positive = returns.filter((value) => value > 0).length / returns.length;
  return svgChart({
    id: 'histogram',
    title: 'Distribution of returns',
    caption: `${formatCount(returns.length)} returns, each of one ${samplingPeriod(conventions.sampling)}: mean ${formatPercent(mean)}, standard deviation ${formatPercent(deviation)}, ${formatPercent(positive)} positive. The ${formatCount(returns.length - changes.length)} returns of zero are not drawn; those beyond four deviations are in the outer bars. Vertical: number of returns.`,
    x: rangeAxis(from, from + counts.length * width),
    y: valueAxis([...counts], formatCount),
    marks: groups,
  });
}

function rollingCharts(
  sampled: ReturnType<typeof sampledReturns>,
  { conventions, risk }: ReportInput['summary'],
): Html[] {
  const rolling = rollingFigures(sampled, conventions, MAX_POINTS);
  const { time, window } = rolling;
  if (time.length < 2) return [];
  const x = timeAxis(time[0]!, time.at(-1)!);
  const chart = (
    id: string,
    title: string,
    values: readonly (number | null)[],
    overall: number | null,
    format: (value: number) => string,
  ): Html => {
    const defined = values.filter((value) => value !== null);
    if (defined.length === 0) return nothing;
    const last = values.at(-1) ?? null;
    const whole = overall === null ? '' : ` Whole run (dashed): ${format(overall)}.`;
    return svgChart({
      id,
      title,
      caption: `Each point covers ${formatCount(window)} returns (six months). Last point, ${formatInstant(time.at(-1)!, true)}: ${last === null ? 'undefined' : format(last)}.${whole}`,
      x,
      y: valueAxis(overall === null ? defined : [...defined, overall], (value) =>
        format === formatRatio ? String(value).replace('-', '−') : tickPercent(value),
      ),
      marks: [
        ...(overall === null
          ? []
          : [
              {
                kind: 'line',
                className: 'benchmark dashed',
                points: [
                  [x.from, overall],
                  [x.to, overall],
                ],
              } as const,
            ]),
        {
          kind: 'line',
          className: 'equity',
          points: values.map((value, index) => (value === null ? null : [time[index]!, value])),
        },
      ],
    });
  };
  return [
    chart('rolling-sharpe', 'Rolling Sharpe ratio', rolling.sharpe, risk.sharpe, formatRatio),
    chart(
      'rolling-volatility',
      'Rolling volatility',
      rolling.volatility,
      risk.volatility,
      formatPercent,
    ),
  ];
}
