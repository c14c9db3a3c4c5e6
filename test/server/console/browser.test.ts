import { strict as assert } from 'node:assert';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isAtLength } from '../../length.ts';
import { BOTH_THEMES, openBrowser, PASSWORD, type BrowserTest } from './browser.ts';

let browser: BrowserTest;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());
afterEach(async () => {
  await browser.signOut();
  assert.deepEqual(browser.takeComplaints(), []);
});

describe('the console in a browser', () => {
  test('signs in with the keyboard alone', async () => {
    const { page, administrator } = browser;
    await browser.open('/console/account');
    await expect(page.title()).resolves.toBe('Sign in · service-local');
    expect(await browser.findBarriers(BOTH_THEMES)).toEqual([]);
    const { keyboard } = page;
    await page.evaluate(() => document.querySelector<HTMLElement>(':focus')?.blur());
    const focused = (): Promise<string> =>
      page.evaluate(() => {
        const { activeElement: element } = document;
        return element?.getAttribute('name') ?? element?.textContent.trim() ?? '';
      });
    await page.reload();
    await page.locator('[name=name]:focus').waitFor();
    await keyboard.type(administrator.name);
    await keyboard.press('Tab');
    await keyboard.type(PASSWORD);
    await keyboard.press('Tab');
    expect(await focused()).toBe('code');
    await keyboard.type(administrator.code());
    await keyboard.press('Enter');
    await page.waitForURL('**/console/account');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
  });

  test.runIf(isAtLength)('adds a passkey that signs in and confirms its own deletion', async () => {
    const { page, administrator } = browser;
    await browser.addAuthenticator();
    await browser.signIn();
    await browser.open('/console/account');
    await page.getByText('Add a passkey').first().click();
    await page.getByLabel('Name of the new passkey').fill('<b>Laptop</b> & "more"');
    await page.getByLabel('Code of your authenticator').fill(administrator.recoveryCodes[0]!);
    expect(await browser.findBarriers()).toEqual([]);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('You can now sign in with the passkey').waitFor();
    if (isAtLength) assert.deepEqual(await browser.findBarriers(), []);

    await page.getByRole('button', { name: /^Sign out ada/ }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.waitForURL('**/console');
    browser.takeComplaints();

    await browser.open('/console/account');
    await page.getByRole('link', { name: '<b>Laptop</b> & "more"' }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await browser.findBarriers()).toEqual([]);
    await page.getByRole('button', { name: 'Use a passkey instead' }).click();
    await page.getByText('is deleted').waitFor();
    await page.getByText('You have no passkeys.').waitFor();
  });

  test.runIf(isAtLength)('ends every login session on signing out everywhere', async () => {
    const { page } = browser;
    await browser.signIn();
    const [other] = await page.context().cookies();
    await browser.signIn();
    await browser.open('/console/account');
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.waitForURL('**/console/sign-in');
    await page.context().addCookies([other!]);
    await browser.open('/console/account');
    expect(page.url()).toContain('/console/sign-in');
  });

  test.runIf(isAtLength)('keeps the selected theme on the next page', async () => {
    const { page } = browser;
    await page.emulateMedia({ colorScheme: 'light' });
    await browser.open('/console/sign-in');
    await page.getByRole('button', { name: 'Dark theme' }).click();
    await browser.open('/console/sign-in');
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(paper).toBe('rgb(20, 23, 28)');
    await page.getByRole('button', { name: 'Light theme' }).click();
    expect(await page.locator('html').getAttribute('data-theme')).toBe('light');
  });

  test.each(isAtLength ? [360, 2560] : [360])(
    'fits every page into a window of %s px',
    async (width) => {
      const { page } = browser;
      await browser.signIn();
      await page.setViewportSize({ width, height: 800 });
      for (const path of ['/console/account', '/console/sign-in', '/console/nothing']) {
        await browser.open(path);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(wide).toBeLessThanOrEqual(width);
      }
      browser.takeComplaints();
    },
  );
});
