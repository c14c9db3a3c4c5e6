import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { isAtLength } from '../../length.ts';
import { openDesk, type Desk } from './browser.ts';
import { seedFleet } from './fleet.ts';
import { handsOn, type Hands } from './keyboard.ts';

let desk: Desk;
let hands: Hands;

beforeAll(async () => {
  desk = await openDesk(startServer);
  hands = handsOn(desk.page);
  const { identity, administrator, server } = desk;
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
    const answer = await fetch(desk.url + path, { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, path);
  };
  for (const slug of ['halted', 'traded']) {
    await send('POST', '/bots', { document: tradingDocument(slug, 'SPX', '1d', 3) });
  }
  await send('PUT', '/bots/traded', { document: tradingDocument('traded', 'SPX', '1d', 5) });
  await send('POST', '/bots/traded/paper/start', { speed: 1 });
  await send('POST', '/bots/halted/halt', { reason: 'a drill' });
  await desk.signIn();
}, 30_000);
afterAll(() => desk.close());
afterEach(() => assert.deepEqual(desk.takeComplaints(), []));

test('the keyboard skips to the content and switches the theme', async () => {
  const { page } = desk;
  await desk.open('/identity/license');
  await hands.press('Skip to the content');
  expect(await hands.place()).toMatchObject({ tag: 'main' });
  await hands.key('Tab');
  expect(await page.evaluate(() => document.activeElement!.closest('main') !== null)).toBe(true);
  await hands.goTo('Dark theme', 'back');
  await hands.key('Enter');
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
  // The focus stays on the button, whose name is now the other theme.
  expect(await hands.place()).toMatchObject({ name: 'Light theme', isSeen: true });
});

test('the keyboard filters and searches licenses', async () => {
  const { page } = desk;
  await desk.open('/identity/license');
  await hands.fill('Search', 'fleet-00002');
  await hands.goTo(/^State/);
  await hands.type('Valid');
  await hands.goTo('Silent only');
  await hands.key('Space');
  await hands.press('Filter');
  await page.waitForURL('**?search=fleet-00002&state=valid&silent=true');
  await hands.press('fleet-00002');
  await page.waitForURL('**/deployments/fleet-00002');
  expect(await page.title()).toContain('fleet-00002');
});

test.runIf(isAtLength)('the keyboard issues a lease', async () => {
  const { page } = desk;
  await desk.open('/identity/license');
  await hands.press('Issue a lease');
  await page.waitForURL('**/issue');
  await hands.fill('For which installation', 'fleet-00005');
  await hands.key('Enter');
  await page.waitForURL('**/issue?search=*');
  await hands.press('fleet-00005');
  await page.waitForURL('**/issue?deployment_id=*');
  await hands.goTo(/^kb_federation/);
  await hands.key('Space');
  await hands.fill('Duration', '2d');
  await hands.press('Review the lease');
  await page.getByRole('heading', { name: 'Issue this lease?' }).waitFor();
  await hands.press('Issue the lease');
  expect(await hands.hears('This is the only time')).toBe(true);
  await hands.goTo('Download license_lease.json');
});

test('the keyboard creates an enrollment code and revokes an installation', async () => {
  const { page, administrator } = desk;
  await desk.open('/identity/license/deployments/fleet-00007');
  await hands.press('Create an enrollment code');
  expect(await hands.hears('This code is shown only once.')).toBe(true);
  await hands.goTo('Copy the code');
  await hands.press('Back to the installation');
  await page.waitForURL('**/deployments/fleet-00007');
  await hands.press('Revoke…');
  await page.waitForURL('**/revoke');
  await hands.fill('Reason', 'contract canceled');
  await hands.fill('Type fleet-00007 to confirm', 'fleet-00008');
  await hands.fill(/^Code of your authenticator/, administrator.recoveryCodes[0]!);
  await hands.press('Revoke');
  expect(await hands.hears('The typed id is not that of the installation')).toBe(true);
  await hands.fill('Type fleet-00007 to confirm', 'fleet-00007');
  await hands.fill(/^Code of your authenticator/, administrator.recoveryCodes[0]!);
  await hands.press('Revoke');
  expect(await hands.hears('Revoked: 1 working lease')).toBe(true);
  desk.takeComplaints();
});

test('the keyboard lifts a halt', async () => {
  const { page } = desk;
  await desk.open('/console/bots');
  await hands.press('Resume…');
  await page.waitForURL('**/halts');
  await hands.press(/^Resume SMA crossover/);
  await hands.fill('Reason', 'it was a drill');
  await hands.press('Lift the halt');
  expect(await hands.hears('is lifted. Nothing was started.')).toBe(true);
});

test('the keyboard moves the event slider and compares versions', async () => {
  const { page } = desk;
  await desk.open('/console/bots/traded/events');
  await hands.goTo(/^State after event /);
  await hands.key('Home');
  await page.getByRole('heading', { name: 'The state after event 1', exact: true }).waitFor();
  expect(await hands.place()).toMatchObject({ name: /^State after event 1 /, isSeen: true });
  await hands.press('Versions');
  await page.waitForURL('**/versions');
  await hands.fill('From version', '2');
  await hands.fill('To version', '1');
  await hands.press('Compare');
  await page.getByRole('region', { name: 'Differences between versions 2 and 1' }).waitFor();
  // The form keeps the compared versions and can be reached again.
  await hands.goTo('From version');
});

test('the keyboard stops a paper session', async () => {
  await desk.open('/console/tasks');
  await hands.press(/^Stop the paper of /);
  expect(await hands.hears('is stopping')).toBe(true);
});

test.runIf(isAtLength)('the keyboard adds a passkey and ends login sessions', async () => {
  const { page, administrator } = desk;
  await desk.addAuthenticator();
  await desk.signIn();
  await desk.open('/console/account');
  await hands.press('Add a passkey');
  await hands.fill('Name of the new passkey', 'Laptop');
  await hands.fill(/^Code of your authenticator/, administrator.recoveryCodes[1]!);
  await hands.press('Add a passkey');
  expect(await hands.hears('You can now sign in with the passkey Laptop.')).toBe(true);
  await hands.press(/^End the session in /);
  expect(await hands.hears('The session has ended.')).toBe(true);
  await hands.press('Sign out everywhere');
  await page.waitForURL('**/console/sign-in');
  await page.locator('[name=name]:focus').waitFor();
});
