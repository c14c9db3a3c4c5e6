import type { Context } from 'hono';
import { html } from 'hono/html';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ServiceError } from '../../base/errors.ts';
import { showHidden } from '../../base/hidden-characters.ts';
import type { Session } from '../../identity/sessions.ts';
import type { AppEnv } from '../services.ts';
import { CONNECTION, FORMS, ICON, STYLE_SHEET, THEME, type Asset } from './assets.ts';
import type { Child, Html } from './html.ts';

/** What the server is for, in the order of the navigation: the first is where `/console` leads. */
const NAVIGATION = [
  { title: 'Licenses', path: '/identity/license' },
  { title: 'Bots', path: '/console/bots' },
  { title: 'Tasks', path: '/console/tasks' },
  { title: 'Audit', path: '/console/audit' },
  { title: 'Account', path: '/console/account' },
] as const;

export const FIRST_PAGE = NAVIGATION[0].path;

/** The kill switch: on every page. */
export const HALT_ALL_PATH = '/console/halt-all';

/** What a page is made of. */
export interface Content {
  /** Heading of the page, and of its tab. */
  readonly title: string;
  /** All below the heading. */
  readonly body: Child;
  /** Beside `FORMS`, which all pages have; in order, at the end of the page. */
  readonly scripts?: readonly Asset[];
  /** 200 when absent. */
  readonly status?: ContentfulStatusCode;
}

/** Nothing of another origin, nothing inline, no frame around it, no form to elsewhere. */
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
  // Without any, the browser would not say of a form from where it is sent.
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
});

/** A page as it is sent. What went wrong, or was done before, is said above its content. */
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
    /** Of every page, above its heading. */
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
        ${[FORMS, ...(session ? [CONNECTION] : []), ...scripts].map(({ url }) => html`<script src="${url}" defer></script>`)}
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
  return c.req.path === path || c.req.path.startsWith(`${path}/`);
}

/** What every form that changes something has. */
export function csrfField({ csrf_token }: Pick<Session, 'csrf_token'>): Html {
  return html`<input type="hidden" name="csrf" value="${csrf_token}" />`;
}

/** What went wrong, what can be done about it, and all that is wrong with what was sent. */
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

/** `it failed` as `It failed.` */
export function sentence(text: string): string {
  const first = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
