/// <reference lib="dom" />
import type * as Charts from 'lightweight-charts';

/** Lengths of the buttons `[data-range]`, in seconds. */
export const RANGES = {
  '1D': 86_400,
  '1W': 604_800,
  '1M': 2_629_800,
  '3M': 7_889_400,
  '1Y': 31_557_600,
} as const;

/** Visible part of the charts: everything, the newest bars, or what the reader chose. */
type Shown = 'all' | 'chosen' | { readonly button: string; readonly seconds: number };

/**
 * Lets several charts of a figure show the same times. Without a choice of the reader, they show
 * everything, also after updates. What the reader chose is kept, also in the address of the page.
 *
 * @param charts each with its element; the first decides about the times.
 * @returns `fit` adapts the charts to data that were added; `show` shows the bars around two times, in
 * seconds since the Unix epoch.
 */
export function followRange(
  figure: HTMLElement,
  charts: readonly { readonly chart: Charts.IChartApi; readonly element: HTMLElement }[],
  times: () => readonly number[],
): { readonly fit: () => void; readonly show: (from: number, to: number) => void } {
  const SETTLE_MS = 400;
  const buttons = [...figure.querySelectorAll<HTMLButtonElement>('[data-range]')];
  const main = charts[0]!.chart.timeScale();
  /** The chart that the reader moves; the others follow it. */
  let leading = charts[0]!.chart;
  let shown: Shown = 'all';
  let timer: ReturnType<typeof setTimeout> | undefined;

  function save(): void {
    const url = new URL(location.href);
    for (const name of ['range', 'from', 'to']) url.searchParams.delete(name);
    const range = main.getVisibleRange();
    if (typeof shown === 'object') url.searchParams.set('range', shown.button);
    else if (shown === 'chosen' && range !== null) {
      const text = (time: Charts.Time): string =>
        new Date((time as number) * 1000).toISOString().replace('.000Z', 'Z');
      url.searchParams.set('from', text(range.from));
      url.searchParams.set('to', text(range.to));
    }
    if (url.href !== location.href) history.replaceState(history.state, '', url);
  }
  function choose(next: Shown): void {
    shown = next;
    for (const button of buttons) {
      const isOn = typeof next === 'object' && next.button === button.dataset['range'];
      button.ariaPressed = String(isOn);
    }
    clearTimeout(timer);
    timer = setTimeout(save, SETTLE_MS);
  }
  function apply(): void {
    const all = times();
    if (all.length < 2) return;
    if (shown === 'all') for (const { chart } of charts) chart.timeScale().fitContent();
    else if (typeof shown === 'object') {
      const last = all.at(-1)!;
      const from = Math.max(all[0]!, last - shown.seconds) as Charts.UTCTimestamp;
      main.setVisibleRange({ from, to: last as Charts.UTCTimestamp });
    }
    const step = (last: number): number => (all.at(-1)! - all[0]!) / last;
    for (const button of buttons) {
      const seconds = Number(button.dataset['seconds']);
      button.hidden = seconds >= all.at(-1)! - all[0]! || seconds < 5 * step(all.length - 1);
    }
  }

  for (const { chart, element } of charts) {
    element.addEventListener('pointerenter', () => (leading = chart));
    element.addEventListener('pointermove', ({ buttons: pressed }) => {
      if (pressed > 0) choose('chosen');
    });
    chart.timeScale().subscribeVisibleTimeRangeChange((range) => {
      if (range === null || chart !== leading) return;
      for (const other of charts) {
        const scale = other.chart.timeScale();
        // A chart without data has no range, and cannot get one.
        if (other.chart !== chart && scale.getVisibleRange() !== null) scale.setVisibleRange(range);
      }
    });
  }
  for (const button of buttons) {
    const { range = '', seconds } = button.dataset;
    button.addEventListener('click', () => {
      leading = charts[0]!.chart;
      choose({ button: range, seconds: Number(seconds) });
      apply();
    });
  }
  figure.querySelector('.range')!.addEventListener('click', ({ target }) => {
    leading = charts[0]!.chart;
    choose((target as HTMLButtonElement).value === 'all' ? 'all' : 'chosen');
    if (shown === 'all') apply();
  });

  const query = new URL(location.href).searchParams;
  const preset = buttons.find((button) => button.dataset['range'] === query.get('range'));
  const [from, to] = ['from', 'to'].map((name) => Date.parse(query.get(name) ?? '') / 1000) as [
    number,
    number,
  ];
  if (preset !== undefined) {
    choose({ button: preset.dataset['range']!, seconds: Number(preset.dataset['seconds']) });
  }
  let isLinked = from < to;
  const showBetween = (start: number, end: number): void => {
    leading = charts[0]!.chart;
    choose('chosen');
    main.setVisibleRange({ from: start as Charts.UTCTimestamp, to: end as Charts.UTCTimestamp });
  };
  return {
    fit() {
      apply();
      if (!isLinked || times().length < 2) return;
      isLinked = false;
      showBetween(from, to);
    },
    show(start, end) {
      const MARGIN = 15;
      const all = times();
      if (all.length < 2) return;
      const barOf = (time: number): number =>
        Math.max(
          0,
          all.findLastIndex((one) => one <= time),
        );
      const [first, last] = [barOf(start), barOf(end)];
      const margin = Math.max(MARGIN, last - first);
      showBetween(all[Math.max(0, first - margin)]!, all[Math.min(all.length - 1, last + margin)]!);
    },
  };
}
