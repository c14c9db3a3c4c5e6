import { strict as assert } from 'node:assert';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer } from '../running.ts';
import { BOTH_THEMES, openBrowser, type BrowserTest } from './browser.ts';
import { fillServer, pathsOf, type Filled } from './every-page.ts';

let browser: BrowserTest;
let filled: Filled;
beforeAll(async () => {
  browser = await openBrowser(startServer);
  filled = await fillServer(browser);
}, 300_000);
afterAll(() => browser.close());

test.each([
  { width: 1400, height: 1000 },
  { width: 390, height: 844 },
])(
  'every page has no accessibility fault in light and dark, no script error and no sideways scrolling at $width px',
  async (size) => {
    const { page } = browser;
    await page.setViewportSize(size);
    await browser.signOut();
    const faults = [...(await faultsOf('/console/sign-in', size.width))];
    await browser.signIn();
    for (const path of Object.values(pathsOf(filled)).flat()) {
      faults.push(...(await faultsOf(path, size.width)));
    }
    expect(faults).toEqual([]);
  },
);

async function faultsOf(path: string, width: number): Promise<string[]> {
  const { page } = browser;
  await page.emulateMedia({ colorScheme: 'light' });
  const answer = await page.goto(browser.url + path);
  assert.equal(answer!.status(), 200, path);
  await page.locator('h1').first().waitFor();
  const barriers = await browser.findBarriers(BOTH_THEMES);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  const faults = [
    ...barriers,
    ...browser.takeComplaints(),
    ...(wide === width ? [] : [`is ${wide} px wide`]),
  ];
  return faults.map((fault) => `${path}: ${fault}`);
}
