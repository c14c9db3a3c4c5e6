/// <reference lib="dom" />
import { replacePart } from './replace.ts';

/**
 * Sorts, filters and pages the trades in `#trades` without loading the page again. Links and the form
 * in it lead to the same query of the page.
 *
 * @returns reads the trades again, at most once per second.
 */
export function liveTrades(): () => void {
  const REFRESH_MS = 1000;
  const section = document.querySelector<HTMLElement>('#trades');
  if (section === null) return () => {};
  const path = section.dataset['path']!;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function show(query: URLSearchParams): Promise<void> {
    const answer = await fetch(`${path}?${query}`, { headers: { accept: 'text/html' } });
    if (!answer.ok || answer.redirected) return;
    const rows = document.querySelector('#trades-rows')!;
    const focused = rows.contains(document.activeElement) ? document.activeElement!.id : '';
    await replacePart(answer, '#trades-rows');
    if (focused !== '') document.querySelector<HTMLElement>(`#${focused}`)?.focus();
  }
  /** Names of the fields that the trades own, among those of other parts of the page. */
  const OWN = ['symbol', 'side', 'outcome', 'sort', 'order', 'cursor'];
  function go(next: URLSearchParams): void {
    const url = new URL(location.href);
    for (const name of OWN) {
      const value = next.get(name) ?? '';
      if (value === '') url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    history.replaceState(history.state, '', url);
    void show(url.searchParams);
  }
  section.addEventListener('click', (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>('#trades-rows a[data-query]');
    if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(new URL(link.href).searchParams);
  });
  const form = section.querySelector('form')!;
  const submit = (): void =>
    go(new URLSearchParams(new FormData(form) as unknown as Record<string, string>));
  form.addEventListener('change', submit);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    event.stopPropagation();
    submit();
  });
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void show(new URL(location.href).searchParams);
    }, REFRESH_MS);
  };
}
