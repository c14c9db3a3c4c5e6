import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';
import { addAdministrator } from '../../../src/identity/administrators.ts';
import type { IdentityStore } from '../../../src/identity/context.ts';
import { newTotpSecret } from '../../../src/identity/totp.ts';
import { openStorage } from '../../../src/storage/storage.ts';
import { startChromium } from '../../chromium.ts';
import { codeAt } from '../../identity/people.ts';
import { serveHere, startServer, type ServerHere } from '../running.ts';
import { isAtLength } from '../../length.ts';
import { newDatabase } from '../../storage/databases.ts';
import { sessionFor } from './visitor.ts';

/** In half the bytes of what `axe-core` is by itself: it goes into every page anew. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Theme = 'light' | 'dark';
export const BOTH_THEMES: readonly Theme[] = ['light', 'dark'];

export const PASSWORD = 'correct horse battery';

/** A server, an administrator of it, and a real browser. */
export interface Desk {
  readonly server: Pick<ServerHere, 'url' | 'env'> & { readonly stop: () => Promise<unknown> };
  /** `http://localhost:…`: under a name, as passkeys need one. */
  readonly url: string;
  /** The one page that there is; this build of the browser ends with it. */
  readonly page: Page;
  /** Works on the server's database, beside it. */
  readonly identity: IdentityStore;
  readonly administrator: Administrator;
  /** Opens a page of the console, such as `/console/account`. */
  readonly open: (path: string) => Promise<void>;
  /** Puts a session into the browser: what signing in does, without its half second. */
  readonly signIn: () => Promise<void>;
  /** Forgets all that the browser keeps. */
  readonly signOut: () => Promise<void>;
  /** What must never be: errors of scripts, what the policy stopped, requests to elsewhere. */
  readonly takeComplaints: () => string[];
  /** What axe finds on the page that is open, by default in light alone; `[]` is as it must be. */
  readonly findBarriers: (themes?: readonly Theme[]) => Promise<string[]>;
  /** Plugs a passkey device with a person's finger on it into the browser. */
  readonly addAuthenticator: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Administrator {
  readonly id: string;
  readonly name: string;
  readonly recoveryCodes: readonly string[];
  /** What the app shows now; good once in 30 s, so use recovery codes but for one of them. */
  readonly code: () => string;
}

/**
 * @param serve `startServer` where pages of bots are opened: their script is made of functions, which
 *   only Node leaves as they are.
 */
export async function openDesk(
  serve: typeof serveHere | typeof startServer = serveHere,
): Promise<Desk> {
  const database = await newDatabase('sqlite');
  const storage = await openStorage(database.location);
  const identity = { storage, clock: Date.now };
  const { secret } = newTotpSecret('ada');
  const { administrator_id, name, recovery_codes } = await addAdministrator(identity, 'ada', {
    password: PASSWORD,
    totp_secret: secret,
    totp_last_step: 0,
  });
  const server = await serve(database);
  const url = server.url.replace('127.0.0.1', 'localhost');
  const browser = await startChromium();
  const page = await browser.newPage();
  let complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== url) complaints.push(`request: ${request.url()}`);
  });
  const context = page.context();
  const open = async (path: string): Promise<void> => {
    await page.goto(url + path);
  };
  return {
    server,
    url,
    page,
    identity,
    administrator: {
      id: administrator_id,
      name,
      recoveryCodes: recovery_codes,
      code: () => codeAt(secret, Date.now()),
    },
    open,
    async signIn() {
      const value = await sessionFor(identity, administrator_id);
      const cookie = { name: 'service-local', value, url };
      await context.addCookies([{ ...cookie, httpOnly: true, sameSite: 'Strict' }]);
    },
    signOut: () => context.clearCookies(),
    takeComplaints() {
      const taken = complaints;
      complaints = [];
      return taken;
    },
    async findBarriers(themes = isAtLength ? BOTH_THEMES : ['light']) {
      const found: string[] = [];
      for (const colorScheme of themes) {
        await page.emulateMedia({ colorScheme });
        // Not by a script element, which the policy of the page would stop.
        if (colorScheme === themes[0]) await page.evaluate(AXE);
        const violations = await page.evaluate(async (isDark) => {
          const { axe: run } = globalThis as unknown as { axe: typeof axe };
          // The themes differ in nothing but colours.
          const colours = { runOnly: ['color-contrast', 'link-in-text-block'] };
          const { violations: all } = await run.run({
            resultTypes: ['violations'],
            ...(isDark && colours),
          });
          return all.map(
            ({ id, impact, nodes }) =>
              `${id} (${impact}): ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
          );
        }, colorScheme === 'dark');
        found.push(...violations.map((violation) => `${colorScheme}: ${violation}`));
      }
      return found;
    },
    async addAuthenticator() {
      const session = await context.newCDPSession(page);
      await session.send('WebAuthn.enable');
      await session.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2',
          transport: 'internal',
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      });
    },
    async close() {
      await browser.close();
      await server.stop();
      await storage.close();
      await database.remove();
    },
  };
}
