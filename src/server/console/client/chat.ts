/// <reference lib="dom" />

import type { ChatParts } from '../../../api/research.ts';
import { announce } from './announce.ts';
import { showQuestion } from './show-question.ts';
import { streamAnswer } from './stream-answer.ts';

/**
 * Replaces the parts of the page with the stored conversation, as the chat page of the bot shows it. Texts of the model are shown as text
 * only.
 */
export async function refreshChat(): Promise<void> {
  const shown = document.querySelector<HTMLElement>('#conversation')!;
  const page = new URL(shown.dataset['page']!, location.href);
  const session = document.querySelector<HTMLInputElement>('#ask [name=session]')?.value ?? '';
  if (session !== '') page.searchParams.set('session', session);
  let answer: Response;
  try {
    answer = await fetch(page, { headers: { accept: 'text/html' } });
    if (!answer.ok || answer.redirected) return;
  } catch {
    // The page shows the streamed answer, without its sources, until it is reloaded.
    return;
  }
  const other = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const selector of ['#conversation', '#proposals', '#conversations']) {
    const part = other.querySelector(selector);
    if (part !== null) document.querySelector(selector)?.replaceWith(document.adoptNode(part));
  }
  for (const button of document.querySelectorAll<HTMLElement>('#proposals [data-copy]')) {
    button.hidden = false;
  }
  const [before, after] = [document, other].map((one) =>
    one.querySelector<HTMLInputElement>('#ask [name=key]'),
  ) as [HTMLInputElement | null, HTMLInputElement | null];
  if (before !== null && after !== null) before.value = after.value;
}

/** Sends the question in the form, and shows its answer as it arrives. */
export async function askQuestion(form: HTMLFormElement): Promise<void> {
  const field = (name: string): HTMLInputElement =>
    form.querySelector<HTMLInputElement>(`[name=${name}]`)!;
  const prompt = field('prompt').value;
  const path = `/bots/${encodeURIComponent(form.dataset['bot']!)}/chat`;
  const session_id = field('session').value;
  const agent_role = form.querySelector<HTMLSelectElement>('[name=agent]')?.value ?? '';
  const headers = { 'content-type': 'application/json', 'service-csrf': field('csrf').value };
  const failure = form.querySelector('[data-failure]')!;
  failure.textContent = '';
  field('prompt').value = '';
  const { item, lookup, answer, cancel } = showQuestion(prompt);
  cancel.addEventListener('click', () => {
    cancel.disabled = true;
    const own = encodeURIComponent(field('session').value);
    void fetch(`${path}/sessions/${own}/cancel`, { method: 'POST', headers });
  });
  const body = {
    prompt,
    ...(session_id !== '' && { session_id }),
    ...(session_id === '' && agent_role !== '' && { agent_role }),
  };
  const accept = { accept: 'text/event-stream', 'idempotency-key': field('key').value };
  const init = { method: 'POST', headers: { ...headers, ...accept }, body: JSON.stringify(body) };
  const refusal = await streamAnswer(path, init, (event, data) => {
    if (event === 'restart') answer.textContent = '';
    if (event === 'broken') lookup.textContent = 'Connecting again…';
    if (event === 'text') answer.append((data as ChatParts['text']).text);
    if (event === 'tool_call') {
      lookup.textContent = `Looks up: ${(data as ChatParts['tool_call']).tool}…`;
    }
    if (event === 'begun') {
      const { session_id: own } = data as ChatParts['begun'];
      field('session').value = own;
      const url = new URL(location.href);
      url.searchParams.set(form.dataset['name']!, own);
      url.searchParams.delete('cursor');
      history.replaceState(history.state, '', url);
      cancel.hidden = false;
    }
  });
  if (refusal !== undefined) {
    item.remove();
    if (field('prompt').value === '') field('prompt').value = prompt;
    failure.textContent = refusal;
  }
  await refreshChat();
  if (refusal !== undefined) return;
  form.querySelector('[name=agent]')?.closest('.field')?.remove();
  announce('The answer is complete.');
  document.querySelector('.turns > li:last-child')?.scrollIntoView({ block: 'nearest' });
}

/** Times of a run that a source names. */
export interface ShownTimes {
  readonly run: string;
  /** RFC 3339. */
  readonly from: string;
  readonly to: string;
  readonly symbol: string | undefined;
}

/** Moves the charts of the page instead of loading another one, if they show the run of the source. */
export function showSource(event: MouseEvent): void {
  const link = (event.target as Element).closest<HTMLElement>('a.source[data-run]');
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const { run = '', from = '', to = '', symbol } = link.dataset;
  const detail: ShownTimes = { run, from, to, symbol };
  // Charts that show the run cancel the event.
  const isShown = !document.dispatchEvent(
    new CustomEvent('showtimes', { detail, cancelable: true }),
  );
  if (isShown) event.preventDefault();
}

/** Streams answers into the page. When an answer ends, the stored conversation replaces it. */
export function chat(): void {
  const REFRESH_MS = 1500;
  const form = document.querySelector<HTMLFormElement>('#ask');
  let isAsking = false;
  document.addEventListener('click', showSource);
  const box = document.querySelector<HTMLDetailsElement>('#talk');
  box?.addEventListener('toggle', () => {
    const url = new URL(location.href);
    const session = form?.querySelector<HTMLInputElement>('[name=session]')?.value ?? '';
    if (box.open) url.searchParams.set('talk', session === '' ? 'new' : session);
    else url.searchParams.delete('talk');
    history.replaceState(history.state, '', url);
  });
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    if (isAsking) return;
    isAsking = true;
    void askQuestion(form).finally(() => (isAsking = false));
  });
  form?.querySelector('textarea')!.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  /** Shows an answer that another page or an earlier visit asked for. */
  const follow = async (): Promise<void> => {
    if (!isAsking && !document.hidden) await refreshChat();
    plan();
  };
  const plan = (): void => {
    if (document.querySelector('#conversation[data-running]') !== null) {
      setTimeout(follow, REFRESH_MS);
    }
  };
  plan();
}
