/// <reference lib="dom" />

import { announce } from './announce.ts';
import { replacePart } from './replace.ts';

/** Shows the state after the event selected by the slider `#timeline`, once the slider rests. */
export function timeline(): void {
  const REST_MS = 120;
  const form = document.querySelector<HTMLFormElement>('#timeline')!;
  const range = form.querySelector<HTMLInputElement>('input[type=range]')!;
  const output = form.querySelector('output')!;
  let timer: number | undefined;
  let request: AbortController | undefined;

  async function show(): Promise<void> {
    request?.abort();
    request = new AbortController();
    const query = new URLSearchParams(new FormData(form) as unknown as Record<string, string>);
    const url = `${form.action}?${query}`;
    try {
      const answer = await fetch(url, {
        headers: { accept: 'text/html' },
        signal: request.signal,
      });
      if (answer.redirected) location.assign(url);
      if (!answer.ok) throw new Error(String(answer.status));
      await replacePart(answer, '#moment');
      history.replaceState(null, '', url);
      announce(document.querySelector('#state')!.textContent);
    } catch (error) {
      if ((error as Error).name !== 'AbortError') announce('The state could not be read.');
    }
  }

  range.addEventListener('input', () => {
    output.textContent = range.value;
    clearTimeout(timer);
    timer = setTimeout(show, REST_MS) as unknown as number;
  });
  for (const box of form.querySelectorAll('input[type=checkbox]')) {
    box.addEventListener('change', show);
  }
}
