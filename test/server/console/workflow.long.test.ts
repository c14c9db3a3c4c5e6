import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { fillCatalogue } from '../../fleet/tasks/market.ts';
import { startAgain, startServer, type RunningServer } from '../running.ts';
import { tradingDocument } from '../trader.ts';
import { openBrowser, PASSWORD, type BrowserTest } from './browser.ts';

const SIZES = [
  { width: 1400, height: 1000, hasTouch: false },
  { width: 390, height: 844, hasTouch: true },
];
const REASON = 'it buys "too much" & too often';

/** A user who uses nothing but the pages. */
interface Person {
  readonly browser: BrowserTest;
  readonly page: Page;
  readonly hasTouch: boolean;
  server: RunningServer;
}

let person: Person | undefined;
afterEach(async () => {
  await person?.server.stop();
  await person?.browser.close();
  person = undefined;
});

test.each(SIZES)(
  'a bot is created, backtested, compared, traded on paper and halted at $width px, through a killed server and an ended session',
  async ({ hasTouch, ...viewport }) => {
    const browser = await openBrowser(startServer, { viewport, hasTouch });
    const { page } = browser;
    const server = browser.server as RunningServer;
    const user = { browser, page, hasTouch, server };
    person = user;
    await fillCatalogue(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);

    await signIn(user, browser.administrator.code());
    await createBot(user);
    for (const params of ['{"fast": 2, "slow": 3}', '{"fast": 5, "slow": 20}']) {
      await backtest(user, params);
    }
    await compare(user);
    assert.deepEqual(browser.takeComplaints(), []);

    await startPaper(user);
    await seeNewTrade(user);
    await seeFillOnChart(user);
    assert.deepEqual(browser.takeComplaints(), []);

    const bar = await newestBar(user);
    await seeServerGoAndComeBack(user);
    await seeNewTrade(user);
    expect((await newestBar(user)) > bar).toBe(true);
    // Requests failed while the server was stopped.
    browser.takeComplaints();

    await haltAfterSessionEnded(user);
    // The open page would load itself again when the server is back, and interrupt the next one.
    await page.goto('about:blank');
    await user.server.kill();
    user.server = await startAgain(user.server);
    browser.takeComplaints();
    await browser.open('/console/bots/crossover');
    await page.locator('aside.halted', { hasText: REASON }).waitFor();
    await page.getByText('No session is running.').waitFor();
    assert.deepEqual(browser.takeComplaints(), []);
  },
);

async function press({ hasTouch }: Person, target: Locator): Promise<void> {
  await (hasTouch ? target.tap() : target.click());
}

async function follow(user: Person, link: string, url: string): Promise<void> {
  await press(user, user.page.getByRole('link', { name: link, exact: true }).first());
  await user.page.waitForURL(url);
  await expectNoSidewaysScrolling(user);
}

async function submit(user: Person, button: string): Promise<void> {
  await press(user, user.page.getByRole('button', { name: button, exact: true }));
}

async function expectNoSidewaysScrolling({ page }: Person): Promise<void> {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect([page.url(), wide]).toEqual([page.url(), page.viewportSize()!.width]);
}

async function signIn(user: Person, code: string): Promise<void> {
  const { page, browser } = user;
  if (page.url() === 'about:blank') await browser.open('/console');
  await page.waitForURL('**/console/sign-in**');
  await page.getByLabel('Name').fill(browser.administrator.name);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByLabel('Code').fill(code);
  await submit(user, 'Sign in');
  await page.waitForURL((url) => !url.pathname.endsWith('/sign-in'));
}

async function createBot(user: Person): Promise<void> {
  const { page } = user;
  await follow(user, 'Bots', '**/console/bots');
  await follow(user, 'New bot', '**/console/bots/new');
  await page.getByText('No problems.').waitFor();
  const editor = page.getByRole('textbox', { name: 'bot.yaml' });
  await press(user, editor);
  await page.keyboard.press('Control+A');
  await paste(editor, stringify(tradingDocument('crossover', 'SPX', '1d', 2)));
  await page.locator('.cm-line', { hasText: 'slug: crossover' }).waitFor();
  await submit(user, 'Create the bot');
  await page.waitForURL('**/console/bots/crossover/edit');
  await page.getByText('The bot is created.').waitFor();
}

function paste(target: Locator, text: string): Promise<void> {
  return target.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', pasted);
    const options = { clipboardData, bubbles: true, cancelable: true };
    element.dispatchEvent(new ClipboardEvent('paste', options));
  }, text);
}

async function backtest(user: Person, params: string): Promise<void> {
  const { page } = user;
  await follow(user, 'Backtest…', '**/backtest');
  await page.getByLabel('Parameters').fill(params);
  await submit(user, 'Start the backtest');
  await page.waitForURL('**/console/tasks/*');
  await page.locator('[data-status]', { hasText: 'success' }).waitFor();
  await page.frameLocator('iframe').locator('canvas').first().waitFor();
  await expectNoSidewaysScrolling(user);
  await page.locator('main').getByRole('link', { name: 'SMA crossover' }).first().waitFor();
  await follow(user, 'SMA crossover', '**/console/bots/crossover');
}

