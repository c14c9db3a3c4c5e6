import { strict as assert } from 'node:assert';
import { inflateSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { startServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { BOTH_THEMES, openBrowser, type BrowserTest } from './browser.ts';

const YEAR = new Date().getUTCFullYear();
const LONG_NAME = 'A bot with a long name that trades the index with averages of closes';
const SIZES = [
  { width: 390, height: 844 },
  { width: 1400, height: 900 },
] as const;

let browser: BrowserTest;

beforeAll(async () => {
  browser = await openBrowser(startServer);
  const { identity } = browser;
  const registry = { storage: identity.storage, clock: identity.clock };
  for (const slug of ['sma', 'idle']) {
    const document = tradingDocument(slug, 'SPX', '1d', 3);
    const metadata = { name: slug === 'idle' ? LONG_NAME : 'Crossover', slug };
    await createBot(registry, 'operator', { document: { ...document, metadata } });
  }
  await browser.signIn();
});
afterAll(() => browser.close());
afterEach(() => {
  assert.deepEqual(browser.takeComplaints(), []);
});

const overflow = (): Promise<number> =>
  browser.page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );

interface Pdf {
  readonly pages: number;
  /** Number of drawn glyphs; a page without text has none. */
  readonly glyphs: number;
}

/** Prints the open page on A4 and reads how much text the file contains. */
async function print(): Promise<Pdf> {
  const file = await browser.page.pdf({ preferCSSPageSize: true });
  const text = file.toString('latin1');
  let glyphs = 0;
  for (const { index, 0: begin } of text.matchAll(/\/FlateDecode[^>]*>>\s*stream\r?\n/g)) {
    const stream = file.subarray(index + begin.length);
    try {
      const content = inflateSync(stream, { finishFlush: 2 }).toString('latin1');
      for (const [, hex] of content.matchAll(/<([0-9A-Fa-f]+)>\s*Tj/g)) glyphs += hex!.length / 4;
    } catch {
      // Fonts and pictures are compressed, too.
    }
  }
  return { pages: text.match(/\/Type\s*\/Page\b(?!s)/g)?.length ?? 0, glyphs };
}

/** Returns by how much the open page is wider than A4 without margins, in CSS pixels. */
async function paperOverflow(millimeters: number): Promise<number> {
  const { page } = browser;
  await page.setViewportSize({ width: Math.floor(((millimeters - 28) / 25.4) * 96), height: 1000 });
  await page.emulateMedia({ media: 'print' });
  const wide = await overflow();
  await page.emulateMedia({ media: null });
  return wide;
}

test('an assessment is filled in, its gap gets an owner, and the report over all bots shows it', async () => {
  const { page } = browser;
  await browser.open('/console/bots/sma');
  await page.getByRole('link', { name: 'RTS 6', exact: true }).click();
  await page.getByRole('link', { name: 'Article 15: pre-trade controls' }).click();
  const paragraph = page.getByRole('group', { name: '15(3)', exact: true });
  await paragraph.getByLabel('Assessment').selectOption('Partly compliant');
  await paragraph.getByLabel('Narrative').fill('The latch exists.\nIts test is due.');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('status').getByText('Saved: Article 15').waitFor();
  expect(await paragraph.getByLabel('Narrative').inputValue()).toBe(
    'The latch exists.\nIts test is due.',
  );

  await page.getByRole('link', { name: `RTS 6 in ${YEAR}` }).click();
  await page.getByRole('link', { name: 'Owners and due dates' }).click();
  const gap = page.getByRole('group', { name: 'no halt drill in the period' });
  await gap.getByLabel('Owner').fill('Risk management');
  await gap.getByLabel('Due').fill(`${YEAR}-01-31`);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('Owners and due dates are saved.').waitFor();

  await browser.open('/console/bots');
  await page.keyboard.press('Control+K');
  await page.keyboard.type('rts 6 of all');
  await page.getByRole('option', { name: /^RTS 6 of all bots/, selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/console/rts6');
  const row = page.getByRole('row', { name: /no halt drill in the period/ });
  expect(await row.textContent()).toMatch(
    new RegExp(`Crossover[^]*Risk management[^]*${YEAR}-01-31`),
  );
  const counts = page.getByRole('row', { name: /^15\(3\) / });
  expect((await counts.getByRole('cell').allTextContents()).slice(1)).toEqual([
    '0',
    '1',
    '0',
    '0',
    '1',
  ]);
});

test('pages of an assessment fit a phone and a desk, and have no barriers in both themes', async () => {
  const { page } = browser;
  const pages = {
    overview: '/console/bots/sma/rts6',
    section: '/console/bots/sma/rts6/pre-trade',
    gaps: '/console/bots/sma/rts6/gaps',
    deficiencies: '/console/bots/sma/rts6/deficiencies',
    attest: '/console/bots/sma/rts6/attest',
    firm: '/console/rts6',
  };
  await browser.open(pages.overview);
  await page.getByRole('button', { name: 'Freeze as the next version' }).click();
  await page.getByRole('link', { name: 'attest', exact: true }).click();
  await page.getByLabel('Role in which you attest').waitFor();
  for (const [name, path] of Object.entries(pages)) {
    for (const size of SIZES) {
      await page.setViewportSize(size);
      await browser.open(path);
      expect([name, size.width, await overflow()]).toEqual([name, size.width, 0]);
      expect([name, await browser.findBarriers(BOTH_THEMES)]).toEqual([name, []]);
    }
  }
});

test('the summary prints on one page, and every report on A4 without a cut table', async () => {
  const { page } = browser;
  const reports = {
    summary: '/console/bots/sma/rts6',
    firm: '/console/rts6',
    full: '/bots/sma/risk/validation-report?format=html',
  };
  for (const [name, path] of Object.entries(reports)) {
    await page.emulateMedia({ colorScheme: 'dark' });
    await browser.open(path);
    const { pages, glyphs } = await print();
    expect([name, glyphs > 500]).toEqual([name, true]);
    expect([name, name === 'summary' ? pages === 1 : pages > 1]).toEqual([name, true]);
    const wide = await paperOverflow(name === 'firm' ? 297 : 210);
    expect([name, wide]).toEqual([name, 0]);
  }
  await browser.open(reports.summary);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const hidden = page.locator('nav, form, .screen, button').filter({ visible: true });
  expect(await hidden.count()).toBe(0);
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(paper).toBe('rgb(255, 255, 255)');
  await page.emulateMedia({ media: null });
});
