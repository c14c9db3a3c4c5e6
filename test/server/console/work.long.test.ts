import { strict as assert } from 'node:assert';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { appendEvents } from '../../../src/events/append.ts';
import { addToken } from '../../../src/identity/tokens.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { openBrowser, PASSWORD, type BrowserTest } from './browser.ts';

let browser: BrowserTest;
let bot_id: string;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  const { identity, administrator } = browser;
  const terms = { label: 'test', scopes: ['read', 'write'], expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  const answer = await fetch(`${browser.url}/bots`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ document: tradingDocument('crossover', 'SPX', '1d', 2) }),
  });
  assert.ok(answer.ok);
  ({ id: bot_id } = (await answer.json()) as { readonly id: string });
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

describe('the console', () => {
  test('keeps what was typed when the session has ended, but no secret', async () => {
    const { page, administrator } = browser;
    await browser.open('/console/bots/crossover/halt');
    await page.getByLabel('Reason').fill('it buys too much');
    await browser.signOut();
    await page.getByRole('button', { name: 'Halt this bot' }).click();
    await page.waitForURL('**/console/sign-in?**');
    // The page may have looked for new alerts before.
    browser.takeComplaints();
    const kept = await page.evaluate(() => sessionStorage.getItem('typed'));
    expect(kept).toContain('it buys too much');
    expect(kept).not.toContain('csrf');
    await page.getByLabel('Name').fill(administrator.name);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByLabel('Code').fill(administrator.code());
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL('**/console/bots/crossover/halt');
    expect(await page.getByLabel('Reason').inputValue()).toBe('it buys too much');
    expect(await page.evaluate(() => sessionStorage.getItem('typed'))).toBeNull();
    browser.takeComplaints();
    await page.reload();
    expect(await page.getByLabel('Reason').inputValue()).toBe('');
  });

  test('opens pages and bots with the keyboard', async () => {
    const { page } = browser;
    const { keyboard } = page;
    await browser.open('/console');
    await keyboard.press('Control+k');
    await page.getByRole('option', { name: 'crossover' }).waitFor();
    expect(await browser.findBarriers()).toEqual([]);
    await keyboard.type('crossov');
    await page.getByRole('option', { name: 'Overview' }).waitFor({ state: 'detached' });
    await page.getByRole('option', { name: 'crossover' }).waitFor();
    await keyboard.press('Enter');
    await page.waitForURL('**/console/bots/crossover');
    await keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    expect(await browser.findBarriers()).toEqual([]);
    await keyboard.press('Escape');
    await keyboard.press('g');
    await keyboard.press('t');
    await page.waitForURL('**/console/tasks');
  });

  test('shows an alert of any bot on every page, once', async () => {
    const { page, identity } = browser;
    await browser.open('/console/account');
    await page.waitForFunction(() => sessionStorage.getItem('alerts-seen') !== null);
    const now = Date.now();
    const payload = { control: 'max_order_qty', severity: 'critical', event_seq: 1, count: 1 };
    await identity.storage.write((tx) =>
      appendEvents(tx, bot_id, now, [
        { kind: 'alert.raised', version: 1, occurred_at: now, payload },
      ]),
    );
    const toast = page.locator('.toast', { hasText: 'max order qty' });
    await toast.waitFor();
    expect(await toast.getByRole('link').getAttribute('href')).toContain('/events?at_seq=');
    expect(await browser.findBarriers()).toEqual([]);
    await browser.open('/console');
    await page.getByText('1 critical alert').waitFor();
    const polled = await page.waitForResponse('**/alerts?limit=10');
    expect(polled.status()).toBe(200);
    expect(await toast.count()).toBe(0);
    expect(await browser.findBarriers()).toEqual([]);
  });

  test('shows the start page on a phone without scrolling sideways', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 360, height: 780 });
    await browser.open('/console?show=all');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.setViewportSize({ width: 1280, height: 720 });
  });
});
