/// <reference lib="dom" />

import type { TaskProgress } from '../../../api/tasks.ts';
import { announce } from './announce.ts';
import { progressText } from './progress-text.ts';
import { replacePart } from './replace.ts';

/** Refreshes the table of tasks while one of them is queued or running. */
export function tasks(): void {
  const REFRESH_MS = 2000;
  const isOpen = (): boolean =>
    document.querySelector('[data-status=queued], [data-status=running]') !== null;
  const refresh = async (): Promise<void> => {
    const table = document.querySelector('#tasks');
    // Replacing the table would lose the focus of the keyboard.
    const isUsed = table?.contains(document.activeElement) === true;
    if (!document.hidden && !isUsed) {
      try {
        const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
        if (answer.ok && !answer.redirected) await replacePart(answer, '#tasks');
      } catch {
        // The next attempt may succeed.
      }
    }
    if (isOpen()) setTimeout(refresh, REFRESH_MS);
  };
  if (isOpen()) setTimeout(refresh, REFRESH_MS);
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
