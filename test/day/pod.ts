/** The process in a pod of the simulated cluster: `trade` of the shipped runner. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Bot } from '../../src/bots/load-bot.ts';
import { readChangedSpec } from '../../src/bots/hosted.ts';
import type { Log } from '../../src/base/log.ts';
import type { RunnerClient } from '../../src/client/runner.ts';
import { openExchangeVenue } from '../../src/trading/venues/exchange-venue.ts';
import type { CcxtExchange } from '../../src/trading/venues/ccxt-types.ts';
import type { ExchangeDefinition } from '../../src/trading/venues/exchanges-file.ts';
import { openFeed } from '../../src/trading/host/pod/deployed-bot.ts';
import type { RunConfig } from '../../src/trading/host/pod/run-config.ts';
import { openJournal } from '../../src/trading/host/pod/runner-journal.ts';
import type { RunnerMetrics } from '../../src/trading/host/pod/runner-metrics.ts';
import { connectToServer } from '../../src/trading/host/pod/server-connection.ts';
import { trade } from '../../src/trading/host/pod/trade.ts';
import { RESTLESS } from './strategy.ts';

export interface PodFiles {
  readonly 'run.json': string;
  readonly 'bot.json': string;
}

export interface PodOptions {
  readonly files: PodFiles;
  /** Mounted directories: the state of the deployment, and credentials of its account. */
  readonly volume: string;
  readonly credentials: string;
  readonly definition: ExchangeDefinition;
  readonly connectToExchange: (client: CcxtExchange) => void;
  /** Connection to the server. */
  readonly client: RunnerClient;
  readonly log: Log;
  /** Aborted by SIGTERM. */
  readonly stop: AbortSignal;
}

const NO_METRICS: RunnerMetrics = {
  count() {},
  denying() {},
  alerted() {},
  show() {},
  text: async () => '',
  values: async () => [],
  contentType: '',
};

const bots = new Map<string, ReturnType<typeof readChangedSpec>>();

/** Reads each file once, which takes longer than starting a pod. */
function readBot(file: string): ReturnType<typeof readChangedSpec> {
  const bot = bots.get(file) ?? readChangedSpec(JSON.parse(file), {});
  bots.set(file, bot);
  return bot;
}

/** @returns how it ended. */
export async function runPod(options: PodOptions): Promise<string> {
  const { files, volume, credentials, definition, client, log, stop } = options;
  const { connectToExchange } = options;
  const written = JSON.parse(files['run.json']) as RunConfig;
  const config: RunConfig = {
    ...written,
    state_dir: volume,
    exchange: { name: 'exchange', ...definition },
    venue: { type: 'exchange', credentials_dir: credentials },
  };
  const { spec, hash } = readBot(files['bot.json']);
  const { deployment_id, version } = config;
  const owner = { deployment_id, version, spec_hash: hash, venue: 'exchange' };
  const journal = await openJournal(join(volume, 'runner'), owner);
  if (journal.end !== undefined) {
    await new Promise((resolve) => stop.addEventListener('abort', resolve));
    return 'ended';
  }
  const end = await trade({
    config,
    bot: {
      // Servers accept only built-in strategies at an exchange, which place no limits and stops.
      bot: { spec, strategy: RESTLESS, params: {} } as unknown as Bot,
      hash,
      signals: undefined,
      needsSteps: false,
      take: async () => {},
      warmUp() {},
      close: async () => {},
    },
    journal,
    gate: undefined,
    metrics: NO_METRICS,
    log,
    stop,
    instanceId: randomUUID(),
    catalogueDir: '',
    // A busy machine must not decide what happens.
    timeoutMs: Infinity,
    connections: {
      openExchangeVenue: (given) => openExchangeVenue({ ...given, connect: connectToExchange }),
      openFeed: (given, bot, catalogueDir) =>
        openFeed(given, bot, catalogueDir, log, connectToExchange),
      connectToServer: (given) => connectToServer({ ...given, client }),
    },
    onView() {},
  });
  await journal.close();
  return end.outcome;
}
