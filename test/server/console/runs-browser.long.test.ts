import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { startServer } from '../running.ts';
import { researchDocument } from '../../research/talk.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

const NARROW = { width: 390, height: 844 };
const WIDE = { width: 1400, height: 1000 };

let browser: BrowserTest;
let authorization: string;
let runs: readonly string[];

beforeAll(async () => {
  browser = await openBrowser(startServer);
  const { identity, administrator, server } = browser;
  await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const terms = { label: 'test', scopes: ['read', 'write'], expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  authorization = `Bearer ${token}`;
  await send('/bots', { document: researchDocument('talk') });
  const started: string[] = [];
  for (const fast of [5, 10]) {
    const { task_id } = await send<{ task_id: string }>('/bots/talk/backtest', {
      params: { fast },
    });
    started.push(task_id);
  }
  for (const task_id of started) await ended(task_id);
  runs = started;
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

async function send<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(browser.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, path);
  return (await answer.json()) as T;
}

/** The stream of a task ends with it. */
async function ended(task_id: string): Promise<void> {
  const answer = await fetch(`${browser.url}/tasks/${task_id}/events`, {
    headers: { authorization },
  });
  await answer.text();
}

describe('runs in a browser', () => {
  test('are selected, kept selected by a refresh, and compared', async () => {
    const { page } = browser;
    await browser.open('/console/bots/talk/runs');
    const compare = page.getByRole('button', { name: 'Compare the selected runs' });
    expect(await compare.isDisabled()).toBe(true);
    for (const task_id of runs) await page.locator(`#pick-${task_id}`).check();
    // A new run makes the table refresh.
    await send('/bots/talk/backtest', { params: { fast: 12 } });
    await page.locator('#tasks tbody tr').nth(2).waitFor();
    for (const task_id of runs) {
      expect(await page.locator(`#pick-${task_id}`).isChecked()).toBe(true);
    }
    await compare.click();
    await page.waitForURL('**/compare?id=*');
    const report = page.frameLocator('iframe');
    await report.locator('canvas').first().waitFor();
    await report.getByText('A and B: what differs').waitFor();
  });

  test('show a trade of their table on the chart', async () => {
    const { page } = browser;
    await browser.open(`/console/tasks/${runs[0]}/trades?sort=-pnl`);
    await page.locator('tbody th a').first().click();
    await page.waitForURL('**/tasks/*?row=*');
    const tooltip = page.frameLocator('iframe').locator('.tooltip', { hasText: 'Trade' });
    await tooltip.waitFor();
    expect(await tooltip.textContent()).toMatch(/Trade \d+:.*profit \+/);
  });

  test('are discussed with the script of the chat, whose source opens', async () => {
    const { page } = browser;
    await browser.open('/console/bots/talk/chat');
    await page
      .locator('form textarea, form input[type=text]')
      .first()
      .fill('What is the Sharpe ratio?');
    await page.keyboard.press('Enter');
    const source = page.locator('a.source').first();
    await source.waitFor();
    await source.click();
    await page.waitForURL('**/console/tasks/**');
    expect(page.url()).toMatch(/\/console\/tasks\/[\da-f-]{36}/);
  });

  test.each([WIDE, NARROW])('have pages without barriers at $width pixels', async (size) => {
    const { page } = browser;
    await page.setViewportSize(size);
    const [one, other] = runs as [string, string];
    for (const path of [
      '/console/tasks?sort=sharpe',
      '/console/bots/talk/runs',
      '/console/bots/talk/analyses',
      '/console/bots/talk/chat',
      `/console/tasks/compare?id=${one}&id=${other}`,
      `/console/tasks/${one}/trades`,
      `/console/tasks/${one}/rows/equity.csv?row=5`,
    ]) {
      await browser.open(path);
      expect([path, await browser.findBarriers()]).toEqual([path, []]);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, width]).toEqual([path, size.width]);
    }
  });
});
