import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import type { Context } from 'hono';
import { html } from 'hono/html';
import { z } from 'zod';
import { PasskeyAssertion } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import { hasAdministrators } from '../../identity/administrators.ts';
import { passkeyOptions } from '../../identity/passkey-proof.ts';
import { signInWithPasskey } from '../../identity/passkeys.ts';
import { signIn, type Browser } from '../../identity/login-sessions.ts';
import type { App, AppEnv, Services } from '../services.ts';
import { addressOf, clientNetwork } from '../client-address.ts';
import { refuseForeign, sessionOf, sessionSecret, setSessionSecret } from '../session-cookie.ts';
import { PASSKEYS, WEBAUTHN } from './assets.ts';
import { START_PAGE, page, type Content } from './layout.ts';
import { ALERT, emptyState, field } from './parts.ts';
import { readForm, readJson, type Pages } from './pages.ts';
import { siteOfPage } from './step-up.ts';

export const SIGN_IN_PATH = '/console/sign-in';

const PasskeySignIn = z.strictObject({ response: PasskeyAssertion, next: z.string().optional() });

export function addSignIn(app: App, pages: Pages, services: Services): void {
  const { identity, origins } = services;

  app.get(SIGN_IN_PATH, async (c) => {
    const next = ownPath(c.req.query('next'));
    const session = await sessionOf(c, services).catch(ignoreEnded);
    if (session !== undefined) return c.redirect(next, 303);
    const isSetUp = await hasAdministrators(identity.storage.read);
    return page(c, isSetUp ? signInPage(next, '') : noAdministratorPage());
  });

  app.post(SIGN_IN_PATH, async (c) => {
    refuseForeign(c, services);
    const form = await readForm(c);
    const next = ownPath(form.get('next'));
    const credentials = {
      name: form.get('name').trim(),
      password: form.get('password'),
      code: form.get('code'),
      network: clientNetwork(c, services),
    };
    try {
      const secret = await signIn(identity, credentials, browserOf(c, services));
      setSessionSecret(c, services, secret);
      return c.redirect(next, 303);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      c.error = error;
      if (error.retryAfterSeconds !== undefined) {
        c.header('Retry-After', String(error.retryAfterSeconds));
      }
      const status = error.status as NonNullable<Content['status']>;
      return page(c, { ...signInPage(next, credentials.name), status }, { failure: error });
    }
  });

  app.post(`${SIGN_IN_PATH}/options`, async (c) => {
    refuseForeign(c, services);
    const site = siteOfPage(c, origins);
    return c.json(await passkeyOptions(identity, site, { purpose: 'sign_in' }));
  });

  app.post(`${SIGN_IN_PATH}/passkey`, async (c) => {
    refuseForeign(c, services);
    const sent = PasskeySignIn.safeParse(await readJson(c));
    if (!sent.success)
      throw new ServiceError('invalid_request', 'the body is not the response of a passkey');
    const { response, next } = sent.data;
    const secret = await signInWithPasskey(
      identity,
      response as AuthenticationResponseJSON,
      browserOf(c, services),
      origins,
      clientNetwork(c, services),
    );
    setSessionSecret(c, services, secret);
    return c.json({ location: ownPath(next) });
  });

  pages.post('/console/sign-out', async ({ c, call, session }) => {
    const params = { session_id: session.caller.session_id };
    await call('delete', '/identity/sessions/{session_id}', { params });
    setSessionSecret(c, services, undefined);
    return { goTo: SIGN_IN_PATH };
  });
}

function browserOf(c: Context<AppEnv>, services: Services): Browser {
  return {
    user_agent: c.req.header('user-agent') ?? '',
    address: addressOf(c, services),
    secret: sessionSecret(c, services),
  };
}

function ignoreEnded(error: unknown): undefined {
  if (!(error instanceof ServiceError && error.code === 'not_authenticated')) throw error;
}

/**
 * Returns the path if it is a page of the console, else the start page, so that a link cannot
 * redirect elsewhere after signing in.
 */
function ownPath(next: string | undefined): string {
  const base = 'http://own.invalid';
  if (next === undefined || !URL.canParse(next, base)) return START_PAGE;
  const { origin, pathname, search } = new URL(next, base);
  const isOwn =
    origin === base &&
    /^\/(console|identity\/license)(\/|$)/.test(pathname) &&
    next.startsWith('/');
  const isSignIn = pathname.startsWith(SIGN_IN_PATH);
  return isOwn && !isSignIn ? `${pathname}${search}` : START_PAGE;
}

function signInPage(next: string, name: string): Content {
  return {
    title: 'Sign in',
    scripts: [WEBAUTHN, PASSKEYS],
    body: html`<div class="narrow">
      <form method="post" action="${SIGN_IN_PATH}">
        <input type="hidden" name="next" value="${next}" />
        ${field('Name', 'name', { value: name, required: true, maxlength: 100, autocomplete: 'username', autocapitalize: 'none', spellcheck: 'false', autofocus: name === '' })}
        ${field('Password', 'password', { type: 'password', required: true, maxlength: 1000, autocomplete: 'current-password' })}
        ${field('Code', 'code', { required: true, maxlength: 100, autocomplete: 'one-time-code', spellcheck: 'false' }, 'From your authenticator app, or a recovery code.')}
        <button class="main">Sign in</button>
      </form>
      <div class="or" data-passkey="sign-in" data-next="${next}" hidden>
        <button type="button">Sign in with a passkey</button>${ALERT}
      </div>
      <p class="note">
        Lost your password or codes? To set new ones, run
        <code>service-local identity administrators reset NAME</code> on the server's machine.
      </p>
    </div>`,
  };
}

function noAdministratorPage(): Content {
  return {
    title: 'Sign in',
    body: emptyState(
      "There is no administrator yet. Add the first one on the server's machine:",
      'service-local identity administrators add NAME',
    ),
  };
}
