/** The session of a bot as production runs it, connected to a simulated exchange. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { Bot } from '../../bots/load-bot.ts';
import type { BotSpec } from '../../bots/spec.ts';
import type { Step } from '../../engine/steps.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { openFeed } from '../../trading/host/pod/deployed-bot.ts';
import type { RunnerMetrics } from '../../trading/host/pod/runner-metrics.ts';
import type { Connections, RunEnd } from '../../trading/host/pod/trade-options.ts';
import { trade } from '../../trading/host/pod/trade.ts';
import type { Venue, VenueReport } from '../../trading/venue.ts';
import { openExchangeVenue } from '../../trading/venues/exchange-venue.ts';
import type { ExchangeDefinition } from '../../trading/venues/exchanges-file.ts';
import { connectInProcess, type Connection } from '../venue/in-process.ts';
import type { SimulatedExchange } from '../venue/simulated-exchange.ts';
import type { ControlServer } from './control-server.ts';
import type { MemoryJournal } from './memory-journal.ts';
import type { Life, VirtualTime } from './virtual-time.ts';

/** A bot under test. */
export interface TriedBot {
  readonly bot: Pick<Bot, 'spec' | 'strategy' | 'params'>;
  /** Passes steps to a strategy that runs elsewhere; see `HostedRun`. */
  readonly take?: (steps: readonly Step[]) => Promise<void>;
  /** Replaces the adapter of the exchange by a faulty one. */
  readonly adapter?: (venue: Venue, context: { readonly deploymentId: string }) => Venue;
}

export interface SessionOptions {
  readonly tried: TriedBot;
  /** Strategy that trades in place of the bot's. */
  readonly strategy: Strategy;
  readonly exchange: SimulatedExchange;
  readonly definition: ExchangeDefinition;
  readonly credentials: { readonly apiKey: string; readonly secret: string };
  readonly server: ControlServer;
  readonly journal: MemoryJournal;
  readonly deploymentId: string;
  /** One-way delay of messages, ms. */
  readonly latencyMs: number;
  /** Interval at which the adapter queries the market rules, ms. */
  readonly termsMs: number;
  /** Whether every report arrives three times, with the one before it in between. */
  readonly repeats: boolean;
  readonly log: Log;
  /** @param error if the session threw instead of ending. */
  readonly onEnd: (end: RunEnd | undefined, error?: unknown) => void;
}

/** One process of the session, from its start until it ends or is killed. */
export class TriedSession {
  readonly #options: SessionOptions;
  readonly #life: Life = { isOver: false };
  readonly #stop = new AbortController();
  readonly #connections: Connection[] = [];
  readonly #credentialsDir: string;

  constructor(options: SessionOptions, time: VirtualTime) {
    this.#options = options;
    this.#credentialsDir = writeCredentials(options.credentials);
    void this.#watch(time.live(this.#life, () => this.#trade(time)));
  }

  /** Requests the end of the session, like SIGTERM. */
  terminate(): void {
    this.#stop.abort();
  }

  /** Ends the process like SIGKILL: no timer fires and no message arrives. */
  kill(): void {
    this.#life.isOver = true;
    for (const connection of this.#connections) connection.kill();
    this.#removeCredentials();
  }

  #trade(time: VirtualTime): Promise<RunEnd> {
    const { tried, strategy, definition, journal, log, deploymentId } = this.#options;
    const { take } = tried;
    return trade({
      config: {
        apiVersion: 'run/v1',
        kind: 'Run',
        bot: '',
        deployment_id: deploymentId,
        version: 1,
        state_dir: '',
        exchange: { name: 'simulated', ...definition },
        venue: { type: 'exchange', credentials_dir: this.#credentialsDir },
        control: { url: 'http://conformance.invalid', token_file: '' },
      },
      bot: {
        bot: { ...tried.bot, spec: inMinutes(tried.bot.spec), strategy } as Bot,
        hash: '',
        // Models run with the strategy of the bot, which does not run here.
        signals: undefined,
        needsSteps: take !== undefined,
        take: (steps) => (take === undefined ? NOTHING : time.real(() => take(steps))),
        warmUp() {},
        close: async () => {},
      },
      journal,
      gate: undefined,
      metrics: NO_METRICS,
      log,
      stop: this.#stop.signal,
      instanceId: 'conformance',
      catalogueDir: '',
      // Only the exerciser and built-in strategies run here: code of users is never run.
      timeoutMs: Infinity,
      connections: this.#connect(),
      onView() {},
    });
  }

  #connect(): Connections {
    const { exchange, server, tried, deploymentId, latencyMs, termsMs, repeats } = this.#options;
    const connect: Parameters<typeof openFeed>[4] = (client) => {
      this.#connections.push(connectInProcess(client, exchange, () => latencyMs));
    };
    return {
      async openExchangeVenue(options) {
        const { adapter } = tried;
        // A faulty adapter does without the check right before an order is sent.
        const unchecked = adapter === undefined ? {} : { mayPlace: () => true };
        const venue = await openExchangeVenue({ ...options, ...unchecked, termsMs, connect });
        const adapted = adapter?.(methodsOf(venue), { deploymentId }) ?? venue;
        return repeats ? repeatReports(methodsOf(adapted)) : adapted;
      },
      openFeed: (config, bot, catalogueDir, log) =>
        openFeed(config, bot, catalogueDir, log, connect),
      connectToServer: server.connect,
    };
  }

  async #watch(done: Promise<RunEnd>): Promise<void> {
    const { onEnd } = this.#options;
    try {
      const end = await done;
      if (!this.#life.isOver) onEnd(end);
    } catch (error) {
      if (!this.#life.isOver) onEnd(undefined, error);
    } finally {
      this.#removeCredentials();
    }
  }

  /** A killed session never ends, and so cannot remove them itself. */
  #removeCredentials(): void {
    rmSync(this.#credentialsDir, { recursive: true, force: true });
  }
}

/** Writes the files that the adapter reads credentials from. */
function writeCredentials(credentials: SessionOptions['credentials']): string {
  const directory = mkdtempSync(join(tmpdir(), 'service-local-conformance-'));
  for (const [name, text] of Object.entries(credentials)) {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
  }
  return directory;
}

/** The methods of a venue as own properties, so that an adapter can spread them. */
function methodsOf(venue: Venue): Venue {
  return {
    name: venue.name,
    rules: () => venue.rules(),
    place: (order) => venue.place(order),
    cancel: (order) => venue.cancel(order),
    find: (order) => venue.find(order),
    openOrders: () => venue.openOrders(),
    account: () => venue.account(),
    reports: (signal) => venue.reports(signal),
    terms: (signal) => venue.terms(signal),
    close: () => venue.close(),
  };
}

function repeatReports(venue: Venue): Venue {
  return {
    ...venue,
    async *reports(signal) {
      let before: VenueReport | undefined;
      for await (const report of venue.reports(signal)) {
        yield* [report, before ?? report, report];
        before = report;
      }
    },
  };
}

const TIMEFRAME = '1m';

/** Replaces the timeframe of the bot by one minute, so that there are enough bars. */
function inMinutes(spec: BotSpec): BotSpec {
  const { data } = spec.spec;
  return { ...spec, spec: { ...spec.spec, data: { ...data, timeframe: TIMEFRAME } } };
}

const NOTHING = Promise.resolve();

const NO_METRICS: RunnerMetrics = {
  count() {},
  denying() {},
  alerted() {},
  show() {},
  text: async () => '',
  values: async () => [],
  contentType: '',
};
