/** `npm run screenshots`: the picture of the README, taken of the demo's own report. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const directory = mkdtempSync(join(tmpdir(), 'service-local-screenshots-'));
try {
  const cli = join(root, 'bin/service-local.ts');
  const bot = join(root, 'examples/sma-crossover.yaml');
  spawnSync(process.execPath, [cli, 'backtest', bot, '--quiet', '--out', directory]);
  const browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: [...chromium.args, '--disable-background-networking'],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 1280 } });
  await page.goto(pathToFileURL(join(directory, 'report.html')).href);
  await page.locator('canvas').first().waitFor();
  await page.screenshot({ path: join(root, 'examples/report.png') });
  await browser.close();
} finally {
  rmSync(directory, { recursive: true });
}
