/// <reference lib="dom" />

import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser';

declare const SimpleWebAuthnBrowser: typeof import('@simplewebauthn/browser');

/**
 * Posts JSON with the CSRF token of the page. Rejects with an error whose message suits the user.
 */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const csrf = document.querySelector<HTMLMetaElement>('meta[name=csrf-token]')?.content;
  const answer = await fetch(path, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      ...(csrf !== undefined && { 'service-csrf': csrf }),
    },
    body: JSON.stringify(body),
  });
  const result = (await answer.json()) as { readonly detail?: string; readonly remedy?: string };
  if (!answer.ok) throw new Error([result.detail, result.remedy].filter(Boolean).join('. '));
  return result as T;
}

/** Shows an error in the alert of `place`, which screen readers announce. */
export function showError(place: Element, error: unknown): void {
  const isRefusal = error instanceof Error && error.name === 'NotAllowedError';
  const message = error instanceof Error ? error.message : String(error);
  place.querySelector('[role=alert]')!.textContent = isRefusal
    ? 'The browser returned no passkey: the request was canceled or timed out, or there is no passkey for this site.'
    : message;
}

/** Enables the parts of a page that use passkeys: `[data-passkey=sign-in]`, `step-up` and `add`. */
export function passkeys(): void {
  if (!SimpleWebAuthnBrowser.browserSupportsWebAuthn()) return;
  const { startAuthentication, startRegistration } = SimpleWebAuthnBrowser;

  const signIn = document.querySelector<HTMLElement>('[data-passkey=sign-in]');
  if (signIn) {
    signIn.hidden = false;
    const button = signIn.querySelector('button')!;
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        const options = {
          optionsJSON: await post<PublicKeyCredentialRequestOptionsJSON>(
            '/console/sign-in/options',
            {},
          ),
        };
        const response = await startAuthentication(options);
        const { next } = signIn.dataset;
        const { location: place } = await post<{ readonly location: string }>(
          '/console/sign-in/passkey',
          { response, next },
        );
        location.assign(place);
      } catch (error) {
        showError(signIn, error);
        button.disabled = false;
      }
    });
  }

  for (const fields of document.querySelectorAll<HTMLElement>('[data-passkey=step-up]')) {
    fields.hidden = false;
    const form = fields.closest('form')!;
    const code = form.querySelector<HTMLInputElement>('[name=code]')!;
    const signed = form.querySelector<HTMLInputElement>('[name=passkey]')!;
    fields.querySelector('button')!.addEventListener('click', async () => {
      // Check the other fields first, because a response of a passkey can be used only once.
      code.required = false;
      const isComplete = form.reportValidity();
      code.required = true;
      if (!isComplete) return;
      try {
        const { action, target } = fields.dataset;
        const options = {
          optionsJSON: await post<PublicKeyCredentialRequestOptionsJSON>(
            '/console/step-up/options',
            { action, target },
          ),
        };
        const response: AuthenticationResponseJSON = await startAuthentication(options);
        code.required = false;
        code.value = '';
        signed.value = JSON.stringify(response);
        form.requestSubmit();
      } catch (error) {
        showError(fields, error);
      }
    });
  }

  const add = document.querySelector<HTMLFormElement>('form[data-passkey=add]');
  if (add) {
    add.hidden = false;
    const field = (name: string): HTMLInputElement => add.querySelector(`[name=${name}]`)!;
    add.addEventListener('submit', async (event) => {
      if (field('response').value !== '') return;
      event.preventDefault();
      try {
        const { value: code } = field('code');
        const { value: passkey } = field('passkey');
        const options = await post<PublicKeyCredentialCreationOptionsJSON>(
          '/console/account/passkeys/options',
          passkey === '' ? { code } : { passkey: JSON.parse(passkey) as unknown },
        );
        const response = await startRegistration({ optionsJSON: options });
        field('response').value = JSON.stringify(response);
        // The factor is used up and need not be sent again.
        field('code').required = false;
        field('code').value = '';
        field('passkey').value = '';
        add.requestSubmit();
      } catch (error) {
        field('passkey').value = '';
        field('code').required = true;
        showError(add, error);
      }
    });
  }
}
