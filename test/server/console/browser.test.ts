import { strict as assert } from 'node:assert';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isAtLength } from '../../length.ts';
import { BOTH_THEMES, openDesk, PASSWORD, type Desk } from './browser.ts';

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk();
});
afterAll(() => desk.close());
afterEach(async () => {
  await desk.signOut();
  assert.deepEqual(desk.takeComplaints(), []);
});

describe('the console in a browser', () => {
  test('signs in with the keyboard alone', async () => {
    const { page, administrator } = desk;
    await desk.open('/console/account');
    await expect(page.title()).resolves.toBe('Sign in · service-local');
    expect(await desk.findBarriers(BOTH_THEMES)).toEqual([]);
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

  test('adds a passkey that signs in and confirms its own deletion', async () => {
    const { page, administrator } = desk;
    await desk.addAuthenticator();
    await desk.signIn();
    await desk.open('/console/account');
    await page.getByText('Add a passkey').first().click();
    await page.getByLabel('Name of the new passkey').fill('<b>Laptop</b> & "more"');
    await page.getByLabel('Code of your authenticator').fill(administrator.recoveryCodes[0]!);
    expect(await desk.findBarriers()).toEqual([]);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('You can now sign in with the passkey').waitFor();
    if (isAtLength) assert.deepEqual(await desk.findBarriers(), []);

    await page.getByRole('button', { name: /^Sign out ada/ }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.waitForURL('**/identity/license');
    desk.takeComplaints();

    await desk.open('/console/account');
    await page.getByRole('link', { name: '<b>Laptop</b> & "more"' }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await desk.findBarriers()).toEqual([]);
    await page.getByRole('button', { name: 'Use a passkey instead' }).click();
    await page.getByText('is deleted').waitFor();
    await page.getByText('You have no passkeys.').waitFor();
  });

  test('ends every login session on signing out everywhere', async () => {
    const { page } = desk;
    await desk.signIn();
    const [other] = await page.context().cookies();
    await desk.signIn();
    await desk.open('/console/account');
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.waitForURL('**/console/sign-in');
    await page.context().addCookies([other!]);
    await desk.open('/console/account');
    expect(page.url()).toContain('/console/sign-in');
  });

  test('keeps the selected theme on the next page', async () => {
    const { page } = desk;
    await page.emulateMedia({ colorScheme: 'light' });
    await desk.open('/console/sign-in');
    await page.getByRole('button', { name: 'Dark theme' }).click();
    await desk.open('/console/sign-in');
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(paper).toBe('rgb(20, 23, 28)');
    await page.getByRole('button', { name: 'Light theme' }).click();
    expect(await page.locator('html').getAttribute('data-theme')).toBe('light');
  });

  test.each(isAtLength ? [360, 2560] : [360])(
    'fits every page into a window of %s px',
    async (width) => {
      const { page } = desk;
      await desk.signIn();
      await page.setViewportSize({ width, height: 800 });
      for (const path of ['/console/account', '/console/sign-in', '/console/nothing']) {
        await desk.open(path);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(wide).toBeLessThanOrEqual(width);
      }
      desk.takeComplaints();
    },
  );
});
