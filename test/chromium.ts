import { tmpdir } from 'node:os';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

/** A browser without a window, which ends with its first page: this build of it can do no more. */
export async function startChromium(args: readonly string[] = []): Promise<Browser> {
  // Nothing is drawn in three dimensions: a graphics card made of software is only work.
  chromium.setGraphicsMode = false;
  return playwright.launch({
    executablePath: await unpacked(),
    args: [...chromium.args, '--disable-background-networking', ...args],
    headless: true,
  });
}

/** It is unpacked once for all runs, which is too much to leave in memory. */
async function unpacked(): Promise<string> {
  const temporary = tmpdir();
  process.env['TMPDIR'] = process.env['SERVICE_LOCAL_TEST_DISK'] ?? temporary;
  try {
    return await chromium.executablePath();
  } finally {
    process.env['TMPDIR'] = temporary;
  }
}
