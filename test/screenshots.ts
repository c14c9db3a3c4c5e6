/**
 * `npm run screenshots`: the pictures of the README: the demo's own report, and the console of a
 * server that administers licenses and has a bot that trades on paper.
 * `npm run screenshots -- --pages DIR` instead: every page of the console in two widths and both
 * themes.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { NO_RISK_LIMITS } from '../src/engine/config.ts';
import { addToken } from '../src/identity/tokens.ts';
import { BOTH_THEMES, openBrowser, type BrowserTest } from './server/console/browser.ts';
import { fillServer, pathsOf } from './server/console/every-page.ts';
import { seedFleet } from './server/console/fleet.ts';
import { startServer } from './server/running.ts';

const root = join(import.meta.dirname, '..');
const cli = join(root, 'bin/service-local.ts');
const bot = join(root, 'examples/sma-crossover.yaml');
const { values } = parseArgs({ options: { pages: { type: 'string' } } });
const directory = mkdtempSync(join(tmpdir(), 'service-local-screenshots-'));
const browser = await openBrowser(startServer);
try {
  if (values.pages === undefined) await takePicturesOfReadme(browser);
  else await takePages(browser, values.pages);
} finally {
  await browser.close();
  rmSync(directory, { recursive: true });
}

async function takePicturesOfReadme(at: BrowserTest): Promise<void> {
  await takeReport(at);
  await at.signIn();
  await takeLicenses(at);
  await takeBot(at);
}

/** Takes each page in full height. */
async function takePages(at: BrowserTest, out: string): Promise<void> {
  const { page } = at;
  mkdirSync(out, { recursive: true });
  const paths = Object.values(pathsOf(await fillServer(at))).flat();
  for (const path of ['/console/sign-in', ...paths]) {
    if (path === paths[0]) await at.signIn();
    for (const width of [1400, 390]) {
      await page.setViewportSize({ width, height: 1000 });
      for (const colorScheme of BOTH_THEMES) {
        await page.emulateMedia({ colorScheme });
        await at.open(path);
        // Frames and charts are drawn after the page, and pages that follow events are never idle.
        await page.waitForTimeout(700);
        const name = path.slice(1).replaceAll(/[^\w.-]+/g, '_');
        await page.screenshot({
          path: join(out, `${name}-${width}-${colorScheme}.png`),
          fullPage: true,
        });
      }
    }
  }
}

async function take({ page }: BrowserTest, name: string): Promise<void> {
  await page.screenshot({ path: join(root, 'examples', name) });
}

async function takeReport({ page, ...rest }: BrowserTest): Promise<void> {
  // The ledger of the developer would change the report.
  const env = { ...process.env, SERVICE_LOCAL_HOME: join(directory, 'home') };
  spawnSync(process.execPath, [cli, 'backtest', bot, '--quiet', '--out', directory], { env });
  await page.setViewportSize({ width: 1280, height: 1280 });
  await page.goto(pathToFileURL(join(directory, 'report.html')).href);
  await page.locator('canvas').first().waitFor();
  await take({ page, ...rest }, 'report.png');
}

async function takeLicenses(at: BrowserTest): Promise<void> {
  await seedFleet(at.identity.storage, Date.now(), 240);
  await at.page.setViewportSize({ width: 1280, height: 900 });
  await at.open('/identity/license');
  await take(at, 'licenses.png');
}

/** Takes the pages of the same bot over the same bars, at ninety days per second. */
async function takeBot(at: BrowserTest): Promise<void> {
  const { page, server, identity, administrator } = at;
  const data = join(root, 'examples/data/sp500-daily.csv');
  const toCatalogue = ['data', 'import', data, '--symbol', 'SPX', '--timeframe', '1d'];
  spawnSync(process.execPath, [cli, ...toCatalogue], { env: { ...process.env, ...server.env } });
  const terms = { label: 'screenshots', scopes: ['write', 'trade'], expires_in_seconds: 3600 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms as never),
  );
  const send = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  };
  const { spec, ...rest } = parse(readFileSync(bot, 'utf8')) as { readonly spec: object };
  const risk = Object.keys(NO_RISK_LIMITS).map((name) => [name, { unlimited: 'on paper' }]);
  const changes = {
    data: { source: 'catalog://SPX', timeframe: '1d' },
    risk: Object.fromEntries(risk) as object,
  };
  await send('/bots', { document: { ...rest, spec: { ...spec, ...changes } } });
  const session = { from: '2016-01-04', speed: 90 * 86_400 };
  await send('/bots/sma-crossover/paper/start', session);
  await page.setViewportSize({ width: 1280, height: 1120 });
  await at.open('/console/bots/sma-crossover');
  // Three years on, while it holds something.
  await page.waitForFunction(
    () =>
      document.querySelector('[data-figure=time]')!.textContent > '2018-09' &&
      document.querySelector('#positions-table tbody tr') !== null &&
      !document.querySelector<HTMLElement>('#positions-table')!.hidden,
    undefined,
    { timeout: 60_000 },
  );
  await take(at, 'bot.png');
}
