/// <reference lib="dom" />

/**
 * Keeps what the user has typed into a form that is submitted after the login session has ended, and
 * restores it after the same user has signed in again. Never keeps passwords, codes or hidden fields.
 */
export function keepTyped(): void {
  const KEY = 'typed';
  const SIGN_IN = '/console/sign-in';
  const SECRET = '[type=password], [type=hidden], [autocomplete=one-time-code]';
  type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;
  interface Kept {
    readonly path: string;
    readonly user: string;
    /** Whether the form led to the sign-in page instead of its action. */
    readonly isSignedOut: boolean;
    /** Value, or for boxes whether it is checked, by place of the field in the page. */
    readonly values: Readonly<Record<string, string | boolean>>;
  }
  const user = document.querySelector('.who .name')?.textContent ?? '';
  /** Names occur several times in a page, so the place counts, too. */
  const fields = (): (readonly [key: string, field: Field])[] =>
    [...document.querySelectorAll<Field>('main form :is(input, textarea, select)')].map(
      (field, place) => [`${place} ${field.name}`, field],
    );
  const isBox = (field: Field): field is HTMLInputElement =>
    field instanceof HTMLInputElement && ['checkbox', 'radio'].includes(field.type);

  function restore({ values }: Kept): void {
    for (const [key, field] of fields()) {
      const value = values[key];
      if (value === undefined || field.matches(SECRET)) continue;
      if (isBox(field)) field.checked = value === true;
      else field.value = String(value);
      field.closest('details')?.setAttribute('open', '');
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }
  }
  function keep(): void {
    const values = Object.fromEntries(
      fields().flatMap(([key, field]) =>
        field.matches(SECRET) || field.name === ''
          ? []
          : [[key, isBox(field) ? field.checked : field.value]],
      ),
    );
    const kept: Kept = { path: location.pathname, user, isSignedOut: false, values };
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  }

  try {
    const text = sessionStorage.getItem(KEY);
    if (location.pathname === SIGN_IN) {
      if (text !== null && location.search !== '') {
        const kept: Kept = { ...(JSON.parse(text) as Kept), isSignedOut: true };
        sessionStorage.setItem(KEY, JSON.stringify(kept));
      } else sessionStorage.removeItem(KEY);
      return;
    }
    sessionStorage.removeItem(KEY);
    const kept = text === null ? undefined : (JSON.parse(text) as Kept);
    if (kept?.isSignedOut === true && kept.path === location.pathname && kept.user === user) {
      restore(kept);
    }
    document.addEventListener(
      'submit',
      ({ target }) => {
        if ((target as HTMLFormElement).matches('main form[method=post]')) keep();
      },
      { capture: true },
    );
  } catch {
    // The browser may not allow storage.
  }
}
