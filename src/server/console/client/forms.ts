/// <reference lib="dom" />

import { announce } from './announce.ts';

/** Runs on every page: focuses its message, prevents double submission, enables buttons that copy or print. */
export function forms(): void {
  // Screen readers read the message about the last action first.
  document.querySelector<HTMLElement>('[data-message]')?.focus();
  document.addEventListener('submit', (event) => {
    const form = event.target as HTMLFormElement;
    if (event.defaultPrevented) return;
    // A second click must not submit the form again.
    if (form.dataset['sent'] !== undefined) event.preventDefault();
    form.dataset['sent'] = '';
  });
  // A page restored from the back-forward cache may belong to a session that has ended.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    button.hidden = false;
  }
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-print]')) {
    button.hidden = false;
    button.addEventListener('click', () => print());
  }
  // Scripts of pages may add such buttons.
  document.addEventListener('click', ({ target }) => {
    const button = (target as Element).closest<HTMLButtonElement>('button[data-copy]');
    if (button === null) return;
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
