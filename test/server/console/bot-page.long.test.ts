import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addToken } from '../../../src/identity/tokens.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

/** Wide enough never to refuse an order. */
const LIMITS = { max_drawdown_pct: 0.9, max_position_pct: 5, max_instruments: 3 };

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
    const { spec, ...rest } = tradingDocument(slug, 'SPX', '1d', 2) as { readonly spec: object };
    const risk = { ...(spec as { readonly risk: object }).risk, ...LIMITS };
    await send('/bots', { document: { ...rest, spec: { ...spec, risk } } });
  }
  await send('/bots/live/paper/start', { speed: 4 * 86_400 });
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

const barShown = (): Promise<string> => browser.page.locator('[data-figure=time]').innerText();

async function openLive(query = ''): Promise<void> {
  await browser.open(`/console/bots/live${query}`);
  await browser.page.locator('#connection', { hasText: 'live' }).waitFor();
  await browser.page.locator('#prices canvas').first().waitFor();
}

/** Waits until bars have arrived since. */
async function awaitBars(count: number): Promise<void> {
  await browser.page.waitForFunction(() =>
    /^\d{4}/.test(document.querySelector('[data-figure=time]')!.textContent.trim()),
  );
  const before = Date.parse(await barShown());
  const until = new Date(before + count * 86_400_000).toISOString().slice(0, 10);
  await browser.page.waitForFunction(
    (day) => document.querySelector('[data-figure=time]')!.textContent.trim() >= day,
    until,
    { timeout: 30_000 },
  );
}

