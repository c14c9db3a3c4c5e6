import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

let browser: BrowserTest;
let authorization: string;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  const { identity, administrator, server } = browser;
  await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const terms = { label: 'test', scopes: ['read', 'write', 'trade'], expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  authorization = `Bearer ${token}`;
  for (const slug of ['live', 'ended']) {
    await send('/bots', { document: tradingDocument(slug, 'SPX', '1d', 2) });
  }
  await send('/bots/live/paper/start', { speed: 6 * 86_400, from: '2000-02-01' });
  await send('/bots/ended/paper/start', { speed: 'max', to: '2000-06-30' });
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

async function send(path: string, body: object): Promise<void> {
  const answer = await fetch(browser.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
}

/** Opens the page of a bot whose session has closed a trade. */
async function openBot(slug: string): Promise<void> {
  const { page } = browser;
  await browser.open(`/console/bots/${slug}`);
  await page.locator('#prices canvas').first().waitFor();
  await page.locator('#trades-rows td.number.good').first().waitFor({ timeout: 30_000 });
}

/** Asks beside the charts, and waits for the stored answer. @returns its text. */
async function ask(question: string): Promise<string> {
  const { page } = browser;
  const box = page.locator('#talk');
  if ((await box.getAttribute('open')) === null) await page.locator('#talk > summary').click();
  const turns = page.locator('#talk .turns > li[id]');
  const before = await turns.count();
  await page.locator('#prompt').fill(question);
  await page.locator('#prompt').press('Enter');
  await turns.nth(before).locator('.sources').waitFor();
  return turns.nth(before).locator('.answer').innerText();
}

const readingsOf = (id: string) => browser.page.locator(`figure:has(#${id}) .readings`);

describe('the chat beside the charts of a bot', () => {
  test('answers about the session that runs, and its sources move the charts', async () => {
    const { page } = browser;
    await openBot('live');
    expect(await ask('What was the first trade?')).toMatch(/in the paper session .* so far/);
    const [prices, box] = await Promise.all(
      ['#prices', '#talk'].map(async (id) => (await page.locator(id).boundingBox())!),
    );
    expect(box!.x).toBeGreaterThan(prices!.x + prices!.width - 1);
    expect(new URL(page.url()).searchParams.get('talk')).toMatch(/^[\da-f-]{36}$/);

    const trade = page.locator('#talk a.source[data-symbol]').first();
    const exit = (await trade.getAttribute('data-to'))!;
    await trade.click();
    await readingsOf('prices')
      .filter({ hasText: exit.slice(0, 10) })
      .waitFor();
    await page.waitForURL(/[?&]from=.*&to=/);
    const shown = new URL(page.url()).searchParams;
    const entry = Date.parse((await trade.getAttribute('data-from'))!);
    expect(Date.parse(shown.get('from')!)).toBeLessThanOrEqual(entry);
    expect(Date.parse(shown.get('to')!)).toBeGreaterThanOrEqual(Date.parse(exit));

    await ask('What was the equity on 2000-02-07?');
    await page.locator('#talk a.source[data-from^="2000-02-07"]').last().click();
    await readingsOf('equity').filter({ hasText: '2000-02-07' }).waitFor();

    await page.reload();
    await page.locator('#talk .turns > li').nth(1).waitFor();
    const link = await page.locator('#talk a.source[data-symbol]').first().getAttribute('href');
    await browser.open(link!);
    await page.locator('#talk[open] .turns > li').first().waitFor();
    await readingsOf('prices')
      .filter({ hasText: exit.slice(0, 10) })
      .waitFor();
  });

  test('continues on the chat page, whose sources open the point in the report', async () => {
    const { page } = browser;
    await openBot('ended');
    expect(await ask('What was the equity on 2000-03-10?')).toContain('on 2000-03-10: ');
    const session = new URL(page.url()).searchParams.get('talk')!;
    await page.locator('#talk a.source[data-from^="2000-03-10"]').last().click();
    await readingsOf('equity').filter({ hasText: '2000-03-10' }).waitFor();

    await browser.open(`/console/bots/ended/chat?session=${session}`);
    await page.locator('a.source[data-from^="2000-03-10"]').last().click();
    await page.waitForURL(/\/console\/tasks\/[\w-]+\?at=/);
    await page.locator('#report').scrollIntoViewIfNeeded();
    const report = page.frameLocator('iframe.report');
    await report
      .locator('figure:has(#equity) .readings')
      .filter({ hasText: '2000-03-10' })
      .waitFor();
  });

  test('opens below the chart on a phone, without accessibility faults', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 390, height: 844 });
    await openBot('ended');
    await ask('What were the best 3 trades?');
    const [prices, equity, box] = await Promise.all(
      ['#prices', '#equity', '#talk'].map(async (id) => (await page.locator(id).boundingBox())!),
    );
    expect(box!.y).toBeGreaterThan(prices!.y + prices!.height);
    expect(box!.y).toBeGreaterThan(equity!.y + equity!.height);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expect(await browser.findBarriers()).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
  });
});
