import type { Context } from 'hono';
import { html } from 'hono/html';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ServiceError } from '../../base/errors.ts';
import { showHidden } from '../../base/hidden-characters.ts';
import type { Session } from '../../identity/login-sessions.ts';
import type { AppEnv } from '../services.ts';
import {
  CONNECTION,
  FORMS,
  ICON,
  KEEP_TYPED,
  PALETTE,
  STYLE_SHEET,
  THEME,
  TOASTS,
  type Asset,
} from './assets.ts';
import type { Child, Html } from './html.ts';

/** Sign-in leads here. */
export const START_PAGE = '/console';

const NAVIGATION = [
  { title: 'Overview', path: START_PAGE },
  { title: 'Licenses', path: '/identity/license' },
  { title: 'Bots', path: '/console/bots' },
  { title: 'Tasks', path: '/console/tasks' },
  { title: 'Audit', path: '/console/audit' },
  { title: 'Account', path: '/console/account' },
] as const;

/** Page of the kill switch, linked from every page. */
export const HALT_ALL_PATH = '/console/halt-all';

export interface Content {
  /** Heading of the page and title of its tab. */
  readonly title: string;
  readonly body: Child;
  /** Loaded in this order after the scripts of every page. */
  readonly scripts?: readonly Asset[];
  /** Default 200. */
  readonly status?: ContentfulStatusCode;
}

/**
 * Allows resources, connections and forms of this origin only, nothing inline, and no embedding.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = Object.entries({
  'Cache-Control': 'no-store',
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy':
    'camera=(), geolocation=(), microphone=(), payment=(), usb=(), publickey-credentials-create=(self), publickey-credentials-get=(self)',
  // With `no-referrer`, browsers would send forms with the origin `null`.
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
});

/** Renders a page, with `failure` or `message` above its content. */
export async function page(
  c: Context<AppEnv>,
  { title, body, scripts = [], status = 200 }: Content,
  {
    session,
    failure,
    message,
    banner,
  }: {
    readonly session?: Session | undefined;
    readonly failure?: ServiceError | undefined;
    readonly message?: string | undefined;
    readonly banner?: Html | undefined;
  } = {},
): Promise<Response> {
  for (const [name, value] of HEADERS) c.header(name, value);
  const source = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        ${session && html`<meta name="csrf-token" content="${session.csrf_token}" />`}
        <title>${title} · service-local</title>
        <script src="${THEME.url}"></script>
        <link rel="stylesheet" href="${STYLE_SHEET.url}" />
        <link rel="icon" href="${ICON.url}" type="image/svg+xml" />
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        ${top(c, session)} ${banner}
        <main id="main" tabindex="-1">
          <h1>${title}</h1>
          ${message && html`<p class="message" role="status" tabindex="-1" data-message>${message}</p>`}
          ${failure && failureMessage(failure)} ${body}
        </main>
        <p id="live" class="unseen" role="status" aria-live="polite"></p>
        ${[KEEP_TYPED, FORMS, ...(session ? [CONNECTION, PALETTE, TOASTS] : []), ...scripts].map(({ url }) => html`<script src="${url}" defer></script>`)}
      </body>
    </html> `;
  return c.html(showHidden(String(source)), status);
}

function top(c: Context<AppEnv>, session: Session | undefined): Html {
  return html`<header class="top">
    <a class="brand" href="/console">service-local</a>
    ${
      session &&
      html`<nav aria-label="Main">
        <ul>
          ${NAVIGATION.map(({ title, path }) => html`<li><a href="${path}" ${isIn(c, path) && html` aria-current="page"`}>${title}</a></li>`)}
        </ul>
      </nav>`
    }
    <div class="who">
      ${session && html`<a class="button danger" href="${HALT_ALL_PATH}">Halt all</a>`}
      ${
        session &&
        html`<button type="button" id="palette-open" class="quiet" title="Go to a page or a bot">
          Go to<span class="more"> <kbd>Ctrl K</kbd></span>
        </button>`
      }
      <button type="button" id="theme" class="quiet" hidden>Theme</button>
      ${
        session &&
        html`<form method="post" action="/console/sign-out">
          ${csrfField(session)}<button class="quiet">
            Sign out <span class="name">${session.name}</span>
          </button>
        </form>`
      }
    </div>
  </header>`;
}

function isIn(c: Context<AppEnv>, path: string): boolean {
  const isBelow = path !== START_PAGE && c.req.path.startsWith(`${path}/`);
  return c.req.path === path || isBelow;
}

/** CSRF token, required in every form that is posted. */
export function csrfField({ csrf_token }: Pick<Session, 'csrf_token'>): Html {
  return html`<input type="hidden" name="csrf" value="${csrf_token}" />`;
}

function failureMessage({ message, remedy, problems }: ServiceError): Html {
  return html`<div class="message failure" role="alert" tabindex="-1" data-message>
    <p>${sentence(message)}${remedy && html` ${sentence(remedy)}`}</p>
    ${
      problems.length > 0 &&
      html`<ul>
        ${problems.map((problem) => html`<li>${problem.pointer && html`<code>${problem.pointer}</code> `}${problem.message}</li>`)}
      </ul>`
    }
  </div>`;
}

/** Capitalizes a message and ends it with a period. */
export function sentence(text: string): string {
  const first = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
