/// <reference lib="dom" />

import { announce } from './announce.ts';

/** What holds for the forms and messages of every page. */
export function forms(): void {
  // What was said of the last step is read first.
  document.querySelector<HTMLElement>('[data-message]')?.focus();
  document.addEventListener('submit', (event) => {
    const form = event.target as HTMLFormElement;
    if (event.defaultPrevented) return;
    // A second click sends nothing a second time.
    if (form.dataset['sent'] !== undefined) event.preventDefault();
    form.dataset['sent'] = '';
  });
  // A page that comes back from the browser's memory can be used again, if its session still is.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', () => {
      const source = document.querySelector(`#${button.dataset['copy']!}`)!;
      const copied = navigator.clipboard.writeText(source.textContent);
      void copied
        .catch(() => 'Not copied')
        .then((failed) => {
          button.textContent = failed ?? 'Copied';
          announce(button.textContent);
          return failed;
        });
    });
  }
}
