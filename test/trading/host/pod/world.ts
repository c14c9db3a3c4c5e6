import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { vi, type TestContext } from 'vitest';
import { engineConfig } from '../../../../src/bots/spec.ts';
import { createLog } from '../../../../src/base/log.ts';
import { MINUTE } from '../../../../src/base/durations.ts';
import { openBot } from '../../../../src/trading/host/pod/deployed-bot.ts';
import { readRunConfig } from '../../../../src/trading/host/pod/run-config.ts';
import { openJournal } from '../../../../src/trading/host/pod/runner-journal.ts';
import { runDeployment, type RunResult } from '../../../../src/trading/host/pod/run-deployment.ts';
import type { VenueTimes } from '../../../../src/trading/host/pod/trade-options.ts';
import { resolveSettings } from '../../../../src/base/resolve-settings.ts';
import type { SessionState } from '../../../../src/events/session-state.ts';
import { TradingSession } from '../../../../src/trading/trading-session.ts';
import { SCRATCH } from '../../../scratch.ts';
import { startExchange, type LocalExchange } from '../../local-exchange.ts';
import { startTestServer, type TestServer } from './test-server.ts';

const PROCESS = fileURLToPath(new URL('./process.ts', import.meta.url));

export const BTC = 'BTC/USDT';
export const DEPLOYMENT = '01980000-0000-7000-8000-000000000001';
export const TOKEN = 'canary-token-of-the-runner';
export const CREDENTIALS = {
  apiKey: 'canary-key-of-an-account',
  secret: 'canary-secret-of-an-account',
};
/** Times for the local exchange, which answers at once and streams bars that are hours old. */
export const VENUE_TIMES = { settleMs: 100, timeoutMs: 1000, freshForMs: Infinity };

/** Closes of bars, by the action of the strategy at them. */
export const ACTS = { buy: 101, sell: 102, limit: 103, fail: 104 } as const;

export const STRATEGY = `
export default {
  name: 'told', description: 'Does what the closes say.', params: {},
  instruments: { min: 1, max: 1 },
  create({ instruments: [instrument], broker }) {
    return {
      onBar() {
        const { close } = instrument;
        if (close === 101) broker.order({ instrument, side: 'buy', quantity: 1 });
        if (close === 102) broker.order({ instrument, side: 'sell', quantity: 1 });
        if (close === 103) broker.order({ instrument, side: 'buy', quantity: 1, type: 'limit', limit: 50 });
        if (close === 104) throw new Error('asked to fail');
      },
    };
  },
};
`;

const LIMITS =
  'max_order_value max_order_qty price_collar_bps max_messages_per_second max_position_pct max_daily_loss_pct max_drawdown_pct max_instruments';
const unlimited = Object.fromEntries(
  LIMITS.split(' ').map((name) => [name, { unlimited: 'it is a test' }]),
);

export const SPEC = {
  apiVersion: 'bots/v1',
  kind: 'Bot',
  metadata: { name: 'Told', slug: 'told' },
  spec: {
    kind: 'trading',
    universe: { symbols: [BTC], currency: 'USDT' },
    data: { source: 'catalog://BTC', timeframe: '1m' },
    strategy: { module: './told.mjs' },
    risk: unlimited,
    engine: { cash: '1000' },
  },
};

export interface World {
  readonly directory: string;
  readonly exchange: LocalExchange;
  readonly server: TestServer;
  readonly config: string;
  /** Streams the next bar, which closes at this price. */
  readonly bar: (close: number) => Promise<void>;
  /** Starts one, and waits until it hears of bars. */
  readonly begin: (options?: RunOptions) => Promise<Run>;
  readonly run: (options?: RunOptions) => Run;
  /** The same in a process of its own. */
  readonly beginProcess: () => Promise<{ readonly kill: () => Promise<void> }>;
  /** Another configuration, with these fields. */
  readonly change: (fields: object) => string;
  /** State of a new session after the inputs of the log. */
  readonly replayed: () => Promise<SessionState>;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly config?: string;
  readonly times?: VenueTimes;
}

export interface Run {
  readonly done: Promise<RunResult>;
  readonly stop: () => void;
  readonly log: string[];
  /** Resolves when it has logged such a line. */
  readonly logged: (text: string) => Promise<void>;
  /** Response of its health server to GET. */
  readonly get: (path: string) => Promise<Response>;
}

export const soon = { timeout: 30_000, interval: 20 };

