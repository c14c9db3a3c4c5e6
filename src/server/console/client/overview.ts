/// <reference lib="dom" />
import { replacePart } from './replace.ts';

/** Reads `#overview` again while someone uses the page. */
export function overview(): void {
  const REFRESH_MS = 5000;
  /** Refreshing would otherwise keep an abandoned login session open. */
  const IDLE_MS = 30 * 60_000;
  let usedAt = Date.now();
  for (const kind of ['pointerdown', 'keydown', 'pointermove']) {
    document.addEventListener(kind, () => (usedAt = Date.now()), { passive: true });
  }
  async function refresh(): Promise<void> {
    const isUsed = !document.hidden && Date.now() - usedAt < IDLE_MS;
    // Replacing the part would lose the focus of the keyboard.
    const hasFocus = document.querySelector('#overview')!.contains(document.activeElement);
    if (isUsed && !hasFocus && document.documentElement.dataset['offline'] === undefined) {
      try {
        const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
        if (answer.redirected) location.reload();
        else if (answer.ok) await replacePart(answer, '#overview');
      } catch {
        // The next attempt may succeed.
      }
    }
    setTimeout(refresh, REFRESH_MS);
  }
  setTimeout(refresh, REFRESH_MS);
}
