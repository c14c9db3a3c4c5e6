/** A server on which every page of the console shows something, and the paths of those pages. */
import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { v7 as uuidv7 } from 'uuid';
import { parse } from 'yaml';
import { NO_RISK_LIMITS } from '../../../src/engine/config.ts';
import { appendEvents } from '../../../src/events/append.ts';
import { addToken } from '../../../src/identity/tokens.ts';
import { BIN } from '../../cli/service-local.ts';
import type { BrowserTest } from './browser.ts';
import { seedFleet } from './fleet.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');
const SYMBOL = 'SPX';

/** Ids of what `fillServer` has made. */
export interface Filled {
  readonly backtests: readonly [string, string];
  /** A finished task of each other kind, and a backtest that failed. */
  readonly others: readonly string[];
  readonly paper: string;
  readonly chat: string;
  readonly passkey_id: string;
}

/** Fills a server with installations, and with bots that trade, have traded, are halted, and are new. */
export async function fillServer(browser: BrowserTest): Promise<Filled> {
  const { storage } = browser.identity;
  await seedFleet(storage, Date.now(), 240);
  importDays(browser);
  const send = await apiOf(browser);
  const end = async (path: string, body: object): Promise<string> => {
    const { task_id } = await send<{ task_id: string }>('POST', path, body);
    // The stream of a task ends with it.
    await send('GET', `/tasks/${task_id}/events`);
    return task_id;
  };
  const trend = { fast: 10, slow: 30 };
  const { id } = await createBot('sma-crossover', 'SMA crossover on the S&P 500', {
    strategy: { name: 'sma_crossover', params: trend },
  });
  // Ten days of the market each second, for five minutes.
  await send('POST', '/bots/sma-crossover/paper/start', { from: '2008-01-02', speed: 10 * 86_400 });
  await raiseAlert(browser, id);
  await createBot('breakout', 'Donchian breakout', {
    strategy: { name: 'donchian_breakout', params: { entry: 20, exit: 10 } },
  });
  await createBot('halted', 'RSI reversion', { strategy: { name: 'rsi_reversion' } });
  await send('POST', '/bots/halted/halt', { reason: 'The spread is wider than in the backtests' });
  await createBot('draft', 'Buy and hold', { strategy: { name: 'buy_and_hold' } });
  await createBot('talk', 'Research on the S&P 500', {
    kind: 'research',
    strategy: { name: 'sma_crossover', params: trend },
  });
  const window = { from: '2015-01-02' };
  const search = { ...window, parameters: ['fast=5,10', 'slow=30:50:10'], objectives: ['sharpe'] };
  const filled: Filled = {
    backtests: [
      await end('/bots/talk/backtest', {}),
      await end('/bots/talk/backtest', { params: { fast: 20, slow: 60 } }),
    ],
    others: [
      await end('/bots/talk/analyses', { kind: 'sweep', ...search }),
      await end('/bots/talk/analyses', {
        kind: 'walk_forward',
        ...search,
        train: '2y',
        test: '1y',
      }),
      await end('/bots/talk/analyses', { kind: 'robustness', ...search, permutations: 3 }),
      await end('/bots/breakout/conformance', { cases: ['A03', 'C04'] }),
      await failTask(browser, await end('/bots/talk/backtest', window)),
    ],
    paper: await end('/bots/breakout/paper/start', { from: '2018-01-02', speed: 'max' }),
    chat: await chat(),
    passkey_id: await addPasskey(browser),
  };
  const { document } = await send<{ document: { spec: object } }>('GET', '/bots/sma-crossover');
  const strategy = { name: 'sma_crossover', params: { fast: 15, slow: 40 } };
  await send('PUT', '/bots/sma-crossover', {
    document: { ...document, spec: { ...document.spec, strategy } },
  });
  return filled;

  function createBot(
    slug: string,
    name: string,
    changes: object,
  ): Promise<{ readonly id: string }> {
    return send('POST', '/bots', { document: documentOf(slug, name, changes) });
  }

  async function chat(): Promise<string> {
    const ask = (body: object) => send<{ session_id: string }>('POST', '/bots/talk/chat', body);
    const { session_id } = await ask({ prompt: 'What is the Sharpe ratio?' });
    await ask({ prompt: 'What was the worst trade?', session_id });
    return session_id;
  }
}

