/// <reference lib="dom" />

/** Announces a text to screen readers without showing it on the page. */
export function announce(text: string): void {
  document.querySelector('#live')!.textContent = text;
}
