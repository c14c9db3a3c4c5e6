import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { openBrowser, type BrowserTest } from './browser.ts';
import { seedFleet } from './fleet.ts';
import { keyboardUser, type KeyboardUser } from './keyboard.ts';

let browser: BrowserTest;
let user: KeyboardUser;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  user = keyboardUser(browser.page);
  const { identity, administrator, server } = browser;
  await seedFleet(identity.storage, Date.now(), 10);
  await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const terms = { label: 'test', scopes: ['write', 'trade', 'halt'], expires_in_seconds: 3600 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'if-match': '*',
    };
    const answer = await fetch(browser.url + path, { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, path);
  };
  for (const slug of ['halted', 'traded']) {
    await send('POST', '/bots', { document: tradingDocument(slug, 'SPX', '1d', 3) });
  }
  await send('PUT', '/bots/traded', { document: tradingDocument('traded', 'SPX', '1d', 5) });
  await send('POST', '/bots/traded/paper/start', { speed: 1 });
  await send('POST', '/bots/halted/halt', { reason: 'a drill' });
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => assert.deepEqual(browser.takeComplaints(), []));

test('the keyboard skips to the content and switches the theme', async () => {
  const { page } = browser;
  await browser.open('/identity/license');
  await user.press('Skip to the content');
  expect(await user.place()).toMatchObject({ tag: 'main' });
  await user.key('Tab');
  expect(await page.evaluate(() => document.activeElement!.closest('main') !== null)).toBe(true);
  await user.goTo('Dark theme', 'back');
  await user.key('Enter');
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
  // The focus stays on the button, whose name is now the other theme.
  expect(await user.place()).toMatchObject({ name: 'Light theme', isSeen: true });
});

test('the keyboard filters and searches licenses', async () => {
  const { page } = browser;
  await browser.open('/identity/license');
  await user.fill('Search', 'fleet-00002');
  await user.goTo(/^State/);
  await user.type('Valid');
  await user.goTo('Silent only');
  await user.key('Space');
  await user.press('Filter');
  await page.waitForURL('**?search=fleet-00002&state=valid&silent=true');
  await user.press('fleet-00002');
  await page.waitForURL('**/deployments/fleet-00002');
  expect(await page.title()).toContain('fleet-00002');
});

test('the keyboard issues a lease', async () => {
  const { page } = browser;
  await browser.open('/identity/license');
  await user.press('Issue a lease');
  await page.waitForURL('**/issue');
  await user.fill('For which installation', 'fleet-00005');
  await user.key('Enter');
  await page.waitForURL('**/issue?search=*');
  await user.press('fleet-00005');
  await page.waitForURL('**/issue?deployment_id=*');
  await user.goTo(/^kb_federation/);
  await user.key('Space');
  await user.fill('Duration', '2d');
  await user.press('Review the lease');
  await page.getByRole('heading', { name: 'Issue this lease?' }).waitFor();
  await user.press('Issue the lease');
  expect(await user.readsMessage('This is the only time')).toBe(true);
  await user.goTo('Download license_lease.json');
});

test('the keyboard creates an enrollment code and revokes an installation', async () => {
  const { page, administrator } = browser;
  await browser.open('/identity/license/deployments/fleet-00007');
  await user.press('Create an enrollment code');
  expect(await user.readsMessage('This code is shown only once.')).toBe(true);
  await user.goTo('Copy the code');
  await user.press('Back to the installation');
  await page.waitForURL('**/deployments/fleet-00007');
  await user.press('Revoke…');
  await page.waitForURL('**/revoke');
  await user.fill('Reason', 'contract canceled');
  await user.fill('Type fleet-00007 to confirm', 'fleet-00008');
  await user.fill(/^Code of your authenticator/, administrator.recoveryCodes[0]!);
  await user.press('Revoke');
  expect(await user.readsMessage('The typed id is not that of the installation')).toBe(true);
  await user.fill('Type fleet-00007 to confirm', 'fleet-00007');
  await user.fill(/^Code of your authenticator/, administrator.recoveryCodes[0]!);
  await user.press('Revoke');
  expect(await user.readsMessage('Revoked: 1 working lease')).toBe(true);
  browser.takeComplaints();
});

test('the keyboard lifts a halt', async () => {
  const { page } = browser;
  await browser.open('/console/bots');
  await user.press('Resume…');
  await page.waitForURL('**/halts');
  await user.press(/^Resume SMA crossover/);
  await user.fill('Reason', 'it was a drill');
  await user.press('Lift the halt');
  expect(await user.readsMessage('is lifted. Nothing was started.')).toBe(true);
});

test('the keyboard moves the event slider and compares versions', async () => {
  const { page } = browser;
  await browser.open('/console/bots/traded/events');
  await user.goTo(/^State after event /);
  await user.key('Home');
  await page.getByRole('heading', { name: 'The state after event 1', exact: true }).waitFor();
  expect(await user.place()).toMatchObject({ name: /^State after event 1 /, isSeen: true });
  await user.press('Versions');
  await page.waitForURL('**/versions');
  await user.fill('From version', '2');
  await user.fill('To version', '1');
  await user.press('Compare');
  await page.getByRole('region', { name: 'Differences between versions 2 and 1' }).waitFor();
  // The form keeps the compared versions and can be reached again.
  await user.goTo('From version');
});

test('the keyboard stops a paper session', async () => {
  await browser.open('/console/tasks');
  await user.press(/^Stop the paper of /);
  expect(await user.readsMessage('is stopping')).toBe(true);
});

test('the keyboard adds a passkey and ends login sessions', async () => {
  const { page, administrator } = browser;
  await browser.addAuthenticator();
  await browser.signIn();
  await browser.open('/console/account');
  await user.press('Add a passkey');
  await user.fill('Name of the new passkey', 'Laptop');
  await user.fill(/^Code of your authenticator/, administrator.recoveryCodes[1]!);
  await user.press('Add a passkey');
  expect(await user.readsMessage('You can now sign in with the passkey Laptop.')).toBe(true);
  await user.press(/^End the session in /);
  expect(await user.readsMessage('The session has ended.')).toBe(true);
  await user.press('Sign out everywhere');
  await page.waitForURL('**/console/sign-in');
  await page.locator('[name=name]:focus').waitFor();
});
