/**
 * `npm run screenshots`: the pictures of the README: the demo's own report, and the console of a
 * server that administers licenses and has a bot that trades on paper.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { NO_RISK_LIMITS } from '../src/engine/config.ts';
import { addToken } from '../src/identity/tokens.ts';
import { openBrowser, type BrowserTest } from './server/console/browser.ts';
import { seedFleet } from './server/console/fleet.ts';

const root = join(import.meta.dirname, '..');
const cli = join(root, 'bin/service-local.ts');
const bot = join(root, 'examples/sma-crossover.yaml');
const directory = mkdtempSync(join(tmpdir(), 'service-local-screenshots-'));
const browser = await openBrowser();
try {
  await takeReport(browser);
  await browser.signIn();
  await takeLicenses(browser);
  await takeBot(browser);
} finally {
  await browser.close();
  rmSync(directory, { recursive: true });
}

async function take({ page }: BrowserTest, name: string): Promise<void> {
  await page.screenshot({ path: join(root, 'examples', name) });
}

async function takeReport({ page, ...rest }: BrowserTest): Promise<void> {
  spawnSync(process.execPath, [cli, 'backtest', bot, '--quiet', '--out', directory]);
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
