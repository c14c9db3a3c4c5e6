/// <reference lib="dom" />

import type { ChatParts } from '../../../api/research.ts';
import { announce } from './announce.ts';
import { showQuestion } from './show-question.ts';
import { streamAnswer } from './stream-answer.ts';

/**
 * Replaces the parts of the page with the stored conversation. Texts of the model are shown as text
 * only.
 */
export async function refreshChat(): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch(location.href, { headers: { accept: 'text/html' } });
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
      history.replaceState(null, '', `?${new URLSearchParams({ session: own })}`);
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

/** Streams answers into the page. When an answer ends, the stored conversation replaces it. */
export function chat(): void {
  const REFRESH_MS = 1500;
  const form = document.querySelector<HTMLFormElement>('#ask');
  let isAsking = false;
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
