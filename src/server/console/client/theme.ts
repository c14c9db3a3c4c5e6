/// <reference lib="dom" />

/**
 * Applies the theme stored in this browser before the first paint, and lets the button `#theme`
 * switch it. Without a stored choice, the theme is that of the system.
 */
export function theme(): void {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const choose = (chosen: string | null): void => {
    if (chosen === 'light' || chosen === 'dark') root.dataset['theme'] = chosen;
  };
  try {
    choose(localStorage.getItem('theme'));
  } catch {
    // The browser may not allow storage.
  }
  const isDark = (): boolean =>
    (root.dataset['theme'] ?? (system.matches ? 'dark' : 'light')) === 'dark';
  addEventListener('DOMContentLoaded', () => {
    const button = document.querySelector<HTMLButtonElement>('#theme');
    if (button === null) return;
    const show = (): void => {
      const more = document.createElement('span');
      more.className = 'more';
      more.textContent = ' theme';
      button.replaceChildren(isDark() ? 'Light' : 'Dark', more);
      document.dispatchEvent(new Event('themechange'));
    };
    button.hidden = false;
    button.addEventListener('click', () => {
      choose(isDark() ? 'light' : 'dark');
      try {
        localStorage.setItem('theme', root.dataset['theme']!);
      } catch {
        // Without storage, the choice applies to this page only.
      }
      show();
    });
    system.addEventListener('change', show);
    show();
  });
}
