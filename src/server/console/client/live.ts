/// <reference lib="dom" />

import type { BotEvent, PaperSession } from '../../../api/bot-state.ts';
import { announce } from './announce.ts';
import { describeSession } from './describe-session.ts';
import { equityChart, type Point } from './equity-chart.ts';
import { eventText } from './event-text.ts';
import { followBot } from './follow.ts';

/** Initial data of the page, in the attribute `data-live` of `#now`. */
export interface LiveData {
  readonly bot: string;
  /** Id of its task. */
  readonly session: string;
  /** Sequence number of the last event that `state` and `closes` include. */
  readonly head: number;
  readonly state: PaperSession;
  readonly closes: Readonly<Record<string, number>>;
}

/** Updates `#now` on the page of a bot as events arrive. */
export function live(): void {
  const DRAW_EVERY_MS = 100;
  const MAX_POINTS = 4000;
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
  const closes: Record<string, number> = { ...data?.closes };
  let points: Point[] = [];
  let first: number | undefined;
  let peak = -Infinity;
  let deepest = 0;
  let drawn = 0;
  let tail: BotEvent[] = [];
  const chart = data && equityChart(of('#chart'));

  function addPoint({ time, equity }: Pick<PaperSession, 'time' | 'equity'>): void {
    first ??= equity;
    if (time === null) {
      peak = Math.max(peak, equity);
      return;
    }
    const at = Math.floor(Date.parse(time) / 1000) as Point['time'];
    const last = points.at(-1);
    if (last !== undefined && at < last.time) return;
    peak = Math.max(peak, equity);
    const drawdown = peak > 0 ? equity / peak - 1 : 0;
    deepest = Math.min(deepest, drawdown);
    const point = { time: at, equity, drawdown };
    if (last?.time === at) {
      points[points.length - 1] = point;
      drawn = Math.min(drawn, points.length - 1);
      return;
    }
    points.push(point);
    if (points.length <= MAX_POINTS) return;
    // Halve the resolution to bound the memory and time that the page needs.
    points = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
    drawn = 0;
  }

  function take(event: BotEvent): void {
    const { kind, run_id, payload } = event;
    tail.push(event);
    if (tail.length > 2 * TAIL) tail = tail.slice(-TAIL);
    if (kind === 'control.halted' || kind === 'control.resumed' || kind === 'run.ended') {
      void showBanner();
    }
    if (data === undefined) {
      // The first session has started.
      if (kind === 'session.state') location.reload();
      return;
    }
    if (run_id !== data.session) return;
    if (kind === 'data.bars') {
      const bars = payload['bars'] as Readonly<Record<string, readonly number[]>>;
      for (const [symbol, bar] of Object.entries(bars)) closes[symbol] = bar[3]!;
    } else if (kind === 'session.state') {
      state = payload as unknown as PaperSession;
      addPoint(state);
    } else if (kind === 'run.ended') {
      const text = `The session has ended: ${String(payload['status'])}.`;
      const place = of('.ended');
      place.querySelector('span')!.textContent = `${text} `;
      place.hidden = false;
      of('[data-stop]').hidden = true;
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

  function replaceRows(place: HTMLElement, cells: readonly (readonly (string | Node)[])[]): void {
    place.querySelector('tbody')!.replaceChildren(
      ...cells.map((row) => {
        const line = document.createElement('tr');
        row.forEach((content, i) => {
          const cell = document.createElement(i === 0 ? 'th' : 'td');
          if (i === 0) cell.setAttribute('scope', 'row');
          cell.append(content);
          line.append(cell);
        });
        return line;
      }),
    );
  }

  function replaceTable(id: string, cells: readonly (readonly string[])[]): void {
    of(`#${id}-none`).hidden = cells.length > 0;
    of(`#${id}-table`).hidden = cells.length === 0;
    replaceRows(of(`#${id}-table`), cells);
  }

  function drawSession(session: PaperSession): void {
    const { equity, cash, working, time } = session;
    const last = points.at(-1);
    figure('equity', money(equity));
    figure('cash', money(cash));
    figure('change', first === undefined || first === 0 ? none : percent(equity / first - 1));
    figure('drawdown', last === undefined ? none : percent(last.drawdown));
    figure('deepest', points.length === 0 ? none : percent(deepest));
    figure('orders', String(working.length));
    figure('time', time === null ? 'none yet' : clock(time));
    const described = describeSession(session, closes, { money, percent, units, none });
    figure('net', described.net);
    figure('gross', described.gross);
    replaceTable('positions', described.positions);
    replaceTable('working', described.orders);
    const details = root.querySelector<HTMLDetailsElement>('#points')!;
    if (details.open) {
      replaceRows(
        details,
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
    if (state === undefined || chart === undefined) return;
    chart.show(points, drawn);
    drawn = points.length;
    drawSession(state);
  }
  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(draw, Math.max(0, drawnAt + DRAW_EVERY_MS - performance.now()));
  }

  async function start(): Promise<void> {
    if (data !== undefined) {
      const path = `/bots/${data.bot}/state/events?kind=session.state&last=true&limit=1000&until_seq=${data.head}`;
      const answer = await fetch(path);
      if (answer.ok) {
        const { items } = (await answer.json()) as { readonly items: readonly BotEvent[] };
        for (const { run_id, payload } of items) {
          if (run_id === data.session) addPoint(payload as unknown as PaperSession);
        }
      }
      of('#points').addEventListener('toggle', plan);
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
