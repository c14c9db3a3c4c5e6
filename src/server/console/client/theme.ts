/// <reference lib="dom" />

/**
 * Before anything is painted, the theme that was chosen on this machine; then the button `#theme`
 * chooses the other. Without a choice it is the system's.
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
    // A browser may keep nothing.
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
        // Then it is for this page only.
      }
      show();
    });
    system.addEventListener('change', show);
    show();
  });
}