async function compare(user: Person): Promise<void> {
  const { page } = user;
  await follow(user, 'Runs', '**/runs');
  const boxes = page.getByRole('checkbox', { name: /^Compare the backtest/ });
  for (const box of await boxes.all()) await press(user, box);
  expect(await boxes.count()).toBe(2);
  await submit(user, 'Compare the selected runs');
  await page.waitForURL('**/compare?id=*');
  const report = page.frameLocator('iframe');
  await report.locator('canvas').first().waitFor();
  await report.getByText('A and B: what differs').waitFor();
  await expectNoSidewaysScrolling(user);
}

async function startPaper(user: Person): Promise<void> {
  const { page } = user;
  await follow(user, 'Bots', '**/console/bots');
  await follow(user, 'SMA crossover', '**/console/bots/crossover');
  await follow(user, 'Paper session…', '**/paper');
  // Two days of the market each second.
  await page.getByLabel('Speed').fill(String(2 * 86_400));
  await submit(user, 'Start the paper session');
  await page.waitForURL('**/console/bots/crossover');
  await page.locator('#connection', { hasText: 'live' }).waitFor();
  await page.locator('#prices canvas').first().waitFor();
  await expectNoSidewaysScrolling(user);
}

const newestBar = ({ page }: Person): Promise<string> =>
  page.locator('[data-figure=time]').innerText();

/** Waits until the table of trades on the open page has changed by itself. */
async function seeNewTrade({ page }: Person): Promise<void> {
  const rows = page.locator('#trades-rows');
  const before = await rows.innerText();
  await page.waitForFunction(
    (text) => document.querySelector<HTMLElement>('#trades-rows')!.innerText !== text,
    before,
    { timeout: 60_000 },
  );
}

/** Moves over the chart of prices, to the right and back, until a fill is named. */
async function seeFillOnChart(user: Person): Promise<void> {
  const { page } = user;
  const chart = page.locator('#prices');
  await chart.scrollIntoViewIfNeeded();
  const { x, y, width, height } = (await chart.boundingBox())!;
  const steps = Array.from({ length: width * 0.6 }, (_, step) => step);
  const start = x + width * 0.2;
  const pointer = await pointerOn(user, start, y + height / 2);
  const tooltip = chart.locator('.tooltip', {
    hasText: /^(Bought|Sold) [\d.,]+ at [\d.,]+, order \d+/,
  });
  for (const step of [...steps, ...steps.toReversed()]) {
    await pointer.move(start + step);
    if (await tooltip.isVisible()) {
      await pointer.release();
      return;
    }
  }
  const readings = await page.locator('.readings').first().innerText();
  assert.fail(`the chart names no fill; it shows ${readings}`);
}

/** A mouse, or a finger that rests on the chart until it shows the values of one bar. */
async function pointerOn({ page, hasTouch }: Person, x: number, y: number) {
  if (!hasTouch) {
    await page.mouse.move(x, y);
    return { move: (to: number) => page.mouse.move(to, y), release: () => page.mouse.move(0, 0) };
  }
  const session = await page.context().newCDPSession(page);
  const touch = (
    type: 'touchStart' | 'touchMove' | 'touchEnd',
    ...touchPoints: { x: number; y: number }[]
  ) => session.send('Input.dispatchTouchEvent', { type, touchPoints });
  const newest = await page.locator('[data-figure=time]').innerText();
  await touch('touchStart', { x, y });
  // Without a finger, the readings are those of the newest bar.
  await page.waitForFunction((day) => {
    const [shown = day] =
      /\d{4}-\d\d-\d\d/.exec(document.querySelector('.readings')!.textContent) ?? [];
    return Date.parse(day) - Date.parse(shown) > 2 * 86_400_000;
  }, newest.trim());
  return {
    move: (to: number) => touch('touchMove', { x: to, y }),
    release: () => touch('touchEnd'),
  };
}

async function seeServerGoAndComeBack(user: Person): Promise<void> {
  const { page } = user;
  const banner = page.locator('.offline');
  await user.server.kill();
  const killedAt = performance.now();
  await banner.waitFor();
  expect(performance.now() - killedAt).toBeLessThan(5000);
  await expectNoSidewaysScrolling(user);
  const halt = page.locator('a.button', { hasText: 'Halt this bot: cannot act' });
  expect(await halt.getAttribute('aria-disabled')).toBe('true');
  user.server = await startAgain(user.server);
  await banner.waitFor({ state: 'detached' });
  await page.locator('#connection', { hasText: 'live' }).waitFor();
}

async function haltAfterSessionEnded(user: Person): Promise<void> {
  const { page, browser } = user;
  await follow(user, 'Halt this bot', '**/halt');
  await page.getByLabel('Reason').fill(REASON);
  const { identity, administrator } = browser;
  await identity.storage.write((tx) =>
    tx
      .updateTable('sessions')
      .set({ expires_at: Date.now() - 1 })
      .execute(),
  );
  await submit(user, 'Halt this bot');
  await signIn(user, administrator.recoveryCodes[0]!);
  expect(new URL(page.url()).pathname).toBe('/console/bots/crossover/halt');
  expect(await page.getByLabel('Reason').inputValue()).toBe(REASON);
  await submit(user, 'Halt this bot');
  await page.locator('[data-message]', { hasText: 'Verified: 1 deployment' }).waitFor();
  await expectNoSidewaysScrolling(user);
}
