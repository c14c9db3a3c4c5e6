/// <reference lib="dom" />
import type { BotSummary } from '../../../api/bots.ts';

/**
 * Opens a list of pages and bots with Ctrl+K, and pages with two keys, such as g and b. The question
 * mark lists the keys.
 */
export function palette(): void {
  const SEARCH_MS = 150;
  interface Entry {
    readonly title: string;
    readonly path: string;
    readonly note: string;
  }
  const pages: readonly (Entry & { readonly key?: string })[] = [
    { title: 'Overview', path: '/console', note: 'Page', key: 'o' },
    { title: 'Bots', path: '/console/bots', note: 'Page', key: 'b' },
    { title: 'Tasks', path: '/console/tasks', note: 'Page', key: 't' },
    { title: 'Licenses', path: '/identity/license', note: 'Page', key: 'l' },
    { title: 'Halts', path: '/console/halts', note: 'Page', key: 'h' },
    { title: 'Notifications', path: '/console/notifications', note: 'Page', key: 'n' },
    { title: 'Audit', path: '/console/audit', note: 'Page', key: 'a' },
    { title: 'Account', path: '/console/account', note: 'Page', key: 'c' },
    { title: 'RTS 6 of all bots', path: '/console/rts6', note: 'Page', key: 'r' },
    { title: 'Halt all bots', path: '/console/halt-all', note: 'Action' },
  ];
  /** Tabs and actions of the bot on this page. */
  const here: readonly Entry[] = [
    ...document.querySelectorAll<HTMLAnchorElement>('.tabs a, main > .heading .actions a'),
  ].map((link) => ({ title: link.textContent.trim(), path: link.href, note: 'This bot' }));

  const dialog = document.createElement('dialog');
  dialog.className = 'palette';
  dialog.ariaLabel = 'Go to';
  const input = dialog.appendChild(document.createElement('input'));
  input.type = 'text';
  input.placeholder = 'Go to a page or a bot';
  input.autocomplete = 'off';
  const list = dialog.appendChild(document.createElement('ul'));
  list.id = 'palette-list';
  list.role = 'listbox';
  list.ariaLabel = 'Pages and bots';
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-label': 'Go to a page or a bot',
    'aria-controls': list.id,
    'aria-expanded': 'true',
    'aria-autocomplete': 'list',
  })) {
    input.setAttribute(name, value);
  }
  const hint = dialog.appendChild(document.createElement('p'));
  hint.className = 'note';
  hint.textContent = 'Arrow keys choose, Enter opens, Escape closes, ? lists all keys.';

  const help = document.createElement('dialog');
  help.className = 'palette help';
  help.ariaLabel = 'Keys';
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl K', 'go to a page or a bot'],
    ...pages.flatMap(({ key, title }) =>
      key === undefined ? [] : ([[`g ${key}`, title]] as const),
    ),
    ['/', 'search or filter this page'],
    ['?', 'show these keys'],
  ];
  const title = help.appendChild(document.createElement('h2'));
  title.textContent = 'Keys';
  const table = help.appendChild(document.createElement('dl'));
  for (const [key, meaning] of keys) {
    const name = document.createElement('dt');
    name.append(Object.assign(document.createElement('kbd'), { textContent: key }));
    table.append(name, Object.assign(document.createElement('dd'), { textContent: meaning }));
  }
  const close = help.appendChild(document.createElement('button'));
  close.type = 'button';
  close.textContent = 'Close';
  close.addEventListener('click', () => help.close());
  document.body.append(dialog, help);

  let shown: readonly Entry[] = [];
  let chosen = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let request: AbortController | undefined;

  function choose(next: number): void {
    chosen = Math.max(0, Math.min(shown.length - 1, next));
    [...list.children].forEach((one, at) => (one.ariaSelected = String(at === chosen)));
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
    if (shown.length > 0) input.setAttribute('aria-activedescendant', `palette-${chosen}`);
    else input.removeAttribute('aria-activedescendant');
  }
  function show(entries: readonly Entry[]): void {
    shown = entries;
    list.replaceChildren(
      ...entries.map((entry, at) => {
        const line = document.createElement('li');
        line.id = `palette-${at}`;
        line.role = 'option';
        const note = Object.assign(document.createElement('span'), { textContent: entry.note });
        note.className = 'aside';
        line.append(entry.title, ' ', note);
        line.addEventListener('click', () => go(entry));
        return line;
      }),
    );
    choose(0);
  }
  function go({ path }: Entry): void {
    dialog.close();
    location.assign(path);
  }
  const searched = (): string => input.value.trim().toLowerCase();
  const known = (): Entry[] =>
    [...here, ...pages].filter(({ title: name }) => name.toLowerCase().includes(searched()));
  async function search(): Promise<void> {
    const text = searched();
    show(known());
    request?.abort();
    request = new AbortController();
    try {
      const query = new URLSearchParams({ limit: '8', ...(text !== '' && { q: text }) });
      const answer = await fetch(`/bots?${query}`, { signal: request.signal });
      if (!answer.ok) return;
      const { items } = (await answer.json()) as { readonly items: readonly BotSummary[] };
      show([
        ...known(),
        ...items.map(({ name, slug }) => ({
          title: name,
          path: `/console/bots/${slug}`,
          note: slug,
        })),
      ]);
    } catch {
      // Without the server, the pages remain.
    }
  }
  function open(): void {
    if (dialog.open) return;
    help.close();
    input.value = '';
    dialog.showModal();
    void search();
  }

  input.addEventListener('input', () => {
    // Enter opens what is typed, also before the server has answered.
    show(known());
    clearTimeout(timer);
    timer = setTimeout(search, SEARCH_MS);
  });
  dialog.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const entry = shown[chosen];
    if (step !== undefined) choose(chosen + step);
    else if (event.key === 'Enter' && entry !== undefined) go(entry);
    else return;
    event.preventDefault();
  });
  for (const one of [dialog, help]) {
    // A click beside the content closes it.
    one.addEventListener('click', ({ target }) => {
      if (target === one) one.close();
    });
  }

  let isAfterG = false;
  document.addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if ((ctrlKey || metaKey) && key.toLowerCase() === 'k') {
      event.preventDefault();
      open();
      return;
    }
    const isTyping = (target as Element).closest('input, textarea, select, [contenteditable]');
    if (ctrlKey || metaKey || altKey || isTyping !== null || dialog.open) return;
    const page = isAfterG ? pages.find((one) => one.key === key) : undefined;
    isAfterG = key === 'g';
    if (page !== undefined) location.assign(page.path);
    else if (key === '?') help.showModal();
    else if (key === '/') {
      const field = document.querySelector<HTMLElement>(
        'main [type=search], main .filter :is(input, select)',
      );
      if (field === null) return;
      event.preventDefault();
      field.focus();
    }
  });
  document.querySelector('#palette-open')?.addEventListener('click', open);
}
