/// <reference lib="dom" />

/** Makes the button `#theme` override the system's light or dark preference for this page. */
export function switchTheme(): void {
  const button = document.querySelector<HTMLButtonElement>('#theme')!;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = (): boolean =>
    (document.documentElement.dataset['theme'] ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const announce = (): void => {
    button.textContent = isDark() ? 'Light theme' : 'Dark theme';
    document.dispatchEvent(new Event('themechange'));
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    document.documentElement.dataset['theme'] = isDark() ? 'light' : 'dark';
    announce();
  });
  system.addEventListener('change', announce);
  announce();
}
