/// <reference lib="dom" />

/** Has a screen reader say it, and shows it to nobody else. */
export function announce(text: string): void {
  document.querySelector('#live')!.textContent = text;
}
