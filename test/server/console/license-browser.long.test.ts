import { strict as assert } from 'node:assert';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createContract } from '../../../src/identity/contracts.ts';
import { createInstallation } from '../../../src/identity/installations.ts';
import { inProcess } from '../../cli/in-process.ts';
import { USUAL_POLICY } from '../../identity/policy.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { openBrowser, type BrowserTest } from './browser.ts';
import { seedFleet } from './fleet.ts';

const FLEET = 10_000;
const DAY = 86_400_000;

let browser: BrowserTest;
let directory: string;
beforeAll(async () => {
  browser = await openBrowser();
  directory = await mkdtemp(join(tmpdir(), 'service-local-license-browser-'));
  await seedFleet(browser.identity.storage, Date.now(), 10);
  const signer = new ServiceError('license_lease_unavailable', 'not used in this test');
  const identity = { ...browser.identity, policy: USUAL_POLICY, signer };
  const contract = { contract_id: 'short', customer_id: 'acme', plan_id: 'pro' };
  const ends_at = Math.floor(Date.now() / 1000) * 1000 + 20 * DAY;
  await createContract(identity, 'operator', { ...contract, ends_at });
  for (const deployment_id of ['tokyo', 'osaka']) {
    const installation = { deployment_id, contract_id: 'short', name: deployment_id };
    await createInstallation(identity, 'operator', installation);
  }
  await browser.signIn();
}, 60_000);
afterAll(async () => {
  await browser.close();
  await rm(directory, { recursive: true });
});
afterEach(() => assert.deepEqual(browser.takeComplaints(), []));

test('a lease issued and downloaded with the keyboard verifies in the CLI', async () => {
  const { page, server } = browser;
  const { keyboard } = page;
  await browser.open('/identity/license');
  await page.getByRole('link', { name: 'Issue a lease' }).focus();
  await keyboard.press('Enter');
  await page.getByLabel('For which installation').focus();
  await keyboard.type('tok');
  await keyboard.press('Enter');
  await page.getByRole('link', { name: 'tokyo' }).focus();
  await keyboard.press('Enter');
  await page.getByRole('checkbox', { name: 'kb_federation' }).focus();
  await keyboard.press('Space');
  await keyboard.press('Tab');
  await keyboard.press('Tab');
  await keyboard.type('60d');
  expect(await browser.findBarriers()).toEqual([]);
  await keyboard.press('Enter');
  await page.getByText('instead of 60 days, as the contract ends then').waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await page.getByRole('button', { name: 'Issue the lease' }).focus();
  await keyboard.press('Enter');
  await page.getByText('This is the only time').waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download license_lease.json' }).press('Enter'),
  ]);
  expect(download.suggestedFilename()).toBe('license_lease.json');
  const lease = join(directory, 'license_lease.json');
  await download.saveAs(lease);

  const context = { cwd: directory, env: { ...server.env, HOME: directory } };
  const keys = await fetch(`${server.url}/.well-known/license-keys.json`);
  await writeFile(join(directory, 'keys.json'), await keys.text());
  const verified = await inProcess(
    ['license', 'verify', lease, '--keyset', 'keys.json', '--json'],
    context,
  );
  expect(verified).toMatchObject({ code: 0 });
  expect(JSON.parse(verified.stdout)).toMatchObject({
    claims: { deployment_id: 'tokyo', entitlements: ['live_trading'] },
  });
  // The signed lease does not appear on any later page.
  const [, payload] = /"payload":"([^"]+)"/.exec(await readFile(lease, 'utf8'))!;
  await browser.open('/identity/license/deployments/tokyo');
  expect(await page.content()).not.toContain(payload);
  expect(await page.locator('[aria-label="Leases of this installation"] tbody tr').count()).toBe(1);
  browser.takeComplaints();
});

test('revoking an installation requires its id and an unused factor', async () => {
  const { page, administrator } = browser;
  await browser.open('/identity/license/deployments/fleet-00007/revoke');
  const send = async (confirm: string, code: string): Promise<void> => {
    await page.getByLabel('Reason').fill('contract <b>canceled</b>');
    await page.getByLabel('Type fleet-00007 to confirm').fill(confirm);
    await page.getByLabel('Code of your authenticator').fill(code);
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  };
  const [code, another] = administrator.recoveryCodes.slice(1) as [string, string];
  await send('fleet-00008', code);
  await page.getByText('The typed id is not that of the installation').waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute('role'))).toBe('alert');
  await send('fleet-00007', code);
  await page.getByText('Revoked: 1 working lease of fleet-00007').waitFor();
  await page.getByText('contract <b>canceled</b>').first().waitFor();
  assert.deepEqual(await browser.findBarriers(), []);
  await page.getByRole('button', { name: 'Reinstate' }).click();
  await page.getByText('This reverses the revocation').waitFor();
  assert.deepEqual(await browser.findBarriers(), []);
  await page.getByLabel('Code of your authenticator app').fill(administrator.recoveryCodes[4]!);
  await page.getByRole('button', { name: 'Reinstate an installation' }).click();
  await page.getByText('can get leases again').waitFor();

  // The used code is rejected, and another one is accepted.
  await browser.open('/identity/license/deployments/fleet-00007/revoke');
  await send('fleet-00007', code);
  await page.getByText('The code is wrong or was used before').waitFor();
  await send('fleet-00007', another);
  await page.getByText('Revoked: 1 working lease of fleet-00007').waitFor();
  browser.takeComplaints();
});

