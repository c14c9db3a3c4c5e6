/// <reference lib="dom" />
import type { RaisedAlert } from '../../../api/overview.ts';
import { announce } from './announce.ts';

/** Shows new alerts of all bots on every page, while someone uses it. */
export function toasts(): void {
  const POLL_MS = 5000;
  const SHOWN_MS = 15_000;
  const MOST = 4;
  /** Polling would otherwise keep an abandoned login session open. */
  const IDLE_MS = 30 * 60_000;
  const KEY = 'alerts-seen';

  const place = document.createElement('section');
  place.className = 'toasts';
  place.ariaLabel = 'New alerts';
  document.body.append(place);
  let usedAt = Date.now();
  for (const kind of ['pointerdown', 'keydown', 'pointermove']) {
    document.addEventListener(kind, () => (usedAt = Date.now()), { passive: true });
  }
  const read = (): string | null => {
    try {
      return sessionStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  let seen = read();
  const write = (): void => {
    try {
      sessionStorage.setItem(KEY, seen!);
    } catch {
      // Without storage, the next page may repeat an alert.
    }
  };
  const idOf = ({ recorded_at, bot_id, seq }: RaisedAlert): string =>
    `${recorded_at} ${bot_id} ${String(seq).padStart(12, '0')}`;

  function show(alert: RaisedAlert): void {
    const { severity, control, bot_slug, bot_name, seq } = alert;
    const toast = document.createElement('div');
    toast.className = `toast ${severity}`;
    const link = toast.appendChild(document.createElement('a'));
    link.href = `/console/bots/${bot_slug}/events?at_seq=${seq}`;
    link.textContent = `${bot_name}: ${control.replaceAll('_', ' ')}`;
    toast.append(` ${severity}`);
    const close = toast.appendChild(document.createElement('button'));
    close.type = 'button';
    close.className = 'quiet';
    close.ariaLabel = 'Dismiss';
    close.textContent = '×';
    close.addEventListener('click', () => toast.remove());
    place.append(toast);
    while (place.children.length > MOST) place.firstElementChild!.remove();
    announce(link.textContent);
    setTimeout(() => toast.remove(), SHOWN_MS);
  }
  async function poll(): Promise<void> {
    const isUsed = !document.hidden && Date.now() - usedAt < IDLE_MS;
    if (isUsed && document.documentElement.dataset['offline'] === undefined) {
      try {
        const answer = await fetch('/alerts?limit=10');
        if (answer.ok) {
          const { items } = (await answer.json()) as { readonly items: readonly RaisedAlert[] };
          // The first page of a session shows only what happens from then on.
          const last = seen;
          if (last !== null) {
            for (const one of items.filter((alert) => idOf(alert) > last).toReversed()) show(one);
          }
          const newest = items[0] === undefined ? '' : idOf(items[0]);
          if (seen === null || newest > seen) seen = newest;
          write();
        }
      } catch {
        // The banner reports a server that does not answer.
      }
    }
    setTimeout(poll, POLL_MS);
  }
  void poll();
}
