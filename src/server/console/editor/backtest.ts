/// <reference lib="dom" />
import type { TaskProgress } from '../../../api/tasks.ts';
import { announce } from '../client/announce.ts';
import { progressText } from '../client/progress-text.ts';
import { replacePart } from '../client/replace.ts';

/** Starts a backtest of the typed text and shows its result, without leaving the page. */
export async function backtestHere(
  form: HTMLFormElement,
  button: HTMLButtonElement,
): Promise<void> {
  // A disabled button would not be part of the fields.
  const fields = new FormData(form, button) as unknown as Record<string, string>;
  button.disabled = true;
  try {
    const answer = await fetch(location.pathname, {
      method: 'POST',
      headers: { accept: 'text/html' },
      body: new URLSearchParams(fields),
    });
    const other = new DOMParser().parseFromString(await answer.text(), 'text/html');
    document.querySelector('main > [data-message]')?.remove();
    const failure = other.querySelector<HTMLElement>('main > [data-message]');
    if (failure !== null) {
      document.querySelector('main h1')!.after(document.adoptNode(failure));
      failure.focus();
    }
    const key = other.querySelector<HTMLInputElement>('input[name=key]');
    if (key !== null) form.querySelector<HTMLInputElement>('input[name=key]')!.value = key.value;
    const part = other.querySelector('#backtest[data-task]');
    if (part !== null) document.querySelector('#backtest')!.replaceWith(document.adoptNode(part));
    followBacktest();
  } finally {
    button.disabled = false;
  }
}

/** Follows the backtest on this page until it ends, then shows its figures. */
export function followBacktest(): void {
  const place = document.querySelector<HTMLElement>('#backtest[data-open]');
  if (place === null) return;
  const task = encodeURIComponent(place.dataset['task']!);
  const events = new EventSource(`/tasks/${task}/events`);
  events.addEventListener('progress', ({ data }: MessageEvent<string>) => {
    const { progress } = JSON.parse(data) as TaskProgress;
    place.querySelector('[data-progress]')!.textContent = progressText(progress);
  });
  events.addEventListener('end', async (event) => {
    events.close();
    const { status } = JSON.parse((event as MessageEvent<string>).data) as TaskProgress;
    const page = await fetch(`${location.pathname}?task=${task}`, {
      headers: { accept: 'text/html' },
    });
    if (page.ok) await replacePart(page, '#backtest');
    announce(`The backtest has ended: ${status}.`);
  });
}
