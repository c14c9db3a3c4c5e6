/// <reference lib="dom" />

import type { TaskProgress } from '../../../api/tasks.ts';
import { announce } from './announce.ts';
import { progressText } from './progress-text.ts';
import { replacePart } from './replace.ts';

/** Refreshes the table of runs, and keeps the selection of the runs to compare and the focus. */
export function tasks(): void {
  const REFRESH_MS = 2000;
  /** While nothing of the page runs: others may start something. */
  const IDLE_REFRESH_MS = 10_000;

  const isOpen = (): boolean =>
    document.querySelector('[data-status=queued], [data-status=running]') !== null;
  const boxes = (): HTMLInputElement[] => [
    ...document.querySelectorAll<HTMLInputElement>('#tasks input[type=checkbox]'),
  ];

  function showSelection(): void {
    const button = document.querySelector<HTMLButtonElement>('[data-compare]');
    const count = boxes().filter(({ checked }) => checked).length;
    if (button !== null) button.disabled = count < 2 || count > 8;
  }

  async function replaceTable(answer: Response): Promise<void> {
    const selected = new Set(boxes().flatMap(({ id, checked }) => (checked ? id : [])));
    const scrolled = document.querySelector('#tasks .scroll')?.scrollLeft ?? 0;
    const isWithin = document.querySelector('#tasks')?.contains(document.activeElement) === true;
    const focused = isWithin ? document.activeElement!.id : '';
    const table = await replacePart(answer, '#tasks');
    for (const box of boxes()) box.checked = selected.has(box.id);
    if (focused !== '') document.getElementById(focused)?.focus();
    table?.querySelector('.scroll')?.scrollTo({ left: scrolled });
    showSelection();
  }

  async function refresh(): Promise<void> {
    const { activeElement } = document;
    // Without an id, the focus of the keyboard would be lost.
    const isUsed =
      document.querySelector('#tasks')?.contains(activeElement) === true &&
      activeElement!.id === '';
    if (!document.hidden && !isUsed) {
      try {
        const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
        if (answer.ok && !answer.redirected) await replaceTable(answer);
      } catch {
        // The next attempt may succeed.
      }
    }
    setTimeout(refresh, isOpen() ? REFRESH_MS : IDLE_REFRESH_MS);
  }

  document.addEventListener('change', showSelection);
  showSelection();
  setTimeout(refresh, isOpen() ? REFRESH_MS : IDLE_REFRESH_MS);
}

/** Updates the progress of the task on this page until it ends. */
export function task(): void {
  const place = document.querySelector<HTMLElement>('#task[data-open]');
  if (place === null) return;
  const events = new EventSource(`/tasks/${encodeURIComponent(place.dataset['task']!)}/events`);
  const show = (event: MessageEvent<string>): void => {
    const { progress, status } = JSON.parse(event.data) as TaskProgress;
    const { done, total } = progress;
    const output = place.querySelector('[data-progress]')!;
    const text = document.createElement('span');
    text.textContent = progressText(progress);
    if (total === null) {
      output.replaceChildren(text);
    } else {
      const bar = document.createElement('progress');
      bar.className = 'wide';
      bar.max = total;
      bar.value = done;
      bar.setAttribute('aria-label', 'Progress');
      output.replaceChildren(bar, ' ', text);
    }
    const badge = place.querySelector('.badge')!;
    if (badge.textContent !== status) {
      badge.textContent = status;
      badge.className = `badge ${status === 'running' ? 'good' : 'neutral'}`;
    }
  };
  events.addEventListener('progress', show);
  events.addEventListener('end', async (event) => {
    events.close();
    show(event);
    const { status } = JSON.parse((event as MessageEvent<string>).data) as TaskProgress;
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (answer.ok) await replacePart(answer, 'main');
    announce(`The task has ended: ${status}.`);
  });
}
