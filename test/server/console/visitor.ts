import type { IdentityStore } from '../../../src/identity/context.ts';
import { openSession } from '../../../src/identity/login-sessions.ts';
import { newPerson, type Person } from '../../identity/people.ts';
import { PUBLIC_URL, type TestApp } from '../in-process.ts';

/** Name of the session cookie at `PUBLIC_URL`. */
export const COOKIE = '__Host-service-local';

/** A browser without a screen: it keeps cookies and sends the headers of a browser. */
export interface Visitor {
  readonly cookies: Map<string, string>;
  /** Follows a link, but not a redirect. */
  readonly open: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** Submits a form, by default with the CSRF token of the session. */
  readonly submit: (
    path: string,
    fields?: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer>;
  /** Sends a request as a script of a page, by default with the CSRF token of the session. */
  readonly fetch: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer>;
  /** The CSRF token in the pages of the session; empty without a session. */
  readonly csrf: () => Promise<string>;
  /** Submits the sign-in form with the right password and the next code. */
  readonly signIn: (person: Person, next?: string) => Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Target of a redirect, else null. */
  readonly location: string | null;
}

const HTML = { accept: 'text/html,application/xhtml+xml' };

export function newVisitor(server: Pick<TestApp, 'app'>): Visitor {
  const cookies = new Map<string, string>();
  const send = async (
    path: string,
    init: { method?: string; body?: string; headers: Readonly<Record<string, string>> },
  ): Promise<Answer> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await server.app.request(PUBLIC_URL + path, {
      ...init,
      headers: { 'user-agent': 'Firefox/1 Linux', ...(cookie && { cookie }), ...init.headers },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/max-age=0/i.test(line)) cookies.delete(name!);
      else cookies.set(name!, value!);
    }
    const { status, headers } = answer;
    return { status, headers, text: await answer.text(), location: headers.get('location') };
  };
  const own = { origin: PUBLIC_URL, 'sec-fetch-site': 'same-origin' };
  const visitor: Visitor = {
    cookies,
    open: (path, headers) => send(path, { headers: { ...HTML, ...headers } }),
    async submit(path, fields = {}, headers = {}) {
      const body = new URLSearchParams({ csrf: await visitor.csrf(), ...fields });
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      return send(path, {
        method: 'POST',
        body: body.toString(),
        headers: { ...HTML, ...own, ...type, ...headers },
      });
    },
    async fetch(method, path, body, headers = {}) {
      return send(path, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        headers: {
          ...own,
          'service-csrf': await visitor.csrf(),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
      });
    },
    async csrf() {
      const { text } = await visitor.open('/console/account');
      return /name="csrf-token" content="([^"]*)"/.exec(text)?.[1] ?? '';
    },
    async signIn(person, next = '') {
      const { name, password, code } = person.credentials();
      return visitor.submit('/console/sign-in', { name, password, code, next });
    },
  };
  return visitor;
}

/** Somebody new in a browser of his own, signed in; without the form, as checking passwords is slow. */
export async function newSignedIn(server: TestApp): Promise<{ person: Person; visitor: Visitor }> {
  const { identity } = server.services;
  const person = await newPerson(identity, (ms) => (server.now += ms));
  const visitor = newVisitor(server);
  visitor.cookies.set(COOKIE, await sessionFor(identity, person.id));
  return { person, visitor };
}

/** Opens a login session without the sign-in form and returns the value of its cookie. */
export async function sessionFor(
  { storage, clock }: IdentityStore,
  administratorId: string,
): Promise<string> {
  const browser = { user_agent: 'Firefox/1 Linux', address: '192.0.2.1' };
  return storage.write((tx) => openSession(tx, clock(), administratorId, 'password', browser));
}
