import type { Context } from 'hono';
import { html } from 'hono/html';
import type { ServiceError } from '../../base/errors.ts';
import type { AppEnv, Services } from '../services.ts';
import { sessionOf } from '../session-cookie.ts';
import { page, sentence, type Content } from './layout.ts';
import { SIGN_IN_PATH } from './sign-in.ts';

/** Whether the client accepts HTML, as a browser does when a person opens a page. */
export function acceptsHtml(c: Context<AppEnv>): boolean {
  return /\btext\/html\b/.test(c.req.header('accept') ?? '');
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  429: 'Too many attempts',
  500: 'Internal error',
  503: 'Service unavailable',
};

/** Shows an error as a page, or redirects to the sign-in page if no session is open. */
export async function errorPage(
  c: Context<AppEnv>,
  services: Pick<Services, 'identity' | 'origins'>,
  error: ServiceError,
): Promise<Response> {
  const { status, message, remedy, problems, retryAfterSeconds } = error;
  if (error.code === 'not_authenticated') {
    const back = pageOf(c);
    const next = back === undefined ? '' : `?${new URLSearchParams({ next: back })}`;
    return c.redirect(`${SIGN_IN_PATH}${next}`, 303);
  }
  const session = c.get('session') ?? (await sessionOf(c, services).catch(() => undefined));
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(retryAfterSeconds));
  return page(
    c,
    {
      title: TITLES[status] ?? 'The request failed',
      status: status as NonNullable<Content['status']>,
      body: html`<div class="narrow">
        <p>${sentence(message)}</p>
        ${remedy && html`<p>${sentence(remedy)}</p>`}
        ${
          problems.length > 0 &&
          html`<ul>
            ${problems.map((problem) => html`<li>${problem.message}</li>`)}
          </ul>`
        }
        <p><a href="/console">To the console</a></p>
        <p class="note">Request id in the log of the server: <code>${c.get('request_id')}</code></p>
      </div>`,
    },
    { session },
  );
}

/** The page to return to after signing in: the requested one, or that of the submitted form. */
function pageOf(c: Context<AppEnv>): string | undefined {
  const url = c.req.method === 'GET' ? c.req.url : c.req.header('referer');
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { pathname, search } = new URL(url);
  return pathname + search;
}
