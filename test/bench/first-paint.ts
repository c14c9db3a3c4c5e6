/**
 * `node first-paint.ts PAGE`: the first contentful paint of a page of the console, against a server
 * that sends the same bytes from memory to the same browser.
 */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { addToken } from '../../src/identity/tokens.ts';
import { openBrowser, type BrowserTest } from '../server/console/browser.ts';
import { addManyBots, ONE_OF_MANY } from '../server/console/many-runs.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { documentOn } from '../fleet/tasks/market.ts';
import { alternate, peakMemory, printMeasurement } from './measurement.ts';
import { randomWalk } from './random-walk.ts';

const SIZE = { bots: 10_000, runs: 100_000, running: 100 };
const BARS = 1_000_000;
const ROUNDS = 15;

const PAGES: Readonly<Record<string, string>> = {
  overview: '/console?show=all',
  bots: '/console/bots',
  runs: '/console/tasks?sort=sharpe',
  bot: `/console/bots/${ONE_OF_MANY}`,
};

const name = process.argv[2]!;
const browser = await openBrowser(startServer, { viewport: { width: 1400, height: 1600 } });
try {
  const { identity, page, url } = browser;
  await addManyBots(identity.storage, Date.now(), SIZE);
  await browser.signIn();
  const path = PAGES[name] ?? (await pathsOfLongRun(browser))[name]!;
  const floor = await serveFromMemory(page, url + path);
  const pairs = await alternate(ROUNDS, {
    floor: () => firstPaintOf(page, floor.url + path),
    ours: () => firstPaintOf(page, url + path),
  });
  const { pid } = browser.server as RunningServer;
  printMeasurement({ pairs, peakBytes: peakMemory(pid) });
  floor.close();
} finally {
  await browser.close();
}

/** Backtests a million bars. */
async function pathsOfLongRun({ identity, administrator, server, url }: BrowserTest) {
  await importBars(join(server.env['SERVICE_LOCAL_HOME']!, 'catalogue'), randomWalk(BARS), {
    symbol: 'LONG',
    timeframe: '1m',
    hasVolume: true,
    origin: 'made up',
    importedAt: new Date().toISOString(),
  });
  const terms = { label: 'bench', scopes: ['read', 'write'], expires_in_seconds: 3600 } as const;
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms),
  );
  const authorization = { authorization: `Bearer ${token}` };
  const post = async (path: string, body: object): Promise<{ readonly task_id: string }> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { ...authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as { readonly task_id: string };
  };
  await post('/bots', { document: documentOn('long', 'LONG', '1m') });
  const { task_id } = await post('/bots/long/backtest', {});
  // The stream of a task ends with it.
  const stream = await fetch(`${url}/tasks/${task_id}/events`, { headers: authorization });
  const events = await stream.text();
  if (!events.includes('"success"'))
    throw new Error(`the backtest failed: ${(server as RunningServer).log()}`);
  const run = `/console/tasks/${task_id}`;
  return { run, report: `${run}/report`, trades: `${run}/trades` } as Record<string, string>;
}

interface Recorded {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Records what a page loads, and serves it. */
async function serveFromMemory(page: Page, address: string) {
  const recorded = new Map<string, Recorded>();
  const reads: Promise<unknown>[] = [];
  page.on('response', (response) => {
    const { pathname, search } = new URL(response.url());
    const headers = response.headers();
    if (!response.ok() || headers['content-type']?.startsWith('text/event-stream') === true) return;
    const kept = ['content-type', 'cache-control', 'content-security-policy'].flatMap((header) =>
      headers[header] === undefined ? [] : [[header, headers[header]] as const],
    );
    const read = async (): Promise<void> => {
      const body = await response.body();
      recorded.set(pathname + search, { headers: Object.fromEntries(kept), body });
    };
    // The bodies of redirects and of aborted requests cannot be read.
    reads.push(read().catch(() => {}));
  });
  await page.goto(address);
  await Promise.all(reads);
  page.removeAllListeners('response');
  const server = createServer(({ url }, answer) => {
    const found = recorded.get(url!);
    if (found === undefined) answer.writeHead(404).end();
    else answer.writeHead(200, found.headers).end(found.body);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Milliseconds from the beginning of the navigation to the last first paint of the page and its frames. */
async function firstPaintOf(page: Page, address: string): Promise<number> {
  await page.goto(address);
  const paints = await Promise.all(
    page.frames().map((frame) =>
      frame.evaluate(
        () =>
          new Promise<{ readonly origin: number; readonly paint: number }>((resolve) => {
            new PerformanceObserver((list) => {
              const [entry] = list.getEntriesByName('first-contentful-paint');
              if (entry === undefined) return;
              resolve({ origin: performance.timeOrigin, paint: entry.startTime });
            }).observe({ type: 'paint', buffered: true });
          }),
      ),
    ),
  );
  const { origin } = paints[0]!;
  return Math.max(...paints.map((one) => one.origin + one.paint - origin));
}
