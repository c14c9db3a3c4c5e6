import type { Context } from 'hono';
import { html } from 'hono/html';
import type { ServiceError } from '../../base/errors.ts';
import type { AppEnv, Services } from '../services.ts';
import { sessionOf } from '../session-cookie.ts';
import { page, sentence, type Content } from './layout.ts';
import { SIGN_IN_PATH } from './sign-in.ts';

/** Whether it is a person who waits for the answer, in a browser. */
export function isForPerson(c: Context<AppEnv>): boolean {
  return /\btext\/html\b/.test(c.req.header('accept') ?? '');
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'That cannot be',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Not possible here',
  429: 'Too many tries',
  500: 'Something broke',
  503: 'Not possible now',
};

/** What went wrong, as a page; or the page to sign in on, where that is what is missing. */
export async function errorPage(
  c: Context<AppEnv>,
  services: Pick<Services, 'identity' | 'origins'>,
  error: ServiceError,
): Promise<Response> {
  const { status, message, remedy, problems, retryAfterSeconds } = error;
  if (error.code === 'not_authenticated') {
    const { pathname, search } = new URL(c.req.url);
    const next =
      c.req.method === 'GET' ? `?${new URLSearchParams({ next: pathname + search })}` : '';
    return c.redirect(`${SIGN_IN_PATH}${next}`, 303);
  }
  const session = c.get('session') ?? (await sessionOf(c, services).catch(() => undefined));
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(retryAfterSeconds));
  return page(
    c,
    {
      title: TITLES[status] ?? 'That did not work',
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
        <p class="note">
          In the log of the server this is request <code>${c.get('request_id')}</code>.
        </p>
      </div>`,
    },
    { session },
  );
}
