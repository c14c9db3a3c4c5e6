import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { appendEvents } from '../../src/events/append.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { openBrowser, type BrowserTest } from '../server/console/browser.ts';
import { seedFleet } from '../server/console/fleet.ts';
import { startServer } from '../server/running.ts';
import { tradingDocument } from '../server/trader.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import type { BarePage } from './bare-pages.ts';
import { addBots } from './bots.ts';
import { figure, median, round, type Figure } from './figure.ts';

const DEPLOYMENTS = 10_000;
const BOTS = 1000;
const ROUNDS = 7;
const GOALS = { paintMs: 300, pageKiB: 150, frameMs: 200 };

const EVENTS = { perSecond: 1000, seconds: 8 };
/** Two days in a second: it trades for as long as this takes. */
const SPEED = 2 * 86_400;

const SIGN_IN = '/console/sign-in';
const BOT = '/console/bots/watched';

/** Pages of the console in a real browser, with many licenses and bots, and one that follows many events. */
export async function pages(): Promise<Figure[]> {
  const browser = await openBrowser(startServer);
  try {
    const { storage } = browser.identity;
    await seedFleet(storage, Date.now(), DEPLOYMENTS);
    await addBots(storage, BOTS);
    const { paths, bot_id } = await makeWork(browser);
    return [...(await paints(browser, paths)), ...(await frames(browser, bot_id))];
  } finally {
    await browser.close();
  }
}

