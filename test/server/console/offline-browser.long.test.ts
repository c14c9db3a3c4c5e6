import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { startAgain, startServer, type RunningServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

let browser: BrowserTest;
let server: RunningServer;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  server = browser.server as RunningServer;
  const { identity, administrator } = browser;
  await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const terms = { label: 'test', scopes: ['write', 'trade'], expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  const send = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(browser.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.ok(answer.ok, path);
  };
  await send('/bots', { document: tradingDocument('watched', 'SPX', '1d', 3) });
  await send('/bots/watched/paper/start', { speed: 86_400 });
  await browser.signIn();
});
afterAll(async () => {
  await server.stop();
  await browser.close();
});

const banner = () => browser.page.locator('.offline');
/** Simulates a return to the tab, which triggers a check. */
const lookNow = () =>
  browser.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
/** Buttons that need the server. */
const enabled = () =>
  browser.page
    .locator('button:enabled:not(#theme, [data-copy], #charts figure button, dialog button)')
    .count();

describe('when the server stops answering', () => {
  test.each(['/console/bots/watched', '/console/bots'])(
    '%s shows a banner, disables its buttons, and recovers by itself',
    async (path) => {
      const { page } = browser;
      await browser.open(path);
      if (path.endsWith('watched'))
        await page.locator('#connection', { hasText: 'live' }).waitFor();
      const before = await enabled();
      expect(before).toBeGreaterThan(0);
      expect(await banner().count()).toBe(0);

      await server.kill();
      await lookNow();
      await banner().waitFor();
      expect(await banner().getAttribute('role')).toBe('alert');
      expect(await banner().textContent()).toMatch(/has not answered since \d\d:\d\d:\d\d UTC/);
      const box = await banner().boundingBox();
      expect(box!.y + box!.height).toBeLessThan(page.viewportSize()!.height / 2);
      expect(await enabled()).toBe(0);
      for (const mark of await page.locator('main .stale').allTextContents()) {
        expect(mark).toMatch(/^As of \d\d:\d\d:\d\d UTC, \d+ s ago$/);
      }
      const sections = await page.locator('main section').count();
      expect(await page.locator('.stale').count()).toBe(Math.max(1, sections));
      const halt = page.locator('header a.button', { hasText: 'Halt all' });
      expect(await halt.getAttribute('aria-disabled')).toBe('true');
      expect(await halt.textContent()).toBe('Halt all: cannot act');
      await halt.click({ force: true });
      expect(new URL(page.url()).pathname).toBe(path);

      expect(await browser.findBarriers()).toEqual([]);

      server = await startAgain(server);
      await banner().waitFor({ state: 'detached' });
      await page.locator('.stale').first().waitFor({ state: 'detached' });
      expect(await enabled()).toBe(before);
      // Requests failed while the server was stopped.
      browser.takeComplaints();
    },
  );

  test('a server that accepts connections but never answers is noticed within 5 s', async () => {
    const { page } = browser;
    await browser.open('/console/bots/watched/halt');
    await page.evaluate(() => {
      const at = globalThis as unknown as { hungAt: number; noticed: Promise<number> };
      at.hungAt = performance.now();
      at.noticed = new Promise((resolve) => {
        new MutationObserver(() => {
          if (document.querySelector('.offline')) resolve(performance.now() - at.hungAt);
        }).observe(document.body, { childList: true });
      });
    });
    await page.route('**/readyz', () => new Promise(() => {}));
    const took = await page.evaluate(
      () => (globalThis as unknown as { noticed: Promise<number> }).noticed,
    );
    expect(took).toBeLessThan(5000);
    await page.unroute('**/readyz');
    await banner().waitFor({ state: 'detached' });
    browser.takeComplaints();
  });

  test('a form keeps what the user has typed', async () => {
    const { page } = browser;
    await browser.open('/console/bots/watched/halt');
    const reason = page.locator('main input[name=reason], main textarea[name=reason]').first();
    await reason.fill('it buys too much');
    await server.kill();
    await lookNow();
    await banner().waitFor();
    server = await startAgain(server);
    await banner().waitFor({ state: 'detached' });
    expect(await reason.inputValue()).toBe('it buys too much');
    browser.takeComplaints();
  });
});
