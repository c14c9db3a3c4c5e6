/// <reference lib="dom" />
import type { ShownTrade } from './chart-data.ts';

/** Handles the buttons of the trade table. Arrow keys move between them; only one is a tab stop. */
export function connectTrades(onClick: (trade: ShownTrade) => void): void {
  const buttons = (): HTMLButtonElement[] => [
    ...document.querySelectorAll<HTMLButtonElement>('button.trade'),
  ];
  buttons().forEach((button, index) => {
    button.ariaLabel = `Show trade ${button.textContent} on the chart`;
    // The column is a single tab stop.
    button.tabIndex = index === 0 ? 0 : -1;
  });
  const body = document.querySelector('#trades tbody');
  body?.addEventListener('click', ({ target }) => {
    if (target instanceof HTMLButtonElement) onClick(JSON.parse(target.value) as ShownTrade);
  });
  body?.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[(event as KeyboardEvent).key];
    const all = buttons();
    const next = all[all.indexOf(event.target as HTMLButtonElement) + (step ?? 0)];
    if (step === undefined || next === undefined) return;
    event.preventDefault();
    for (const button of all) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
}