describe('the page of a bot', () => {
  test('keeps the zoom while bars arrive, also after a reload', async () => {
    const { page } = browser;
    await openLive();
    await awaitBars(30);
    const zoomIn = page.locator('#charts button[value=closer]');
    await zoomIn.click();
    await page.waitForURL(/from=.*to=/);
    const before = new URL(page.url()).searchParams;
    const width = (query: URLSearchParams): number =>
      Date.parse(query.get('to')!) - Date.parse(query.get('from')!);
    await awaitBars(6);
    await page.locator('#charts button[value=earlier]').click();
    await page.waitForFunction(
      (from) => new URL(location.href).searchParams.get('from') !== from,
      before.get('from'),
    );
    const after = new URL(page.url()).searchParams;
    expect(width(after)).toBeLessThan(1.25 * width(before));
    expect(width(after)).toBeGreaterThan(0.75 * width(before));

    await page.reload();
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    await awaitBars(2);
    expect(new URL(page.url()).searchParams.get('from')).toBe(after.get('from'));
    await page.locator('#charts button[value=all]').click();
    await page.waitForURL((url) => !url.searchParams.has('from'));
  });

  test('shows the values under the pointer, and those of the indicators', async () => {
    const { page } = browser;
    await openLive();
    await awaitBars(5);
    const readings = page.locator('#charts figure').first().locator('.readings');
    await readings.locator('b').nth(4).waitFor();
    await page.locator('.indicators button', { hasText: 'sma(close, 2)' }).waitFor();
    const box = (await page.locator('#prices').boundingBox())!;
    await page.mouse.move(box.x + box.width / 3, box.y + box.height / 3);
    const last = await barShown();
    await page.waitForFunction(
      (day) => !document.querySelector('.readings')!.textContent.includes(day.trim()),
      last,
    );
    expect(await readings.innerText()).toMatch(/Open .*High .*Low .*Close /s);
    await page.mouse.move(0, 0);
  });

  test('changes only the parts that an event concerns', async () => {
    const { page } = browser;
    await openLive();
    await awaitBars(2);
    await page.evaluate(() => {
      const seen = globalThis as unknown as { changed: Set<string>; fills: number };
      seen.changed = new Set();
      seen.fills = 0;
      for (const id of ['#charts .presets', '.tabs', '.limits', '#working-table', '#trades form']) {
        const part = document.querySelector(id)!;
        new MutationObserver((changes) => {
          for (const { type, target } of changes) {
            const isNewElement = type === 'childList' && !(target.firstChild instanceof Text);
            if (isNewElement) seen.changed.add(id);
          }
        }).observe(part, { childList: true, subtree: true });
      }
      // Marks that only a new element would lose.
      for (const place of document.querySelectorAll('#prices, #equity, .limits li, .figures dd')) {
        (place as HTMLElement).dataset['kept'] = '';
      }
    });
    const count = await page.locator('[data-kept]').count();
    const trades = await page.locator('#trades-rows').innerText();
    await page.waitForFunction(
      (text) => document.querySelector<HTMLElement>('#trades-rows')!.innerText !== text,
      trades,
      { timeout: 30_000 },
    );
    await awaitBars(3);
    const changed = await page.evaluate(() => [
      ...(globalThis as unknown as { changed: Set<string> }).changed,
    ]);
    expect(changed.filter((id) => id !== '#working-table')).toEqual([]);
    expect(await page.locator('[data-kept]').count()).toBe(count);
  });

  test('shows the charts, the trades and the limits of a session that has ended', async () => {
    const { page } = browser;
    await browser.open('/console/bots/ended?range=1M');
    await page.getByText('No session is running.').waitFor();
    await page.locator('#prices canvas').first().waitFor();
    await page.locator('.readings', { hasText: '2000-06-30' }).first().waitFor();
    const preset = page.getByRole('button', { name: '1M' });
    expect(await preset.getAttribute('aria-pressed')).toBe('true');
    expect(await page.locator('#trades tbody tr').count()).toBeGreaterThan(5);
    const limits = await page.locator('.limits li').allInnerTexts();
    expect(limits.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      expect.stringMatching(/^Position in one instrument [\d.]+% of 500.00% \d+ %$/),
      expect.stringMatching(/^Drawdown [\d.]+% of 90.00% \d+ %$/),
      expect.stringMatching(/^Instruments held at once \d of 3 \d+ %$/),
    ]);
    expect(await browser.findBarriers()).toEqual([]);
  });

  test('sorts and filters the trades without loading the page, and exports them', async () => {
    const { page } = browser;
    await browser.open('/console/bots/ended');
    await page.locator('#connection', { hasText: 'live' }).waitFor();
    await page.evaluate(() => (document.documentElement.dataset['same'] = ''));
    await page.getByRole('link', { name: 'Profit' }).click();
    await page.locator('th[aria-sort=descending]', { hasText: 'Profit' }).waitFor();
    const profits = async (): Promise<number[]> =>
      (await page.locator('#trades tbody td:nth-child(8)').allInnerTexts()).map((text) =>
        Number(text.replaceAll(',', '').replace('−', '-')),
      );
    const sorted = await profits();
    expect(sorted).toEqual(sorted.toSorted((a, b) => b - a));
    expect(page.url()).toContain('sort=pnl');
    await page.getByLabel('Result').selectOption('gain');
    await page.waitForURL(/outcome=gain/);
    const csv = page.locator('#trades-rows a[download][href*="outcome=gain"]');
    const href = await csv.getAttribute('href');
    const lines = await page.evaluate(async (path) => (await fetch(path)).text(), href!);
    const gains = await profits();
    expect(gains.every((one) => one > 0)).toBe(true);
    expect(lines.trim().split('\n').length - 1).toBe(gains.length);
    expect(await page.locator('html[data-same]').count()).toBe(1);

    await browser.open('/console/bots/ended/trades?sort=pnl&order=asc');
    const ascending = await profits();
    expect(ascending).toEqual(ascending.toSorted((a, b) => a - b));
    expect(await browser.findBarriers()).toEqual([]);
  });

  test.each([360, 390])('fits a phone of %i px', async (width) => {
    const { page } = browser;
    await page.setViewportSize({ width, height: 844 });
    for (const path of ['/console/bots/ended', '/console/bots/ended/trades']) {
      await browser.open(path);
      await page.locator('#trades tbody tr').first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, wide]).toEqual([path, width]);
    }
    await page.setViewportSize({ width: 1280, height: 720 });
  });
});
