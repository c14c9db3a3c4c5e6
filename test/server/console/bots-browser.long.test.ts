import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { appendEvents } from '../../../src/events/append.ts';
import { addToken } from '../../../src/identity/tokens.ts';
import { startAgain, startServer, type RunningServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

/** Two market days per second. */
const SPEED = 2 * 86_400;
const HOSTILE = '<b>Crossover</b> "of" & <script>alert(1)</script> a name that goes on and on';

let browser: BrowserTest;
let restarted: RunningServer | undefined;
let authorization: string;
let hostile: string;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  const { identity, administrator, server } = browser;
  await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const terms = { label: 'test', scopes: ['read', 'write', 'trade'], expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  authorization = `Bearer ${token}`;
  for (const slug of ['watched', 'halted', 'all', 'hostile']) {
    const document = tradingDocument(slug, 'SPX', '1d', 3);
    const metadata = { name: slug === 'hostile' ? HOSTILE : slug, slug };
    const { id } = await send<{ id: string }>('/bots', { document: { ...document, metadata } });
    if (slug === 'hostile') hostile = id;
  }
  for (const slug of ['watched', 'halted', 'all']) {
    await send(`/bots/${slug}/paper/start`, { speed: SPEED });
  }
});
afterAll(async () => {
  await restarted?.stop();
  await browser.close();
});
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

async function send<T>(path: string, body: object): Promise<T> {
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await fetch(browser.url + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, path);
  return (await answer.json()) as T;
}

/** Adds events of a kind that nothing else records to the log of the hostile bot. */
async function addTicks(count: number): Promise<void> {
  const now = Date.now();
  const ticks = Array.from({ length: count }, (_, i) => ({
    kind: 'note.tick',
    version: 1,
    occurred_at: now,
    payload: { text: HOSTILE, i },
  }));
  await browser.identity.storage.write(async (tx) => {
    await appendEvents(tx, hostile, now, ticks);
  });
}

const newest = async (): Promise<number> =>
  Number(await browser.page.locator('#tail-table tbody th').first().textContent());

describe('pages of bots in a browser', () => {
  test('follow a trading session through a restart of the server', async () => {
    const { page, server } = browser;
    await browser.signIn();
    await browser.open('/console/bots/watched');
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    await page.locator('#prices canvas').first().waitFor();
    const lastSeq = await newest();
    const day = page.locator('[data-figure=time]');
    await page.waitForFunction(
      (before) => Number(document.querySelector('#tail-table tbody th')!.textContent) > before,
      lastSeq,
    );
    await page.getByText('The chart as a table').click();
    await page.locator('#points tbody tr').first().waitFor();
    await server.stop();
    await page.locator('#connection', { hasText: 'reconnecting' }).waitFor();
    const before = [await newest(), await day.textContent()] as const;
    restarted = await startAgain(server);
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    await page.waitForFunction(
      (until) => document.querySelector('[data-figure=time]')!.textContent > until!,
      before[1],
    );
    expect(await newest()).toBeGreaterThan(before[0]);
    // Requests failed while the server was stopped.
    browser.takeComplaints();
  });

  test('halt a bot with the keyboard alone and show what was verified', async () => {
    const { page } = browser;
    const { keyboard } = page;
    await browser.open('/console/bots/halted');
    await page.getByRole('link', { name: 'Halt this bot' }).focus();
    await keyboard.press('Enter');
    await page.waitForURL('**/halt');
    await page.locator('[name=reason]:focus').waitFor();
    await keyboard.type('it buys too much');
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    await page.locator('[data-message]:focus', { hasText: 'Verified: 1 deployment' }).waitFor();
    await page.getByRole('heading', { level: 1, name: 'halted is halted' }).waitFor();
    await page.getByText('verified', { exact: true }).waitFor();
    await page.locator('aside.halted', { hasText: 'it buys too much' }).waitFor();
    expect(await browser.findBarriers()).toEqual([]);
    await browser.open('/console/bots/halted');
    await page.getByText('No session is running.').waitFor();
  });

  test('halt all bots after the typed confirmation, and resume them', async () => {
    const { page } = browser;
    await browser.open('/console/bots/all');
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    const other = await page.evaluate(async (path) => (await fetch(path)).status, '/console/halts');
    expect(other).toBe(200);
    await page.getByRole('link', { name: 'Halt all' }).click();
    await page.getByLabel('Reason').fill('a drill');
    await page.getByLabel('Type HALT').fill('HALT');
    await page.getByRole('button', { name: 'Halt all bots' }).click();
    await page.locator('[data-message]', { hasText: 'Verified: 2 deployments' }).waitFor();
    await page.getByRole('link', { name: 'Resume…' }).click();
    await page.getByText('Resume all bots…').click();
    await page.getByLabel('Reason').first().fill('it was a drill');
    await page.getByRole('button', { name: 'Lift the halt' }).first().click();
    await page.getByText('The halt of all bots is lifted.').waitFor();
  });

  test('show the state after the event that the slider selects', async () => {
    const { page } = browser;
    await browser.open('/console/bots/watched/events');
    await page.getByRole('slider').focus();
    await page.keyboard.press('Home');
    await page.getByRole('heading', { name: 'The state after event 1', exact: true }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.getByRole('heading', { name: 'The state after event 3', exact: true }).waitFor();
    await page.getByText('No paper session was running.').waitFor();
    expect(page.url()).toContain('at_seq=3');
    await page.reload();
    await page.getByLabel('Runs').check();
    await page.waitForURL('**show=runs**');
    await page.locator('#moment tbody tr', { hasText: 'bot.created' }).waitFor({
      state: 'detached',
    });
  });

  test('stay responsive when 5000 events arrive at once', async () => {
    const { page } = browser;
    await browser.open('/console/bots/hostile');
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    const before = await newest();
    await page.evaluate(() => {
      const count = globalThis as unknown as { frames: number };
      count.frames = 0;
      const next = (): void => {
        count.frames += 1;
        requestAnimationFrame(next);
      };
      next();
    });
    await addTicks(5000);
    await page.waitForFunction(
      (last) => Number(document.querySelector('#tail-table tbody th')!.textContent) === last,
      before + 5000,
    );
    const { frames, rows } = await page.evaluate(() => ({
      frames: (globalThis as unknown as { frames: number }).frames,
      rows: document.querySelectorAll('#tail-table tbody tr').length,
    }));
    expect(rows).toBe(12);
    // The events were not all handled in one frame.
    expect(frames).toBeGreaterThan(5);
  });

  test('have no accessibility faults and fit a narrow screen', async () => {
    const { page } = browser;
    const backtest = await send<{ task_id: string }>('/bots/hostile/backtest', {});
    await browser.open(`/console/tasks/${backtest.task_id}`);
    await page.locator('iframe').waitFor();
    await page.frameLocator('iframe').getByRole('heading', { name: HOSTILE }).waitFor();
    const paths = [
      '/console/bots',
      '/console/bots/hostile',
      '/console/bots/watched/events',
      '/console/bots/watched/runs',
      '/console/bots/watched/versions?from=1&to=1',
      '/console/bots/watched/paper',
      '/console/halt-all',
      '/console/halts',
      '/console/tasks',
      `/console/tasks/${backtest.task_id}`,
    ];
    for (const path of paths) {
      await page.setViewportSize({ width: 360, height: 780 });
      await browser.open(path);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, wide]).toEqual([path, 360]);
      expect([path, await browser.findBarriers()]).toEqual([path, []]);
    }
  });
});