/** A bot with a backtest and a paper session. @returns a page of each kind. */
async function makeWork({
  identity: { storage },
  administrator,
  server: { url, env },
}: BrowserTest): Promise<{ readonly paths: readonly string[]; readonly bot_id: string }> {
  await fillCatalogue(join(env['SERVICE_LOCAL_HOME']!, 'catalogue'), 1);
  const scopes = ['read', 'write', 'trade'] as const;
  const terms = { label: 'bench', scopes, expires_in_seconds: 3600 };
  const { token } = await storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms),
  );
  const send = async <T>(path: string, body: object): Promise<T> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as T;
  };
  const document = tradingDocument('watched', 'SPX', '1d', 3);
  const { id: bot_id } = await send<{ id: string }>('/bots', { document });
  const { task_id } = await send<{ task_id: string }>('/bots/watched/backtest', {});
  for (let hasEnded = false; !hasEnded; await sleep(100)) {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}/tasks/${task_id}`, { headers });
    hasEnded = ((await answer.json()) as { ended_at: string | null }).ended_at !== null;
  }
  await send('/bots/watched/paper/start', { speed: SPEED });
  const [licenses, deployment] = ['/identity/license', 'fleet-05000'];
  const lease = `${licenses}/leases/0198c0de-0000-7000-8000-000000005000`;
  const paths = [
    licenses,
    `${licenses}?state=expired`,
    `${licenses}?search=05000`,
    `${licenses}/deployments/${deployment}`,
    `${licenses}/deployments/${deployment}/revoke`,
    lease,
    `${lease}/revoke`,
    `${licenses}/issue`,
    `${licenses}/issue?deployment_id=${deployment}`,
    `${licenses}/customers`,
    `${licenses}/devices`,
    `${licenses}/keys`,
    '/console/bots',
    BOT,
    `${BOT}/events`,
    `${BOT}/runs`,
    `${BOT}/versions`,
    `${BOT}/backtest`,
    `${BOT}/paper`,
    `${BOT}/halt`,
    '/console/halts',
    '/console/halt-all',
    '/console/tasks',
    `/console/tasks/${task_id}`,
    '/console/audit',
    '/console/audit/verification',
    '/console/account',
  ];
  return { paths, bot_id };
}

interface Paint {
  readonly path: string;
  readonly first: number;
  readonly later: number[];
  readonly bare: number[];
  /** Of the page and its files, but for the library of its charts. */
  readonly bytes: number;
}

async function paints(browser: BrowserTest, paths: readonly string[]): Promise<Figure[]> {
  const { page, url } = browser;
  const measured: Paint[] = [];
  const copies: Record<string, BarePage> = {};
  const session = await page.context().newCDPSession(page);
  const visit = async (path: string): Promise<void> => {
    await session.send('Network.clearBrowserCache');
    const first = await timeOfPaint(page, url + path);
    const bytes = await copy(browser, path, copies);
    measured.push({ path, first, later: [], bare: [], bytes });
  };
  await visit(SIGN_IN);
  await browser.signIn();
  for (const path of paths) await visit(path);
  const bare = await startBare(copies);
  try {
    for (let turn = 0; turn < ROUNDS; turn += 1) {
      for (const { path, later, bare: floor } of measured) {
        // Who is signed in is led on.
        if (path === SIGN_IN) await browser.signOut();
        later.push(await timeOfPaint(page, url + path));
        if (path === SIGN_IN) await browser.signIn();
        floor.push(await timeOfPaint(page, bare.url + path));
      }
    }
  } finally {
    bare.stop();
  }
  const worst = (what: string, of: (one: Paint) => number, goal: number, unit: string): Figure => {
    const [most] = measured.toSorted((a, b) => of(b) - of(a));
    const texts = [goal, of(most!)].map((value) => `${round(value)} ${unit}`);
    const name = `console, ${what}: ${kindOf(most!.path)}`;
    return figure(name, [texts[0]!, texts[1]!], of(most!) / goal, { atMost: 1 });
  };
  return [
    ...measured.map(({ path, first, later, bare: floor, bytes }) => {
      const [typical, least] = [median(later), median(floor)];
      const about = `first ${round(first)} ms, ${round(bytes / 1024)} KiB`;
      const texts = [`${round(least)} ms`, `${round(typical)} ms`] as const;
      return figure(`console, paint of ${kindOf(path)} (${about})`, texts, typical / least);
    }),
    worst('slowest first paint', ({ first }) => first, GOALS.paintMs, 'ms'),
    worst('slowest paint, median', ({ later }) => median(later), GOALS.paintMs, 'ms'),
    worst('largest page', ({ bytes }) => bytes / 1024, GOALS.pageKiB, 'KiB'),
  ];
}

/** A path without what differs from run to run. */
function kindOf(path: string): string {
  return path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, '…');
}

/** Milliseconds from the start of the visit until something is seen. */
async function timeOfPaint(page: Page, url: string): Promise<number> {
  await page.goto(url);
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => {
          const [paint] = list.getEntriesByName('first-contentful-paint');
          if (paint !== undefined) resolve(paint.startTime);
        }).observe({ type: 'paint', buffered: true });
      }),
  );
}

/** Keeps a page and its files. @returns their bytes, but for the library of the charts. */
async function copy(
  { page, url }: BrowserTest,
  path: string,
  copies: Record<string, BarePage>,
): Promise<number> {
  const get = async (of: string): Promise<BarePage> => {
    const answer = await page.context().request.get(url + of);
    if (!answer.ok()) throw new Error(`${of}: ${answer.status()}`);
    const its = answer.headers();
    const kept = ['content-type', 'content-security-policy', 'cache-control'];
    const headers = Object.fromEntries(kept.map((name) => [name, its[name]!]));
    return { headers, body: await answer.text() };
  };
  const html = await get(path);
  copies[path] = html;
  let bytes = Buffer.byteLength(html.body);
  for (const [file] of html.body.matchAll(/\/console\/assets\/[^"]+/g)) {
    copies[file] ??= await get(file);
    if (!file.endsWith('/charts.js')) bytes += Buffer.byteLength(copies[file].body);
  }
  return bytes;
}

async function startBare(
  copies: Readonly<Record<string, BarePage>>,
): Promise<{ readonly url: string; readonly stop: () => void }> {
  const bare = spawn(process.execPath, [join(import.meta.dirname, 'bare-pages.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  bare.stdin.end(JSON.stringify(copies));
  const [line] = (await once(bare.stdout, 'data')) as [Buffer];
  return { url: line.toString().trim(), stop: () => bare.kill() };
}

/** How evenly the page of a bot is drawn while it follows so many events, against none. */
async function frames({ page, identity, open }: BrowserTest, bot_id: string): Promise<Figure[]> {
  await open(BOT);
  await page.locator('#connection', { hasText: 'live' }).waitFor();
  const idle = await framesDuring(page, () => sleep(EVENTS.seconds * 1000));
  const busy = await framesDuring(page, async () => {
    const begin = performance.now();
    for (let sent = 0; sent < EVENTS.perSecond * EVENTS.seconds;) {
      const due = Math.floor(((performance.now() - begin) / 1000) * EVENTS.perSecond) - sent;
      const now = Date.now();
      const ticks = Array.from({ length: due }, (_, i) => ({
        kind: 'note.tick',
        version: 1,
        occurred_at: now,
        payload: { n: sent + i },
      }));
      if (due > 0) {
        await identity.storage.write(
          async (tx) => void (await appendEvents(tx, bot_id, now, ticks)),
        );
      }
      sent += due;
      await sleep(20);
    }
    const { event_seq: last } = await identity.storage.read
      .selectFrom('bots')
      .select('event_seq')
      .where('bot_id', '=', bot_id)
      .executeTakeFirstOrThrow();
    // Not frozen, and not left behind either.
    await page.waitForFunction(
      (seq) => Number(document.querySelector('#tail-table tbody th')!.textContent) >= seq,
      last,
    );
  });
  const what = `console, frame of a bot's page at ${EVENTS.perSecond} events/s`;
  const text = (ms: number): string => `${round(ms)} ms`;
  const compare = (name: string, of: (all: readonly number[]) => number): Figure =>
    figure(`${what}, ${name}`, [text(of(idle)), text(of(busy))], of(busy) / of(idle));
  const longest = Math.max(...busy);
  return [
    compare('median', median),
    compare('p99', (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)]!),
    figure(`${what}, longest`, [text(GOALS.frameMs), text(longest)], longest / GOALS.frameMs, {
      atMost: 1,
    }),
  ];
}

/** @returns milliseconds between one frame and the next. */
async function framesDuring(page: Page, work: () => Promise<unknown>): Promise<readonly number[]> {
  await page.evaluate(() => {
    const kept = globalThis as unknown as { frames: number[]; request: number };
    kept.frames = [];
    let last = performance.now();
    const next = (): void => {
      const now = performance.now();
      kept.frames.push(now - last);
      last = now;
      kept.request = requestAnimationFrame(next);
    };
    kept.request = requestAnimationFrame(next);
  });
  await work();
  return page.evaluate(() => {
    const kept = globalThis as unknown as { frames: number[]; request: number };
    cancelAnimationFrame(kept.request);
    return kept.frames;
  });
}