test('a passkey confirms a revocation for its own target, before it expires, and once', async () => {
  const { page, administrator, identity } = browser;
  await browser.addAuthenticator();
  await browser.open('/console/account');
  await page.getByText('Add a passkey').first().click();
  await page.getByLabel('Name of the new passkey').fill('Laptop');
  await page.getByLabel('Code of your authenticator').fill(administrator.recoveryCodes[3]!);
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('You can now sign in with the passkey').waitFor();

  const fill = async (): Promise<void> => {
    await browser.open('/identity/license/deployments/fleet-00008/revoke');
    await page.getByLabel('Reason').fill('unpaid');
    await page.getByLabel('Type fleet-00008 to confirm').fill('fleet-00008');
  };
  const confirm = () => page.getByRole('button', { name: 'Use a passkey instead' }).click();
  await fill();
  await page.locator('[data-passkey=step-up]').evaluate((fields) => {
    (fields as HTMLElement).dataset['target'] = 'deployment:fleet-00009';
  });
  await confirm();
  await page.getByRole('alert').filter({ hasText: /\w/ }).first().waitFor();
  expect(page.url()).toContain('/revoke');

  // The challenge expires before the user confirms.
  await fill();
  await page.route('**/revoke', async (route) => {
    await identity.storage.write((tx) =>
      tx.updateTable('challenges').set({ expires_at: 1 }).execute(),
    );
    await route.continue();
  });
  await confirm();
  await page.getByRole('alert').filter({ hasText: /\w/ }).first().waitFor();
  await page.unroute('**/revoke');
  const license = await identity.storage.read
    .selectFrom('deployments')
    .select('revoked_at')
    .where('deployment_id', '=', 'fleet-00008')
    .executeTakeFirstOrThrow();
  expect(license.revoked_at).toBeNull();

  await fill();
  const [request] = await Promise.all([
    page.waitForRequest((sent) => sent.method() === 'POST' && sent.url().endsWith('/revoke')),
    confirm(),
  ]);
  await page.getByText('Revoked: 1 working lease of fleet-00008').waitFor();
  // An attacker who captured the form submits it again.
  const again = await page.evaluate(
    async ([url, body]) => {
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      const answer = await fetch(url!, { method: 'POST', headers: type, body: body! });
      return { status: answer.status, text: await answer.text() };
    },
    [request.url(), request.postData()],
  );
  expect(again.status).toBe(401);
  browser.takeComplaints();
});

test('license pages have no accessibility faults and fit the window', async () => {
  const { page } = browser;
  for (const path of [
    '/identity/license',
    '/identity/license/deployments/fleet-00002',
    '/identity/license/leases/0198c0de-0000-7000-8000-000000000002',
    '/identity/license/leases/0198c0de-0000-7000-8000-000000000002/revoke',
    '/identity/license/keys',
    '/identity/license/devices',
    '/identity/license/customers',
    '/console/audit',
    '/console/audit/verification',
    // These resemble pages checked above.
    '/identity/license?state=none&search=nothing',
    '/identity/license/issue',
  ]) {
    await browser.open(path);
    expect({ path, barriers: await browser.findBarriers() }).toEqual({ path, barriers: [] });
    for (const width of [360, 2560]) {
      await page.setViewportSize({ width, height: 300 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect({ path, wide }).toEqual({ path, wide: width });
    }
  }
});

test('license pages stay below 150 KiB with thousands of leases', async () => {
  const { page } = browser;
  await seedFleet(browser.identity.storage, Date.now(), FLEET, 10);
  const measured: string[] = [];
  for (const path of [
    '/identity/license',
    '/identity/license?state=none',
    '/identity/license?search=nothing',
    '/identity/license/keys',
    '/console/audit',
  ]) {
    await browser.open(path);
    await page.waitForFunction(() => performance.getEntriesByType('paint').length > 0);
    const { paint, size } = await page.evaluate(() => {
      const [navigation] = performance.getEntriesByType(
        'navigation',
      ) as PerformanceNavigationTiming[];
      const [first] = performance.getEntriesByName('first-contentful-paint');
      return { paint: first?.startTime ?? Number.NaN, size: navigation!.decodedBodySize };
    });
    measured.push(`${path}: ${Math.round(paint)} ms, ${Math.round(size / 1024)} KiB`);
    expect(size).toBeLessThan(150 * 1024);
  }
  console.info(`first contentful paint with ${FLEET} leases\n${measured.join('\n')}`);
});