/** A bot, an exchange that is market and venue, and a server that supervises the bot. */
export async function newWorld({
  onTestFinished,
}: Pick<TestContext, 'onTestFinished'>): Promise<World> {
  const directory = mkdtempSync(join(SCRATCH, 'service-local-run-'));
  const exchange = await startExchange({ symbols: [BTC], credentials: CREDENTIALS });
  exchange.setBalance('USDT', 1000);
  exchange.setPrice(BTC, 100);
  const server = await startTestServer(TOKEN);
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  write('told.mjs', STRATEGY);
  write('bot.json', JSON.stringify(SPEC));
  write('bundle.json', JSON.stringify({ 'told.mjs': STRATEGY }));
  write('token', `${TOKEN}\n`);
  for (const [name, text] of Object.entries(CREDENTIALS)) write(name, text);
  const config = join(directory, 'run.json');
  write(
    'run.json',
    JSON.stringify({
      apiVersion: 'run/v1',
      kind: 'Run',
      bot: './bot.json',
      deployment_id: DEPLOYMENT,
      state_dir: './state',
      exchange: { name: 'local', ...exchange.definition },
      venue: { type: 'exchange', credentials_dir: '.' },
      control: { url: server.url, token_file: './token' },
      health: { port: 0 },
    }),
  );
  const runs: Run[] = [];
  onTestFinished(async () => {
    for (const run of runs) run.stop();
    server.isGone = true;
    await Promise.allSettled(runs.map(({ done }) => done));
    await server.close();
    await exchange.close();
    rmSync(directory, { recursive: true });
  });
  let subscriptions = 0;
  const begin = (options?: RunOptions): Run => {
    const run = runInProcess(options?.config ?? config, directory, options);
    runs.push(run);
    return run;
  };
  let time = Math.floor(Date.now() / MINUTE) * MINUTE - 600 * MINUTE;
  return {
    directory,
    exchange,
    server,
    config,
    async bar(close) {
      const texts = (price: number) => [price, price, price, price, 1].map(String) as never;
      await exchange.stream(BTC, time, texts(close));
      time += MINUTE;
      await exchange.stream(BTC, time, texts(100));
    },
    async begin(options) {
      const run = begin(options);
      subscriptions += 1;
      const early = run.done.then((result) => {
        throw new Error(`it ended: ${JSON.stringify(result)}\n${run.log.join('\n')}`);
      });
      await Promise.race([exchange.subscribed(BTC, subscriptions), early]);
      return run;
    },
    run: begin,
    async beginProcess() {
      subscriptions += 1;
      const child = spawn(process.execPath, [PROCESS, config, directory], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const ended = once(child, 'exit');
      onTestFinished(() => void child.kill('SIGKILL'));
      await exchange.subscribed(BTC, subscriptions);
      return {
        async kill() {
          child.kill('SIGKILL');
          await ended;
        },
      };
    },
    change(fields) {
      const name = `run-${Object.keys(fields).join('-')}.json`;
      const whole = JSON.parse(readFileSync(config, 'utf8')) as object;
      write(name, JSON.stringify({ ...whole, ...fields }));
      return join(directory, name);
    },
    async replayed() {
      const { bot, hash: spec_hash } = await openBot(
        readRunConfig(config),
        { memoryMb: 64, timeoutMs: 30_000 },
        AbortSignal.timeout(30_000),
      );
      const owner = { deployment_id: DEPLOYMENT, version: 1, spec_hash, venue: 'exchange' };
      const journal = await openJournal(join(directory, 'state', 'runner'), owner);
      const setup = {
        symbols: [BTC],
        strategy: bot.strategy,
        params: bot.params,
        config: engineConfig(bot.spec),
        timeoutMs: Infinity,
        venue: { deployment_id: DEPLOYMENT, rules: journal.rules! },
      };
      const session = await TradingSession.resume(setup, journal.inputs());
      await journal.close();
      return session.state();
    },
  };
}

export function runInProcess(
  config: string,
  directory: string,
  { env: more, times }: RunOptions = {},
): Run {
  const stop = new AbortController();
  const log: string[] = [];
  const env = { SERVICE_LOCAL_HOME: join(directory, 'home'), ...more };
  const done = runDeployment(readRunConfig(config), {
    settings: {
      ...resolveSettings(directory, env).values,
      // A busy machine may pause this process for seconds.
      strategy_timeout_seconds: 30,
      // Enforced only in tests with a lease.
      license_enforcement_enabled: 'SERVICE_LICENSE_LEASE_PATH' in env,
    },
    env,
    log: createLog((line) => log.push(line), true),
    stop: stop.signal,
    venueTimes: { ...VENUE_TIMES, ...times },
  });
  done.catch(() => {});
  const logged = (text: string): Promise<void> =>
    vi.waitFor(
      () =>
        assert(
          log.some((line) => line.includes(text)),
          `${text}\n${log.join('\n')}`,
        ),
      soon,
    );
  return {
    done,
    stop: () => stop.abort(),
    log,
    logged,
    async get(path) {
      await logged('health: ');
      const url = /health: ([^"]*)/.exec(log.join('\n'))![1]!;
      return fetch(url + path);
    },
  };
}
