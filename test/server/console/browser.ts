import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
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

/** The minified build, because it is sent to every page. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Theme = 'light' | 'dark';
export const BOTH_THEMES: readonly Theme[] = ['light', 'dark'];

export const PASSWORD = 'correct horse battery';

/** A server with an administrator, and a real browser. */
export interface BrowserTest {
  readonly server: Pick<ServerHere, 'url' | 'env'> & { readonly stop: () => Promise<unknown> };
  /** `http://localhost:…`, because passkeys need a host name. */
  readonly url: string;
  /** The only page: closing it ends this build of the browser. */
  readonly page: Page;
  /** Accesses the database of the server directly. */
  readonly identity: IdentityStore;
  readonly administrator: Administrator;
  readonly open: (path: string) => Promise<void>;
  /** Sets the cookie of a new login session, which is faster than the sign-in form. */
  readonly signIn: () => Promise<void>;
  /** Clears all cookies. */
  readonly signOut: () => Promise<void>;
  /**
   * Returns and clears script errors, policy violations, and requests to other origins since the
   * last call.
   */
  readonly takeComplaints: () => string[];
  /** Accessibility faults that axe finds on the open page, by default in the light theme only. */
  readonly findBarriers: (themes?: readonly Theme[]) => Promise<string[]>;
  /** Adds a virtual passkey device that always confirms the user. */
  readonly addAuthenticator: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Administrator {
  readonly id: string;
  readonly name: string;
  readonly recoveryCodes: readonly string[];
  /** The current code, usable once per 30 s; use recovery codes where more are needed. */
  readonly code: () => string;
}

/**
 * @param serve `startServer` for tests of bot pages: only Node leaves the source text of their
 * scripts unchanged.
 */
export async function openBrowser(
  serve: typeof serveHere | typeof startServer = serveHere,
  device: Pick<BrowserContextOptions, 'viewport' | 'hasTouch'> = {},
): Promise<BrowserTest> {
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
  const page = await browser.newPage(device);
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
        // A script element would violate the policy of the page.
        if (colorScheme === themes[0]) await page.evaluate(AXE);
        const violations = await page.evaluate(async (isDark) => {
          const { axe: run } = globalThis as unknown as { axe: typeof axe };
          // The themes differ only in colors.
          const colors = { runOnly: ['color-contrast', 'link-in-text-block'] };
          const { violations: all } = await run.run({
            resultTypes: ['violations'],
            ...(isDark && colors),
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
