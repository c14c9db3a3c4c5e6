/// <reference lib="dom" />

import { announce } from './announce.ts';

/**
 * Makes each button with `data-download="ID"` save the text of that element to the file
 * `data-name`.
 */
export function lease(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-download]')) {
    button.hidden = false;
    button.addEventListener('click', () => {
      const text = document.querySelector(`#${button.dataset['download']!}`)!.textContent;
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
      link.download = button.dataset['name']!;
      link.click();
      URL.revokeObjectURL(link.href);
      announce('Downloaded');
    });
  }
}
