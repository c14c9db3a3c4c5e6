/// <reference lib="dom" />

import { announce } from './announce.ts';

/**
 * Checks whether the server answers. While it does not, a banner states since when, each part of the
 * page is marked with the age of its figures, and buttons that need the server are disabled. Recovers
 * by itself. Notices a server that hangs within `CHECK_EVERY_MS + 2 × TIMEOUT_MS + RECHECK_MS`.
 */
export function connection(): void {
  const CHECK_EVERY_MS = 2000;
  const RECHECK_MS = 300;
  const TIMEOUT_MS = 1000;
  /** Buttons that do not need the server. */
  const LOCAL = '#theme, [data-copy], #charts figure button, dialog button';

  let lastAnswer = Date.now();
  let failures = 0;
  let isEdited = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const utc = (at: number): string => `${new Date(at).toISOString().slice(11, 19)} UTC`;
  const isOffline = (): boolean => document.documentElement.dataset['offline'] !== undefined;
  function age(): string {
    const seconds = Math.round((Date.now() - lastAnswer) / 1000);
    if (seconds < 120) return `${seconds} s`;
    return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
  }

  async function isReady(): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      return (await fetch('/readyz', { cache: 'no-store', signal })).ok;
    } catch {
      return false;
    }
  }

  /** A button that could lead to an action states that it cannot. */
  function mark(button: HTMLElement): void {
    if (!button.matches('.danger, [data-stop] button') || button.querySelector('.cannot') !== null)
      return;
    const text = document.createElement('span');
    text.className = 'cannot';
    text.textContent = ': cannot act';
    button.append(text);
  }
  /** Includes buttons that were added since, or that a script has enabled again. */
  function disableButtons(): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>('button:enabled')) {
      if (button.matches(LOCAL)) continue;
      button.disabled = true;
      button.dataset['off'] = '';
      mark(button);
    }
    for (const link of document.querySelectorAll<HTMLElement>('a.button')) {
      link.setAttribute('aria-disabled', 'true');
      mark(link);
    }
  }
  function enableButtons(): void {
    for (const text of document.querySelectorAll('.cannot')) text.remove();
    for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-off]')) {
      button.disabled = false;
      delete button.dataset['off'];
    }
    for (const link of document.querySelectorAll('a.button[aria-disabled]')) {
      link.removeAttribute('aria-disabled');
    }
  }

  /** Marks each section, and on pages without sections the whole content. */
  function showAge(): void {
    const main = document.querySelector('main')!;
    const sections = [...main.querySelectorAll('section')];
    const text = `As of ${utc(lastAnswer)}, ${age()} ago`;
    for (const part of sections.length > 0 ? sections : [main]) {
      let place = part.querySelector<HTMLElement>(':scope > .stale');
      if (place === null) {
        place = document.createElement('p');
        place.className = 'stale';
        if (part === main) main.querySelector('h1')!.after(place);
        else part.prepend(place);
      }
      place.textContent = text;
    }
  }
  function goOffline(): void {
    document.documentElement.dataset['offline'] = '';
    const banner = document.createElement('p');
    banner.className = 'offline';
    banner.setAttribute('role', 'alert');
    banner.textContent = `The server has not answered since ${utc(lastAnswer)}. This page shows the state at that time. You cannot start, stop or halt anything from here until the server answers again.`;
    document.querySelector('header.top')!.after(banner);
  }

  function goOnline(): void {
    delete document.documentElement.dataset['offline'];
    for (const made of document.querySelectorAll('.offline, .stale')) made.remove();
    enableButtons();
    announce('The server answers again.');
    // A page that follows events has caught up. Other pages reload by GET, so no form is submitted
    // twice.
    if (document.querySelector('#connection') === null && !isEdited) {
      location.replace(location.pathname + location.search);
    }
  }

  async function check(): Promise<void> {
    clearTimeout(timer);
    const isBack = await isReady();
    // The page stays offline until the event stream has delivered the missed events.
    const stream = document.querySelector('#connection .badge')?.textContent;
    failures = isBack ? 0 : failures + 1;
    if (isBack && !(isOffline() && stream === 'reconnecting')) {
      lastAnswer = Date.now();
      if (isOffline()) goOnline();
    } else if (failures > 1 || isOffline()) {
      if (!isOffline()) goOffline();
      showAge();
      disableButtons();
    }
    clearTimeout(timer);
    const isSure = failures === 0 && !isOffline();
    timer = setTimeout(check, isSure ? CHECK_EVERY_MS : RECHECK_MS);
  }

  document.addEventListener('input', () => (isEdited = true));
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest('a.button[aria-disabled]');
    if (link !== null) event.preventDefault();
  });
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void check();
  });
  timer = setTimeout(check, CHECK_EVERY_MS);
}
