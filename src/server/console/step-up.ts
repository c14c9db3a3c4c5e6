import { STEP_UP_ACTIONS } from '../../base/step-up-actions.ts';
import type { PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server';
import type { Context } from 'hono';
import { html } from 'hono/html';
import { z } from 'zod';
import type { createStepUp } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import { siteOf } from '../../identity/passkey-proof.ts';
import { rotateSession } from '../../identity/login-sessions.ts';
import { stepUpOptions, type StepUpRequest, type StepUpSubject } from '../../identity/step-up.ts';
import type { RequestOf } from '../../client/route.ts';
import type { AppEnv, Services } from '../services.ts';
import { setSessionSecret } from '../session-cookie.ts';
import { PASSKEYS, WEBAUTHN } from './assets.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { ALERT } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

/**
 * Form fields for a second factor that allows one action on one target. The page must load the
 * scripts `WEBAUTHN` and `PASSKEYS`, and the handler of the form must call `stepUp`.
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

/** Reads the fields of `stepUpFields` as a request of the API. */
export function factorOf(form: Form): Pick<StepUpRequest, 'code' | 'passkey'> {
  const passkey = form.get('passkey');
  if (passkey === '') return { code: form.get('code') };
  try {
    return { passkey: JSON.parse(passkey) as NonNullable<StepUpRequest['passkey']> };
  } catch {
    throw new ServiceError('invalid_request', 'the response of the passkey is not valid JSON');
  }
}

/**
 * Returns a token that allows one action on one target once, sent in the header `service-step-up`.
 * Gives the login session a new secret, whose cookie is set in the answer.
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

/** A form that may need a second factor, which a page of its own then requests. */
export interface Confirmation {
  readonly subject: StepUpSubject;
  readonly title: string;
  /** Describes the action that the second factor confirms. */
  readonly what: Child;
  /** Names of the form fields that the page repeats as hidden inputs. */
  readonly fields: readonly string[];
}

/**
 * Sends a request that may need a second factor. If it does and the form has none yet, returns the
 * page that requests one.
 *
 * @throws ServiceError of the API; a wrong factor is reported on `confirmationPage`.
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
 * The host that passkeys of this page belong to.
 * @throws ServiceError `conflict` with the reason `no_passkeys_here`
 */
export function siteOfPage(c: Context<AppEnv>, [known]: Services['origins']): string {
  // Behind a proxy, the URL may have another host than in the browser.
  const site = siteOf(c.req.header('origin') ?? c.req.url);
  if (site !== undefined) return site;
  throw new ServiceError('conflict', 'passkeys require a host name, not an IP address', {
    reason: 'no_passkeys_here',
    remedy: `Open the console under a host name, such as ${known.replace(/\/\/[^/]*(:\d+)$/, '//localhost$1')}.`,
  });
}

const Subject = z.strictObject({ action: z.enum(STEP_UP_ACTIONS), target: z.string().max(150) });

export function addStepUp(pages: Pages, { identity, origins }: Services): void {
  pages.json('/console/step-up/options', async ({ c, session }, body) => {
    const subject = Subject.safeParse(body);
    if (!subject.success)
      throw new ServiceError('invalid_request', 'the body must contain an action and its target');
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
