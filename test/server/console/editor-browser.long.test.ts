import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import type { TestDatabase } from '../../storage/databases.ts';
import { startServer } from '../running.ts';
import { openBrowser, type BrowserTest } from './browser.ts';

let browser: BrowserTest;

beforeAll(async () => {
  browser = await openBrowser((database: TestDatabase) =>
    startServer(database, [], { SERVICE_LOCAL_CUSTOM_CODE: 'true' }),
  );
  await fillCatalogue(join(browser.server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 400);
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

const PICTURES = process.env['EDITOR_PICTURES'];

async function picture(name: string): Promise<void> {
  if (PICTURES === undefined) return;
  const { page } = browser;
  for (const [size, width] of [
    ['wide', 1400],
    ['phone', 390],
  ] as const) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: 1000 });
      await page.emulateMedia({ colorScheme });
      await page.screenshot({
        path: `${PICTURES}/${name}-${size}-${colorScheme}.png`,
        fullPage: true,
      });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });
}

test('creates a bot, shows an error at its line, completes a key, backtests and saves', async () => {
  const { page } = browser;
  await browser.open('/console/bots/new');
  const editor = page.getByRole('textbox', { name: 'bot.yaml' });
  await page.getByText('No problems.').waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await picture('new');

  // A wrong word in the line of the timeframe.
  const line = page.locator('.cm-line', { hasText: 'timeframe: 1m' });
  await line.click();
  await page.keyboard.press('End');
  await page.keyboard.type('x');
  await page.keyboard.press('Escape');
  const problem = page.locator('.problems li');
  await problem.waitFor();
  const number = await page
    .locator('.cm-line')
    .evaluateAll((lines) => lines.findIndex(({ textContent }) => textContent.includes('1mx')));
  expect(await problem.textContent()).toContain(`Line ${number + 1}`);
  await page.locator('.cm-lintRange-error', { hasText: '1mx' }).waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await picture('problem');

  // The list of problems leads back to the place.
  await page.getByRole('button', { name: `Line ${number + 1}` }).click();
  await page.keyboard.press('End');
  await page.keyboard.press('Backspace');
  await page.getByText('No problems.').waitFor();

  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('fro');
  const offered = page.locator('.cm-tooltip-autocomplete li', { hasText: 'from' });
  await offered.waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await picture('complete');
  await page.keyboard.press('Enter');
  await page.locator('.cm-line', { hasText: /^ {4}from: $/ }).waitFor();
  await page.keyboard.type('2000-01-01');
  await page.getByText('No problems.').waitFor();

  await page.getByRole('button', { name: 'Create the bot' }).click();
  await page.waitForURL('**/edit');
  await page.getByText('No problems.').waitFor();

  await page.locator('.cm-line', { hasText: 'fast: 10' }).click();
  await page.keyboard.press('End');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('2');
  await page.getByRole('button', { name: 'Backtest without saving' }).click();
  await page.locator('#backtest .badge', { hasText: 'success' }).waitFor();
  expect(await page.locator('#backtest').textContent()).toContain('Sharpe');
  expect(await browser.findBarriers()).toEqual([]);
  await picture('edit');

  await page.getByRole('button', { name: 'Show changes' }).click();
  await page.locator('dialog .cm-changedLine', { hasText: 'fast: 12' }).waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await picture('changes');
  await page.locator('dialog').getByRole('button', { name: 'Save as version 2' }).click();
  await page.getByText('Version 2 is saved.').waitFor();
  await editor.waitFor();
  expect(await editor.textContent()).toContain('fast: 12');
});

test('backtests changed code without saving it, and shows what it logs', async () => {
  const { page } = browser;
  await browser.open('/console/bots/new?template=module');
  await page.getByText('No problems.').waitFor();
  await page.getByRole('button', { name: 'Create the bot' }).click();
  await page.waitForURL('**/edit');
  await page.getByText('No problems.').waitFor();
  // Only the visible lines are in the document.
  const code = page.locator('.cm-scroller', { hasText: 'defineStrategy' });
  await code.evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight));
  await page.locator('.cm-line', { hasText: 'onBar() {' }).click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  // Typed brackets would close themselves.
  await page.keyboard.insertText("log('close ' + asset.close);");
  await page.locator('.cm-line', { hasText: 'create({' }).click();
  await page.keyboard.press('End');
  for (const _ of '}) {') await page.keyboard.press('Backspace');
  await page.keyboard.insertText(', log }) {');
  await page.getByText('No problems.').waitFor();
  await page.getByRole('button', { name: 'Backtest without saving' }).click();
  await page.locator('#backtest .badge', { hasText: 'success' }).waitFor();
  expect(await page.locator('#backtest').textContent()).toContain('unsaved code');
  await page.locator('#backtest pre', { hasText: /Z close \d/ }).waitFor();
  expect(await browser.findBarriers()).toEqual([]);
  await picture('log');
  expect(await page.getByRole('button', { name: 'Save as version 2' }).isVisible()).toBe(true);
});

test('shows code beside the bot file, and reports its faults at the line that names it', async () => {
  const { page } = browser;
  await browser.open('/console/bots/new?template=module');
  await page.getByText('No problems.').waitFor();
  const [spec, code] = await Promise.all(
    ['bot.yaml', 'strategy.ts'].map((name) => page.getByRole('textbox', { name }).boundingBox()),
  );
  expect(code!.x).toBeGreaterThan(spec!.x + spec!.width);
  expect(await browser.findBarriers()).toEqual([]);
  await picture('code');
  await page.getByRole('textbox', { name: 'strategy.ts' }).click();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('throw 1;');
  await page.locator('.problems li').waitFor();
  await page.locator('.cm-lintRange-error', { hasText: './strategy.ts' }).waitFor();
  await page.setViewportSize({ width: 390, height: 900 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});
