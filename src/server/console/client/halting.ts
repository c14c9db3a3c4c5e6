/// <reference lib="dom" />

import type { Halt } from '../../../api/halts.ts';
import { announce } from './announce.ts';
import { replacePart } from './replace.ts';

/** Shows the progress of a halt until the server answers, then its report. */
export function halting(): void {
  const POLL_MS = 250;

  async function watch(form: HTMLFormElement, signal: AbortSignal): Promise<void> {
    const markDone = (name: string): void => {
      const step = form.querySelector<HTMLElement>(`[data-step=${name}]`)!;
      if (step.dataset['done'] !== undefined) return;
      step.dataset['done'] = '';
      announce(step.textContent.trim());
    };
    form.querySelector<HTMLElement>('[data-steps]')!.hidden = false;
    markDone('asked');
    const bot_id = form.dataset['halt'] === 'all' ? null : form.dataset['halt'];
    while (!signal.aborted) {
      try {
        const answer = await fetch('/halts?limit=1000', { signal });
        const { items } = (await answer.json()) as { readonly items: readonly Halt[] };
        const found = items.find((one) => one.lifted_at === null && one.bot_id === bot_id);
        if (found !== undefined) {
          markDone('latched');
          form.querySelector('[data-ended]')!.textContent = String(found.deployments);
        }
      } catch {
        // Progress is optional; the answer to the halt itself decides.
      }
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS);
      });
    }
  }

  async function halt(form: HTMLFormElement): Promise<void> {
    const button = form.querySelector<HTMLButtonElement>('button')!;
    const alert = form.querySelector('[role=alert]')!;
    button.disabled = true;
    alert.textContent = '';
    const over = new AbortController();
    void watch(form, over.signal);
    try {
      const answer = await fetch(form.action, {
        method: 'POST',
        headers: { accept: 'text/html' },
        body: new URLSearchParams(new FormData(form) as unknown as Record<string, string>),
      });
      if (answer.redirected) {
        location.assign(answer.url);
        return;
      }
      const other = new DOMParser().parseFromString(await answer.clone().text(), 'text/html');
      const banner = other.querySelector('.halted');
      document.querySelector('.halted')?.remove();
      if (banner) document.querySelector('header.top')!.after(document.adoptNode(banner));
      document.title = other.title;
      const main = await replacePart(answer, 'main');
      const message = main?.querySelector<HTMLElement>('[data-message]');
      message?.focus();
      announce(message?.textContent.replaceAll(/\s+/g, ' ') ?? document.title);
    } catch {
      button.disabled = false;
      alert.textContent =
        'The server did not answer, so it is unknown whether the halt is in force. Try again.';
    } finally {
      over.abort();
    }
  }

  // Captures the event before other handlers let the browser submit the form.
  document.addEventListener(
    'submit',
    (event) => {
      const form = event.target as HTMLFormElement;
      if (form.dataset['halt'] === undefined) return;
      event.preventDefault();
      void halt(form);
    },
    true,
  );
}
