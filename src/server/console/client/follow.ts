/// <reference lib="dom" />

import type { BotEvent } from '../../../api/bot-state.ts';

/**
 * Streams the events of a bot after sequence number `head` while the page is open, and resumes
 * after the last one when the connection breaks. Passes events to `take` once per frame for a few
 * milliseconds, and drops the oldest half when more than `MAX_WAITING` wait.
 *
 * @param take also receives the number of events dropped since its last call.
 */
export function followBot(
  bot_id: string,
  head: number,
  take: (events: readonly BotEvent[], skipped: number) => void,
  report: (kind: 'good' | 'warning' | 'bad', text: string) => void,
): void {
  const BUDGET_MS = 6;
  const MAX_WAITING = 20_000;
  const HIDDEN_MS = 1000;
  const RECONNECT_MS = 2000;

  let waiting: string[] = [];
  let skipped = 0;
  let last = head;
  let isPlanned = false;

  function deliver(): void {
    isPlanned = false;
    const until = performance.now() + BUDGET_MS;
    const events: BotEvent[] = [];
    let done = 0;
    while (done < waiting.length && (done % 16 > 0 || performance.now() < until)) {
      events.push(JSON.parse(waiting[done]!) as BotEvent);
      done += 1;
    }
    waiting = waiting.slice(done);
    take(events, skipped);
    skipped = 0;
    if (waiting.length > 0) plan();
  }
  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    if (document.hidden) setTimeout(deliver, HIDDEN_MS);
    else requestAnimationFrame(deliver);
  }

  function connect(): void {
    const path = `/bots/${encodeURIComponent(bot_id)}/state/events/stream?after_seq=${last}`;
    const stream = new EventSource(path);
    stream.addEventListener('open', () => report('good', 'live'));
    stream.addEventListener('message', ({ data, lastEventId }: MessageEvent<string>) => {
      last = Number(lastEventId);
      waiting.push(data);
      if (waiting.length > MAX_WAITING) {
        skipped += waiting.length / 2;
        waiting = waiting.slice(waiting.length / 2);
      }
      plan();
    });
    stream.addEventListener('error', async () => {
      report('warning', 'reconnecting');
      // The browser reconnects by itself with Last-Event-ID, unless the answer was not a stream.
      if (stream.readyState !== EventSource.CLOSED) return;
      const isOver = await fetch('/identity/account').then(
        ({ status }) => status === 401,
        () => false,
      );
      if (isOver) report('bad', 'your session has ended: sign in again');
      else setTimeout(connect, RECONNECT_MS);
    });
  }
  connect();
}
