import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { html } from 'hono/html';
import { ServiceError } from '../../base/errors.ts';
import type { Session } from '../../identity/login-sessions.ts';
import { addressOf } from '../client-address.ts';
import { checkJson } from '../json-faults.ts';
import { asServiceError } from '../service-error.ts';
import type { App, AppEnv, Services } from '../services.ts';
import { checkCsrf, isSecure, refuseForeign, sessionOf } from '../session-cookie.ts';
import { callAs, fileAs, type Call, type ReadFile } from './call.ts';
import type { Child, Html } from './html.ts';
import { readHaltBanner } from './halt-banner.ts';
import { page, type Content } from './layout.ts';

/** A request for a page by an administrator who is signed in. */
export interface Visit {
  readonly c: Context<AppEnv>;
  readonly session: Session;
  /** Calls the API as this administrator. */
  readonly call: Call;
  /** Reads a file of the API as this administrator. */
  readonly file: ReadFile;
  /**
   * Renders a part that the rest of the page can do without. If it fails, the page shows a message in its
   * place, and the log records the error.
   * @param name is what the message says is missing, such as `The limits`.
   */
  readonly part: (name: string, show: () => Promise<Child>) => Promise<Child>;
  /** A parameter of the path, such as `param('bot_ref')`. */
  readonly param: (name: string) => string;
  /** A parameter of the query; undefined if it is absent or empty. */
  readonly query: (name: string) => string | undefined;
}

/** The fields of a submitted form. `get` returns an empty string for an absent field. */
export interface Form {
  readonly get: (name: string) => string;
  readonly all: (name: string) => readonly string[];
  readonly names: readonly string[];
}

/** Redirects after a form has succeeded, with a message for the next page. */
export interface GoTo {
  readonly goTo: string;
  readonly message?: string;
}

/**
 * Registers pages that require a login session. Pages and forms do everything through `visit.call`.
 */
export interface Pages {
  readonly get: (path: string, show: (visit: Visit) => Promise<Content>) => void;
  /**
   * Handles a form that contains `csrfField(visit.session)`. `act` usually redirects, so that a
   * reload does not submit the form again. It returns content only if that may be displayed just
   * once.
   *
   * @param again renders the form again, below the message of a `ServiceError` that `act` threw.
   * Without it, the error gets a page of its own.
   */
  readonly post: (
    path: string,
    act: (visit: Visit, form: Form) => Promise<GoTo | Content>,
    again?: (visit: Visit, form: Form) => Promise<Content>,
  ) => void;
  /** Handles JSON from a script of a page, which sends its CSRF token as `Service-CSRF`. */
  readonly json: (path: string, act: (visit: Visit, body: unknown) => Promise<object>) => void;
  /** Registers a document that a page embeds. */
  readonly other: (path: string, show: (visit: Visit) => Promise<Response>) => void;
}

function missingPart(name: string, { message }: ServiceError, requestId: string): Html {
  return html`<p class="message failure">
    ${name} cannot be shown: ${message}. Request id in the log of the server:
    <code>${requestId}</code>
  </p>`;
}

/** With TLS, the prefix `__Host-` keeps other hosts of the domain from setting the message. */
function messageCookie(hasTls: boolean): string {
  return hasTls ? '__Host-service-local-message' : 'service-local-message';
}

export function pagesOf(app: App, services: Services): Pages {
  const visitOf = async (c: Context<AppEnv>): Promise<Visit> => {
    const session = await sessionOf(c, services);
    if (session === undefined) {
      throw new ServiceError('not_authenticated', 'you are not signed in', {
        reason: 'no_session',
        remedy: 'Sign in at /console/sign-in.',
      });
    }
    c.set('session', session);
    return {
      c,
      session,
      call: callAs(app, session.caller, c.get('request_id'), addressOf(c, services)),
      file: fileAs(app, session.caller, c.get('request_id')),
      part: async (name, show) =>
        show().catch((error: unknown) => {
          services.log.warn({ request_id: c.get('request_id'), part: name, err: error });
          return missingPart(name, asServiceError(error), c.get('request_id'));
        }),
      param: (name) => c.req.param(name)!,
      query: (name) => c.req.query(name) || undefined,
    };
  };
  const answer = async (
    { c, session, call }: Visit,
    content: Content,
    more: Parameters<typeof page>[2] = {},
  ): Promise<Response> =>
    // Read the banner after the action, which may be a halt.
    page(c, content, { session, banner: await readHaltBanner(call), ...more });
  return {
    get(path, show) {
      app.get(path, async (c) => {
        const visit = await visitOf(c);
        const message = takeMessage(c, services);
        return answer(visit, await show(visit), { message });
      });
    },
    post(path, act, again) {
      app.post(path, async (c) => {
        refuseForeign(c, services);
        const visit = await visitOf(c);
        const form = await readForm(c);
        const { session } = visit;
        checkCsrf(session, form.get('csrf'));
        let done: GoTo | Content;
        try {
          done = await act(visit, form);
        } catch (error) {
          if (!(error instanceof ServiceError) || again === undefined) throw error;
          c.error = error;
          const status = error.status as NonNullable<Content['status']>;
          const content = await again(visit, form).catch(() => {
            throw error;
          });
          return answer(visit, { ...content, status }, { failure: error });
        }
        if (!('goTo' in done)) return answer(visit, done);
        if (done.message !== undefined) leaveMessage(c, services, done.message);
        return c.redirect(done.goTo, 303);
      });
    },
    json(path, act) {
      app.post(path, async (c) => {
        refuseForeign(c, services);
        const visit = await visitOf(c);
        checkCsrf(visit.session, c.req.header('service-csrf'));
        return c.json(await act(visit, await readJson(c)));
      });
    },
    other(path, show) {
      app.get(path, async (c) => show(await visitOf(c)));
    },
  };
}

/** @throws ServiceError `unsupported_media_type` */
export async function readForm(c: Context<AppEnv>): Promise<Form> {
  const type = c.req.header('content-type') ?? '';
  if (!/^application\/x-www-form-urlencoded(;|$)/i.test(type)) {
    throw new ServiceError('unsupported_media_type', 'the body is not a form');
  }
  const fields = new URLSearchParams(await c.req.text());
  return {
    get: (name) => fields.get(name) ?? '',
    all: (name) => fields.getAll(name),
    names: [...new Set(fields.keys())],
  };
}

/** @throws ServiceError `unsupported_media_type`, `invalid_request` */
export async function readJson(c: Context<AppEnv>): Promise<unknown> {
  if (!/^application\/json(;|$)/i.test(c.req.header('content-type') ?? '')) {
    throw new ServiceError('unsupported_media_type', 'the body is not JSON');
  }
  const text = await c.req.text();
  checkJson(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ServiceError('invalid_request', 'the body is not valid JSON');
  }
}

/** Keeps a message for the next page, for at most 60 seconds. */
function leaveMessage(c: Context<AppEnv>, services: Services, message: string): void {
  setMessage(c, services, message, 60);
}

function takeMessage(c: Context<AppEnv>, services: Services): string | undefined {
  const message = getCookie(c, messageCookie(isSecure(services)));
  if (message !== undefined) setMessage(c, services, '', 0);
  return message;
}

function setMessage(c: Context<AppEnv>, services: Services, message: string, maxAge: number): void {
  const secure = isSecure(services);
  setCookie(c, messageCookie(secure), message, {
    path: '/',
    httpOnly: true,
    sameSite: 'Strict',
    secure,
    maxAge,
  });
}
