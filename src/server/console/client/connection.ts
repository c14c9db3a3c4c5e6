/// <reference lib="dom" />

import { announce } from './announce.ts';

/**
 * Checks whether the server answers. While it does not, a banner states since when, each section is
 * marked with that time, and buttons that need the server are disabled. Recovers by itself.
 */
export function connection(): void {
  const CHECK_EVERY_MS = 3000;
  const RECHECK_MS = 500;
  const TIMEOUT_MS = 4000;
  /** Buttons that do not need the server. */
  const LOCAL = '#theme, [data-copy]';

  let lastAnswer = Date.now();
  let failures = 0;
  let isEdited = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const utc = (at: number): string => `${new Date(at).toISOString().slice(11, 19)} UTC`;
  const isOffline = (): boolean => document.documentElement.dataset['offline'] !== undefined;

  async function isReady(): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      return (await fetch('/readyz', { cache: 'no-store', signal })).ok;
    } catch {
      return false;
    }
  }

  /** Includes buttons that were added since, or that a script has enabled again. */
  function disableButtons(): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>('button:enabled')) {
      if (button.matches(LOCAL)) continue;
      button.disabled = true;
      button.dataset['off'] = '';
    }
    for (const link of document.querySelectorAll('a.button')) {
      link.setAttribute('aria-disabled', 'true');
    }
  }

  function enableButtons(): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-off]')) {
      button.disabled = false;
      delete button.dataset['off'];
    }
    for (const link of document.querySelectorAll('a.button[aria-disabled]')) {
      link.removeAttribute('aria-disabled');
    }
  }

  function goOffline(): void {
    const since = utc(lastAnswer);
    document.documentElement.dataset['offline'] = '';
    const banner = document.createElement('p');
    banner.className = 'offline';
    banner.setAttribute('role', 'alert');
    banner.textContent = `The server has not answered since ${since}. This page shows the state at that time. You cannot start, stop or halt anything from here until the server answers again.`;
    document.querySelector('header.top')!.after(banner);
    for (const section of document.querySelectorAll('main section')) {
      const mark = document.createElement('p');
      mark.className = 'stale';
      mark.textContent = `As of ${since}`;
      section.prepend(mark);
    }
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