/** The example bot, on data of the catalogue and with limits. */
function documentOf(slug: string, name: string, changes: object): object {
  const { spec, ...rest } = parse(readFileSync(join(EXAMPLES, 'sma-crossover.yaml'), 'utf8')) as {
    readonly spec: object;
  };
  const unlimited = Object.keys(NO_RISK_LIMITS).map((limit) => [limit, { unlimited: 'on paper' }]);
  const risk = {
    ...(Object.fromEntries(unlimited) as object),
    max_drawdown_pct: 0.6,
    max_position_pct: 1.2,
    max_instruments: 3,
  };
  const data = { source: `catalog://${SYMBOL}`, timeframe: '1d' };
  return { ...rest, metadata: { name, slug }, spec: { ...spec, data, risk, ...changes } };
}

/** Imports twenty years of daily bars into the catalogue of the server. */
function importDays({ server }: BrowserTest): void {
  const file = join(EXAMPLES, 'data/sp500-daily.csv');
  const args = ['data', 'import', file, '--symbol', SYMBOL, '--timeframe', '1d'];
  const env = { ...process.env, ...server.env };
  const { status, stderr } = spawnSync(process.execPath, [BIN, ...args], { env, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

/** Returns a function that calls the API of the server with a token of the administrator. */
async function apiOf({ identity, administrator, url }: BrowserTest) {
  const scopes = ['read', 'write', 'trade', 'halt'] as const;
  const terms = { label: 'Continuous integration', scopes, expires_in_seconds: 86_400 };
  const { token } = await identity.storage.write((tx) =>
    addToken(tx, Date.now(), 'operator', administrator.id, terms),
  );
  return async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'if-match': '*',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${text}`);
    return (path.endsWith('/events') ? undefined : JSON.parse(text)) as T;
  };
}

async function raiseAlert({ identity }: BrowserTest, bot_id: string): Promise<void> {
  const now = Date.now();
  const payload = { control: 'max_order_qty', severity: 'critical', event_seq: 1, count: 1 };
  await identity.storage.write((tx) =>
    appendEvents(tx, bot_id, now, [
      { kind: 'alert.raised', version: 1, occurred_at: now, payload },
    ]),
  );
}

/** Records the end of a backtest as a failure. */
async function failTask({ identity }: BrowserTest, task_id: string): Promise<string> {
  const error = {
    code: 'strategy_failed',
    message: 'the strategy failed on 2015-06-01: price is not a number',
    remedy: 'Correct the strategy, and run the backtest again.',
  };
  const failed = { status: 'failed', error: JSON.stringify(error), result: null } as const;
  await identity.storage.write(async (tx) => {
    await tx.updateTable('tasks').set(failed).where('task_id', '=', task_id).execute();
    await tx
      .updateTable('bot_deployments')
      .set({ status: 'failed', result_summary: null })
      .where('task_id', '=', task_id)
      .execute();
  });
  return task_id;
}

async function addPasskey({ identity, administrator }: BrowserTest): Promise<string> {
  const passkey_id = uuidv7();
  await identity.storage.write((tx) =>
    tx
      .insertInto('passkeys')
      .values({
        passkey_id,
        administrator_id: administrator.id,
        credential_id: 'AAAA',
        public_key: 'AAAA',
        counter: 0,
        transports: '["internal"]',
        site: 'localhost',
        name: 'Laptop',
        created_at: Date.now(),
        last_used_at: null,
      })
      .execute(),
  );
  return passkey_id;
}

/** Paths of pages by the route that serves them. */
export function pathsOf(filled: Filled): Readonly<Record<string, readonly string[]>> {
  const { backtests, others, paper, chat, passkey_id } = filled;
  const [one, other] = backtests;
  const compared = `id=${one}&id=${other}`;
  const lease = '/identity/license/leases/0198c0de-0000-7000-8000-000000000007';
  const installation = '/identity/license/deployments/fleet-00007';
  const bot = '/console/bots/sma-crossover';
  return {
    '/console': ['/console', '/console?show=all'],
    '/console/sign-in': [],
    '/console/bots': ['/console/bots', '/console/bots?q=nothing'],
    '/console/bots/new': ['/console/bots/new'],
    '/console/bots/:bot_ref': [
      bot,
      '/console/bots/breakout',
      '/console/bots/halted',
      '/console/bots/draft',
      '/console/bots/talk',
    ],
    '/console/bots/:bot_ref/edit': [`${bot}/edit`],
    '/console/bots/:bot_ref/events': [`${bot}/events`, `${bot}/events?at_seq=4`],
    '/console/bots/:bot_ref/runs': ['/console/bots/talk/runs', '/console/bots/draft/runs'],
    '/console/bots/:bot_ref/backtest': [`${bot}/backtest`],
    '/console/bots/:bot_ref/paper': [`${bot}/paper`, '/console/bots/talk/paper'],
    '/console/bots/:bot_ref/trades': ['/console/bots/breakout/trades'],
    '/console/bots/:bot_ref/versions': [`${bot}/versions?from=1&to=2`],
    '/console/bots/:bot_ref/analyses': [`${bot}/analyses`],
    '/console/bots/:bot_ref/rts6': [`${bot}/rts6`],
    '/console/bots/:bot_ref/rts6/:section': [`${bot}/rts6/pre-trade`, `${bot}/rts6/nature`],
    '/console/bots/:bot_ref/rts6/gaps': [`${bot}/rts6/gaps`],
    '/console/bots/:bot_ref/rts6/deficiencies': [`${bot}/rts6/deficiencies`],
    '/console/bots/:bot_ref/rts6/attest': [`${bot}/rts6/attest`],
    '/console/rts6': ['/console/rts6'],
    '/console/bots/:bot_ref/halt': [`${bot}/halt`],
    '/console/bots/:bot_ref/chat': [
      '/console/bots/talk/chat',
      `/console/bots/talk/chat?session=${chat}`,
    ],
    '/console/tasks': [
      '/console/tasks',
      '/console/tasks?sort=sharpe',
      '/console/tasks?status=queued',
    ],
    '/console/tasks/compare': [`/console/tasks/compare?${compared}`],
    '/console/tasks/compare/report': [`/console/tasks/compare/report?${compared}`],
    '/console/tasks/:task_id': [one, ...others, paper].map((id) => `/console/tasks/${id}`),
    '/console/tasks/:task_id/report': [one, ...others.slice(0, 3)].map(
      (id) => `/console/tasks/${id}/report`,
    ),
    '/console/tasks/:task_id/rows/:name': [`/console/tasks/${one}/rows/equity.csv?row=5`],
    '/console/tasks/:task_id/trades': [`/console/tasks/${one}/trades`],
    // A download.
    '/console/tasks/:task_id/trades.csv': [],
    '/console/halts': ['/console/halts'],
    '/console/halt-all': ['/console/halt-all'],
    '/console/notifications': ['/console/notifications'],
    '/console/audit': ['/console/audit'],
    '/console/audit/verification': ['/console/audit/verification'],
    '/console/account': ['/console/account'],
    '/console/account/passkeys/:passkey_id': [`/console/account/passkeys/${passkey_id}`],
    '/identity/license': ['/identity/license', '/identity/license?state=none'],
    '/identity/license/deployments/:deployment_id': [installation],
    '/identity/license/deployments/:deployment_id/revoke': [`${installation}/revoke`],
    '/identity/license/leases/:lease_id': [lease],
    '/identity/license/leases/:lease_id/revoke': [`${lease}/revoke`],
    '/identity/license/issue': [
      '/identity/license/issue',
      '/identity/license/issue?deployment_id=fleet-00007',
    ],
    '/identity/license/keys': ['/identity/license/keys'],
    '/identity/license/devices': ['/identity/license/devices'],
    '/identity/license/customers': ['/identity/license/customers'],
  };
}
