/// <reference lib="dom" />
import type { BotEvent, PaperSession } from '../../../api/bot-state.ts';
import type { SessionChart } from '../../../api/session-views.ts';
import { announce } from './announce.ts';
import type { ShownTimes } from './chat.ts';
import { equityChart } from './equity-chart.ts';
import { followRange } from './follow-range.ts';
import { orderMarks } from './order-marks.ts';
import { sessionCurve } from './session-curve.ts';
import { sessionPrices } from './session-prices.ts';

/** Draws the charts of a session from its record, and continues them with its events. */
export function sessionCharts(figure: HTMLElement, bot: string, session: string) {
  const REFRESH_MS = 2000;
  const SHOWN_KINDS = 'order.filled,order.denied,order.rejected';
  const of = (selector: string): HTMLElement => figure.querySelector<HTMLElement>(selector)!;
  const selector = figure.querySelector<HTMLSelectElement>('#chart-symbol');
  const prices = sessionPrices(of('#prices'));
  const equity = equityChart(of('#equity'));
  const curve = sessionCurve();
  const marks = orderMarks();
  const range = followRange(figure, [prices, equity], prices.times);
  let symbol = '';
  /** Time of the newest bar whose indicators are known, in seconds since the Unix epoch. */
  let known = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasNewMarks = false;
  /** Points at what a source named, until the reader moves the pointer over a chart. */
  let pointAgain: (() => void) | undefined;

  async function read(query: Readonly<Record<string, string>>): Promise<SessionChart | undefined> {
    const search = new URLSearchParams({ run_id: session, ...query });
    try {
      const answer = await fetch(`/bots/${bot}/state/chart?${search}`);
      return answer.ok ? ((await answer.json()) as SessionChart) : undefined;
    } catch {
      return undefined;
    }
  }
  async function load(wanted: string): Promise<void> {
    const chart = await read(wanted === '' ? {} : { symbol: wanted });
    if (chart === undefined) return;
    ({ symbol } = chart);
    prices.start(chart);
    known = chart.candles.time.at(-1) ?? 0;
    curve.put(chart.equity, true);
    of('#no-indicators').hidden = chart.without_indicators === null;
    hasNewMarks = true;
    draw();
  }
  async function complete(): Promise<void> {
    timer = undefined;
    const after = new Date(known * 1000).toISOString();
    const chart = await read({ symbol, after });
    if (chart === undefined || chart.symbol !== symbol) return;
    if (!prices.complete(chart)) return load(symbol);
    curve.put(chart.equity, false);
    draw();
    known = chart.candles.time.at(-1) ?? known;
  }
  async function loadMarks(): Promise<void> {
    const query = new URLSearchParams({
      run_id: session,
      kind: SHOWN_KINDS,
      last: 'true',
      limit: '1000',
    });
    const answer = await fetch(`/bots/${bot}/state/events?${query}`);
    if (!answer.ok) return;
    const { items } = (await answer.json()) as { readonly items: readonly BotEvent[] };
    for (const event of items) marks.add(event);
  }
  function draw(): void {
    equity.show(curve.points(), curve.takeChanged());
    if (hasNewMarks) prices.marks.showMarks(marks.of(symbol, prices.times()));
    hasNewMarks = false;
    range.fit();
    pointAgain?.();
  }

  /** Shows a trade on the prices, or a single time on the equity. */
  async function showTimes({
    from,
    to,
    symbol: wanted = symbol,
  }: Pick<ShownTimes, 'from' | 'to'> & { readonly symbol?: string | undefined }): Promise<void> {
    if (wanted !== symbol) {
      if (selector !== null) selector.value = wanted;
      await load(wanted);
    }
    const [start, end] = [from, to].map((time) => Date.parse(time) / 1000) as [number, number];
    range.show(start, end);
    const chart = from === to ? equity : prices;
    chart.element.scrollIntoView({ block: 'center' });
    // The chart moves to the range in its next frame.
    pointAgain = () => chart.showAt(end);
    requestAnimationFrame(() => requestAnimationFrame(() => pointAgain?.()));
    const day = (time: string): string => time.slice(0, 10);
    announce(
      from === to
        ? `The equity curve shows ${day(from)}.`
        : `The chart shows the trade from ${day(from)} to ${day(to)}.`,
    );
  }
  figure.addEventListener('pointermove', () => (pointAgain = undefined));
  document.addEventListener('showtimes', (event) => {
    const { run, ...times } = (event as CustomEvent<ShownTimes>).detail;
    if (run !== session) return;
    event.preventDefault();
    void showTimes(times);
  });
  /** Shows what the address of the page names; afterward, it names the visible range. */
  async function showLinked(): Promise<void> {
    const url = new URL(location.href);
    const [from = '', to = from] = (url.searchParams.get('at') ?? '').split('/');
    if (!(Date.parse(from) <= Date.parse(to))) return;
    url.searchParams.delete('at');
    history.replaceState(history.state, '', url);
    await showTimes({ from, to });
  }
  selector?.addEventListener('change', () => {
    const url = new URL(location.href);
    url.searchParams.set('chart', selector.value);
    history.replaceState(history.state, '', url);
    void load(selector.value);
  });
  return {
    points: curve.points,
    draw,
    async start(state: PaperSession): Promise<void> {
      await loadMarks();
      await load(selector?.value ?? '');
      prices.marks.showOrders(state.working.filter((one) => one.symbol === symbol));
      await showLinked();
    },
    takeBars(event: BotEvent): void {
      const bars = event.payload['bars'] as Readonly<Record<string, readonly number[]>>;
      const bar = bars[symbol];
      if (bar === undefined) return;
      prices.add(Date.parse(event.occurred_at) / 1000, bar);
      timer ??= setTimeout(complete, REFRESH_MS);
    },
    takeOrder(event: BotEvent): void {
      if (!SHOWN_KINDS.split(',').includes(event.kind)) return;
      marks.add(event);
      hasNewMarks = true;
    },
    takeState(state: PaperSession): void {
      curve.add(state);
      prices.marks.showOrders(state.working.filter((one) => one.symbol === symbol));
    },
  };
}
