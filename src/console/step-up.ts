import type { PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server';
import type { Context } from 'hono';
import { html } from 'hono/html';
import { z } from 'zod';
import type { createStepUp } from '../api/administrators.ts';
import { ServiceError } from '../errors.ts';
import { siteOf } from '../identity/passkey-proof.ts';
import { rotateSession } from '../identity/sessions.ts';
import {
  STEP_UP_ACTIONS,
  stepUpOptions,
  type StepUpRequest,
  type StepUpSubject,
} from '../identity/step-up.ts';
import type { RequestOf } from '../client/client.ts';
import type { AppEnv, Services } from '../server/services.ts';
import { setSessionSecret } from '../server/session-cookie.ts';
import type { Html } from './html.ts';
import { ALERT } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

/**
 * The part of a form that asks for a second factor, for one action to one target; `act` of the form
 * gives both to `stepUp`. The page has the scripts `WEBAUTHN` and `PASSKEYS`.
 */
export function stepUpFields({ action, target }: StepUpSubject): Html {
  return html`<fieldset class="step-up">
    <legend>Confirm that it is you</legend>
    <div class="field">
      <label for="code">Code of your authenticator app, or a recovery code</label>
      <input
        id="code"
        name="code"
        required
        maxlength="100"
        autocomplete="one-time-code"
        autocapitalize="characters"
        spellcheck="false"
      />
    </div>
    <div data-passkey="step-up" data-action="${action}" data-target="${target}" hidden>
      <button type="button">Use a passkey instead</button>${ALERT}
      <input type="hidden" name="passkey" />
    </div>
  </fieldset>`;
}

/** What the form of `stepUpFields` has, as the API takes it. */
export function factorOf(form: Form): Pick<StepUpRequest, 'code' | 'passkey'> {
  const passkey = form.get('passkey');
  if (passkey === '') return { code: form.get('code') };
  try {
    return { passkey: JSON.parse(passkey) as NonNullable<StepUpRequest['passkey']> };
  } catch {
    throw new ServiceError('invalid_request', 'what the passkey signed cannot be read');
  }
}

/**
 * Gets the right to do one action to one target once; to be sent as `service-step-up`. From here on
 * the session has another secret, which the answer gives to the browser.
 *
 * @throws ServiceError as `POST /identity/step-ups`
 */
export async function stepUp(
  { c, call, session }: Visit,
  services: Services,
  subject: StepUpSubject,
  factor: Pick<StepUpRequest, 'code' | 'passkey'>,
): Promise<string> {
  const body = { ...subject, ...factor } as RequestOf<typeof createStepUp>['body'];
  const { step_up_token } = await call<typeof createStepUp>('post', '/identity/step-ups', { body });
  const { identity } = services;
  setSessionSecret(c, services, await rotateSession(identity, session.caller.session_id));
  return step_up_token;
}

/**
 * The host for which a page may ask for passkeys.
 * @throws ServiceError `conflict` with the reason `no_passkeys_here`
 */
export function siteOfPage(c: Context<AppEnv>, [known]: Services['origins']): string {
  // A proxy may ask under another name than the browser.
  const site = siteOf(c.req.header('origin') ?? c.req.url);
  if (site !== undefined) return site;
  throw new ServiceError('conflict', 'there are no passkeys for a site that has no name', {
    reason: 'no_passkeys_here',
    remedy: `Open the console under a name, such as ${known.replace(/\/\/[^/]*(:\d+)$/, '//localhost$1')}.`,
  });
}

const Subject = z.strictObject({ action: z.enum(STEP_UP_ACTIONS), target: z.string().max(150) });

export function addStepUp(pages: Pages, { identity, origins }: Services): void {
  pages.json('/console/step-up/options', async ({ c, session }, body) => {
    const subject = Subject.safeParse(body);
    if (!subject.success)
      throw new ServiceError('invalid_request', 'name an action and its target');
    const site = siteOfPage(c, origins);
    const options: PublicKeyCredentialRequestOptionsJSON = await stepUpOptions(
      identity,
      session.caller,
      subject.data,
      site,
    );
    return options;
  });
}
