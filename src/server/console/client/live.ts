/// <reference lib="dom" />

import type { BotEvent, PaperSession } from '../../../api/bot-state.ts';
import { announce } from './announce.ts';
import { describeLimits, type BotLimits } from './describe-limits.ts';
import { describeSession } from './describe-session.ts';
import { eventText } from './event-text.ts';
import { followBot } from './follow.ts';
import { liveTrades } from './live-trades.ts';
import { logRows } from './log-rows.ts';
import { sessionCharts } from './session-charts.ts';
import { setRows } from './set-rows.ts';

/** Initial data of the page, in the attribute `data-live` of `#now`. */
export interface LiveData {
  readonly bot: string;
  /** Id of its task. */
  readonly session: string;
  /** Whether the session had ended when the page was made. */
  readonly hasEnded: boolean;
  readonly state: PaperSession;
  readonly closes: Readonly<Record<string, number>>;
  /** Null if they could not be read. */
  readonly limits: BotLimits | null;
  /** Equity at the start of the session. */
  readonly cash: number;
  /** Newest logged lines, newest first, as `logRows` returns them. */
  readonly log: readonly (readonly string[])[];
}

/** Updates `#now` on the page of a bot as events arrive: each event only the parts that it changes. */
export function live(): void {
  const DRAW_EVERY_MS = 100;
  const TAIL = 12;
  const TABLE_ROWS = 100;

  const root = document.querySelector<HTMLElement>('#now')!;
  const { live: given = '', bot: bot_id, head } = root.dataset;
  const data = given === '' ? undefined : (JSON.parse(given) as LiveData);
  const of = (selector: string): HTMLElement => root.querySelector<HTMLElement>(selector)!;

  const typeset = (text: string): string => text.replaceAll('-', '−');
  const number = (options: Intl.NumberFormatOptions): ((value: number) => string) => {
    const format = new Intl.NumberFormat('en-US', { signDisplay: 'negative', ...options });
    return (value) => typeset(format.format(value));
  };
  const money = number({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const percent = number({
    style: 'percent',
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  });
  const units = number({ maximumFractionDigits: 6 });
  const clock = (time: string): string => time.replace('T', ' ').replace(/(\.\d+)?Z$/, '');
  const none = '—';

  let state: PaperSession | undefined = data?.state;
  let log: readonly (readonly string[])[] = data?.log ?? [];
  let hasNewLog = false;
  const closes: Record<string, number> = { ...data?.closes };
  let tail: BotEvent[] = [];
  let hasNewState = true;
  const figureOf = document.querySelector<HTMLElement>('#charts');
  const charts = data && figureOf ? sessionCharts(figureOf, data.bot, data.session) : undefined;
  const refreshTrades = liveTrades();

  function take(event: BotEvent): void {
    const { kind, run_id, payload } = event;
    tail.push(event);
    if (tail.length > 2 * TAIL) tail = tail.slice(-TAIL);
    if (kind === 'control.halted' || kind === 'control.resumed' || kind === 'run.ended') {
      void showBanner();
    }
    if (data === undefined || (data.hasEnded && run_id !== data.session)) {
      // Another session has started.
      const isChosen = new URL(location.href).searchParams.has('session');
      if (kind === 'session.state' && !isChosen) location.reload();
      return;
    }
    if (run_id !== data.session) return;
    if (kind === 'data.bars') {
      const bars = payload['bars'] as Readonly<Record<string, readonly number[]>>;
      for (const [symbol, bar] of Object.entries(bars)) closes[symbol] = bar[3]!;
      charts?.takeBars(event);
      hasNewState = true;
    } else if (kind === 'session.state') {
      state = payload as unknown as PaperSession;
      charts?.takeState(state);
      hasNewState = true;
    } else if (kind === 'strategy.log') {
      log = [...logRows(event, 'daily' in root.dataset), ...log].slice(0, TABLE_ROWS);
      hasNewLog = true;
    } else if (kind.startsWith('order.')) {
      charts?.takeOrder(event);
      if (kind === 'order.filled' || kind === 'order.corrected') refreshTrades();
    } else if (kind === 'run.ended') {
      const text = `The session has ended: ${String(payload['status'])}.`;
      const place = of('.ended');
      place.querySelector('span')!.textContent = `${text} `;
      place.hidden = false;
      root.querySelector<HTMLElement>('[data-stop]')?.remove();
      refreshTrades();
      announce(text);
    }
  }

  async function showBanner(): Promise<void> {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (!answer.ok) return;
    const other = new DOMParser().parseFromString(await answer.text(), 'text/html');
    document.querySelector('.halted')?.remove();
    const banner = other.querySelector('.halted');
    if (banner) document.querySelector('header.top')!.after(document.adoptNode(banner));
  }

  const figure = (name: string, text: string): void => {
    const place = root.querySelector(`[data-figure=${name}]`);
    if (place !== null && place.textContent !== text) place.textContent = text;
  };
  function setTable(id: string, rows: readonly (readonly string[])[]): void {
    of(`#${id}-none`).hidden = rows.length > 0;
    of(`#${id}-table`).hidden = rows.length === 0;
    setRows(of(`#${id}-table tbody`), rows);
  }
  function drawSession(session: PaperSession): void {
    const { equity, cash, working, time, carry } = session;
    const points = charts?.points() ?? [];
    const last = points.at(-1);
    const opening = carry?.risk.day_start_equity ?? 0;
    figure('equity', money(equity));
    figure('cash', money(cash));
    figure('today', opening > 0 ? percent(equity / opening - 1) : none);
    figure('change', data!.cash > 0 ? percent(equity / data!.cash - 1) : none);
    figure('drawdown', last === undefined ? none : percent(last.drawdown));
    const deepest = points.reduce((least, { drawdown }) => Math.min(least, drawdown), 0);
    figure('deepest', points.length === 0 ? none : percent(deepest));
    figure('orders', String(working.length));
    const isDaily = 'daily' in root.dataset;
    figure('time', time === null ? 'none yet' : isDaily ? time.slice(0, 10) : clock(time));
    const described = describeSession(session, closes, { money, percent, units, none });
    figure('net', described.net);
    figure('gross', described.gross);
    setTable('positions', described.positions);
    setTable('working', described.orders);
    drawLimits(session);
    const details = root.querySelector<HTMLDetailsElement>('#points');
    if (details?.open !== true) return;
    setRows(
      details.querySelector('tbody')!,
      points
        .slice(-TABLE_ROWS)
        .toReversed()
        .map((point) => [
          clock(new Date(point.time * 1000).toISOString()),
          money(point.equity),
          percent(point.drawdown),
        ]),
    );
  }
  function drawLimits(session: PaperSession): void {
    for (const { name, used, limit } of describeLimits(session, closes, data!.limits ?? {})) {
      const row = root.querySelector<HTMLElement>(`[data-limit=${name}]`);
      if (row === null) continue;
      const text = name.endsWith('_pct') ? percent(used) : units(used);
      const place = row.querySelector('[data-used]')!;
      if (place.textContent !== text) place.textContent = text;
      const meter = row.querySelector('meter')!;
      if (meter.value !== used) meter.value = used;
      const share = limit > 0 ? `${Math.round((100 * used) / limit)} %` : none;
      const part = row.querySelector('[data-share]')!;
      if (part.textContent !== share) part.textContent = share;
    }
  }

  function drawTail(): void {
    if (tail.length === 0) return;
    const body = of('#tail-table tbody');
    const lines = tail.slice(-TAIL).map(({ seq, kind, occurred_at, payload }) => {
      const line = document.createElement('tr');
      const header = document.createElement('th');
      header.setAttribute('scope', 'row');
      header.textContent = String(seq);
      const cells = [kind, `${clock(occurred_at)} UTC`, eventText(kind, payload)];
      line.append(
        header,
        ...cells.map((content) => {
          const cell = document.createElement('td');
          cell.append(content);
          return cell;
        }),
      );
      return line;
    });
    body.prepend(...lines.toReversed());
    while (body.children.length > TAIL) body.lastElementChild!.remove();
    tail = [];
  }

  let drawnAt = -Infinity;
  let isPlanned = false;
  function draw(): void {
    isPlanned = false;
    drawnAt = performance.now();
    drawTail();
    if (hasNewLog) setTable('log', log);
    hasNewLog = false;
    if (state === undefined || !hasNewState) return;
    hasNewState = false;
    charts?.draw();
    drawSession(state);
  }
  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(draw, Math.max(0, drawnAt + DRAW_EVERY_MS - performance.now()));
  }

  async function start(): Promise<void> {
    if (data !== undefined && charts !== undefined) {
      await charts.start(data.state);
      of('#points').addEventListener('toggle', () => {
        hasNewState = true;
        plan();
      });
      plan();
    }
    const badge = of('#connection .badge');
    followBot(
      bot_id!,
      Number(head),
      (events, skipped) => {
        for (const event of events) take(event);
        if (skipped > 0) announce(`${skipped} events came too fast to be shown.`);
        plan();
      },
      (kind, text) => {
        if (badge.textContent === text) return;
        const isFirst = badge.textContent === 'not connected';
        badge.textContent = text;
        badge.className = `badge ${kind}`;
        if (!isFirst) announce(`Events: ${text}`);
      },
    );
  }
  void start();
}
