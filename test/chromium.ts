import { tmpdir } from 'node:os';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

/** Starts a headless browser. This build of Chromium ends with its first page. */
export async function startChromium(args: readonly string[] = []): Promise<Browser> {
  // The pages need no WebGL, whose software renderer is slow.
  chromium.setGraphicsMode = false;
  return playwright.launch({
    executablePath: await unpacked(),
    args: [...chromium.args, '--disable-background-networking', ...args],
    headless: true,
  });
}

/** Unpacks the browser once for all runs, to the disk, since it is too large to stay in memory. */
async function unpacked(): Promise<string> {
  const temporary = tmpdir();
  process.env['TMPDIR'] = process.env['SERVICE_LOCAL_TEST_DISK'] ?? temporary;
  try {
    return await chromium.executablePath();
  } finally {
    process.env['TMPDIR'] = temporary;
  }
}
