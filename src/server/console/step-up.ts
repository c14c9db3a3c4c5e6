import type { PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server';
import type { Context } from 'hono';
import { html } from 'hono/html';
import { z } from 'zod';
import type { createStepUp } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import { siteOf } from '../../identity/passkey-proof.ts';
import { rotateSession } from '../../identity/sessions.ts';
import {
  STEP_UP_ACTIONS,
  stepUpOptions,
  type StepUpRequest,
  type StepUpSubject,
} from '../../identity/step-up.ts';
import type { RequestOf } from '../../client/route.ts';
import type { AppEnv, Services } from '../services.ts';
import { setSessionSecret } from '../session-cookie.ts';
import { PASSKEYS, WEBAUTHN } from './assets.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
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

/** A form that may need a second factor, which is then asked for on a page of its own. */
export interface Confirmation {
  readonly subject: StepUpSubject;
  readonly title: string;
  /** What the person is about to do. */
  readonly what: Child;
  /** Names of the fields of the form, which the page repeats. */
  readonly fields: readonly string[];
}

/**
 * Sends a request that may need a second factor. Where it does and the form has none yet, the page
 * that asks for one is returned.
 *
 * @throws ServiceError of the API; a wrong factor is shown on `confirmationPage`.
 */
export async function sendWithStepUp<T>(
  visit: Visit,
  services: Services,
  confirmation: Confirmation,
  form: Form,
  send: (headers: Readonly<Record<string, string>>) => Promise<T>,
): Promise<{ readonly sent: T } | { readonly ask: Content }> {
  try {
    return { sent: await send({}) };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'step_up_required') throw error;
  }
  if (!hasFactor(form)) return { ask: confirmationPage(visit, confirmation, form) };
  const token = await stepUp(visit, services, confirmation.subject, factorOf(form));
  return { sent: await send({ 'service-step-up': token }) };
}

/** Whether a form was sent by `confirmationPage`. */
export function hasFactor(form: Form): boolean {
  return form.get('code') !== '' || form.get('passkey') !== '';
}

export function confirmationPage(
  { c, session }: Visit,
  { subject, title, what, fields }: Confirmation,
  form: Form,
): Content {
  return {
    title,
    scripts: [WEBAUTHN, PASSKEYS],
    body: html`<p>${what}</p>
      <form method="post" action="${c.req.path}">
        ${csrfField(session)}
        ${fields.map((name) => html`<input type="hidden" name="${name}" value="${form.get(name)}" />`)}
        ${stepUpFields(subject)}
        <div class="actions"><button class="main">${title}</button></div>
      </form>`,
  };
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
