/** What a runner is given, what it knows while it trades, and how it ends. */
import { engineConfig } from '../../../bots/spec.ts';
import { thisMoment, type Moment } from '../../../base/elapsed.ts';
import type { ServiceError } from '../../../base/errors.ts';
import type { LicenseGate } from '../../../gate/gate.ts';
import type { Log } from '../../../base/log.ts';
import { parseTimeframe } from '../../../market/timeframe.ts';
import type { SessionEvent } from '../../session-events.ts';
import type { ExchangeVenueOptions, openExchangeVenue } from '../../venues/exchange-venue.ts';
import type { DataEvent, FeedItem } from '../../feed.ts';
import type { Mismatch, OrderReconciliation } from '../../venues/reconcile.ts';
import type { SessionSetup } from '../../trading-session.ts';
import type { TradingSession } from '../../trading-session.ts';
import type { SessionSupervision } from '../../session-supervision.ts';
import type { SessionState } from '../../../events/session-state.ts';
import type { DenyReason, Venue, VenueOrderId, VenueReport, VenueRules } from '../../venue.ts';
import type { openFeed, RunningBot, RunningFeed } from './deployed-bot.ts';
import type { RunConfig } from './run-config.ts';
import type { ServerConnection, ServerNews, Ended, connectToServer } from './server-connection.ts';
import type { OrderGateway } from './order-gateway.ts';
import type { Missing } from './health-server.ts';
import { newInbox, type Inbox } from './inbox.ts';
import type { Journal } from './runner-journal.ts';
import type { RunnerMetrics, Times } from './runner-metrics.ts';

/** What a deployment trades with. */
export interface TradeOptions {
  readonly config: RunConfig;
  /** Of this process. */
  readonly instanceId: string;
  readonly bot: RunningBot;
  readonly journal: Journal;
  /** Undefined where nothing has to be licensed. */
  readonly gate: LicenseGate | undefined;
  readonly metrics: RunnerMetrics;
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  readonly log: Log;
  /** Those of the venue by default. */
  readonly venueTimes?: VenueTimes | undefined;
  /** By which it reaches exchange, server and bars, where that is not how a deployment does. */
  readonly connections?: Connections | undefined;
  /** Aborted when it is to end in good order. */
  readonly stop: AbortSignal;
  /** Handed what may be asked about it while it goes on. */
  readonly onView: (view: RunnerView) => void;
}

export interface VenueTimes extends Pick<ExchangeVenueOptions, 'settleMs' | 'timeoutMs'> {
  /** How long to try to cancel what is open, ms. */
  readonly cancelWithinMs?: number;
  /** An order that could not be placed for so long is canceled, ms. */
  readonly placeWithinMs?: number;
  /**
   * Interval of comparisons with the venue's holdings, and delay before a mismatch is confirmed,
   * ms.
   */
  readonly reconcileMs?: number;
  readonly confirmMs?: number;
  /** Bars are too old to trade by when they come so long after they have closed, ms. */
  readonly freshForMs?: number;
}

export interface Connections {
  readonly openExchangeVenue: typeof openExchangeVenue;
  readonly openFeed: typeof openFeed;
  readonly connectToServer: typeof connectToServer;
}

export interface RunnerView {
  readonly missing: () => Missing;
  readonly times: () => Times;
  readonly working: () => readonly { readonly order: number; readonly symbol: string }[];
}

/** How it ended. */
export interface RunEnd {
  /** `finished`: all data were replayed; `fenced`: another instance trades. */
  readonly outcome: 'finished' | 'stopped' | 'halted' | 'failed' | 'fenced';
  /** Whether the venue says that nothing is open. */
  readonly verified: boolean;
  /** Those that were working when it was to end. */
  readonly orders: Ended['orders'];
  readonly error: ServiceError | undefined;
  readonly state: SessionState | undefined;
  readonly steps: number;
}

/** What comes to the inbox. */
export type Item =
  | 'look'
  | 'stop'
  | 'feed_ended'
  | { readonly feed: FeedItem }
  | { readonly report: VenueReport }
  | { readonly terms: VenueRules }
  | { readonly server: ServerNews }
  | { readonly opened: Opened }
  | { readonly reconciled: OrderReconciliation }
  /** Undefined: they cannot be compared at the moment. */
  | { readonly holdings: readonly Mismatch[] | undefined }
  | { readonly feedOpened: RunningFeed }
  | { readonly fault: unknown }
  | { readonly concluded: boolean };

export interface Opened {
  readonly session: TradingSession;
  /** Why it denies orders, as its log says. */
  readonly denying: DenyReason | null;
  /** The epoch that it was known to be superseded by; 0 where it was not. */
  readonly foreignEpoch: number;
}

/** Why it is to end. */
export interface Ending {
  outcome: Exclude<RunEnd['outcome'], 'fenced'>;
  /** Whether it trades never again; else another process may go on. */
  isFinal: boolean;
  error: ServiceError | undefined;
  readonly orders: readonly { readonly order: number; readonly symbol: string }[];
}

/** A venue that is no simulated one, and who asks it. */
export interface VenueConnection {
  readonly venue: Venue;
  readonly gateway: OrderGateway;
}

/** What is known; only who takes from the inbox changes it. */
export interface Runner {
  readonly parts: TradeOptions;
  readonly setup: SessionSetup;
  readonly connections: Connections;
  readonly isExchange: boolean;
  /** Length of a bar, ms. */
  readonly barMs: number;
  readonly inbox: Inbox<Item>;
  /** Aborted when all of it is over. */
  readonly signal: AbortSignal;
  /** Aborted when no more bars are wanted. */
  readonly feeding: AbortController;
  /** Once the server has granted the claim, or there is nobody to. */
  readonly claimed: PromiseWithResolvers<void>;
  /** Once there is a session, or there will be none. */
  readonly resumed: PromiseWithResolvers<void>;
  /** Undefined where no server looks after it. */
  server: ServerConnection | undefined;
  session: TradingSession | undefined;
  /** Undefined on a simulated venue, and until it is open. */
  connection: VenueConnection | undefined;
  feed: RunningFeed | undefined;
  /** To be put on disk. */
  readonly events: SessionEvent[];
  /** To be put there with the bars that come next. */
  gaps: DataEvent[];
  /** Of bars, taken in all. */
  steps: number;
  /** As the session was told. */
  denying: DenyReason | null;
  /** What people have settled, as the server said last. */
  supervision: SessionSupervision | undefined;
  /** What the venue holds less of; undefined until it was asked. */
  mismatches: readonly Mismatch[] | undefined;
  /** Mismatches of the last comparison, which the next one may confirm. */
  suspected: readonly Mismatch[] | undefined;
  /** Whether missing holdings were present before, so that the bot may be latched. */
  mayLatch: boolean;
  /** Total number of latches because the venue holds too little. */
  latches: number;
  /** Whether the newest of these latches is still in force. */
  isLatched: boolean;
  /** Newest epoch seen in an order of another runner; 0 if none was seen. */
  foreignEpoch: number;
  /** Whether the newest bars were too old to trade by. */
  isStale: boolean;
  /** Of each order, what its newest report said. */
  readonly reported: Map<number, string>;
  /** Orders that the venue told the end of before there was a session. */
  readonly endedBefore: Set<number>;
  ending: Ending | undefined;
  /** Once it is over with the venue: whether nothing is open there. */
  verified: boolean | undefined;
  isFenced: boolean;
  /** The server knows of no such deployment any more. */
  isGone: boolean;
  /** The server knows more than the log, and orders would get the numbers of others. */
  isLost: boolean;
  /** The session has gone on where the log has not: nothing of it is to be kept. */
  isBroken: boolean;
  /** Time at which the newest bars arrived. */
  barAt: Moment | undefined;
  /** When the feed was opened. */
  feedAt: Moment;
  /** As the venue said last. */
  openOrders: number | null;
  checkedAt: number | null;
}

export function newRunner(
  parts: TradeOptions,
  connections: Connections,
  signal: AbortSignal,
): Runner {
  const { bot, config, journal, timeoutMs } = parts;
  const { universe, data } = bot.bot.spec.spec;
  return {
    parts,
    setup: {
      symbols: universe.symbols,
      strategy: bot.bot.strategy,
      params: bot.bot.params,
      config: engineConfig(bot.bot.spec),
      timeoutMs,
      opening: config.opening,
      signals: bot.signals,
    },
    connections,
    isExchange: config.venue.type === 'exchange',
    barMs: parseTimeframe(data.timeframe).ms,
    inbox: newInbox(),
    signal,
    feeding: new AbortController(),
    claimed: Promise.withResolvers(),
    resumed: Promise.withResolvers(),
    server: undefined,
    session: undefined,
    connection: undefined,
    feed: undefined,
    events: [],
    gaps: [],
    steps: journal.steps,
    denying: null,
    supervision: undefined,
    mismatches: undefined,
    suspected: undefined,
    mayLatch: false,
    latches: journal.latches,
    isLatched: journal.latches > 0,
    foreignEpoch: 0,
    isStale: false,
    reported: new Map(),
    endedBefore: new Set(),
    ending: undefined,
    verified: undefined,
    isFenced: false,
    isGone: false,
    isLost: false,
    isBroken: false,
    barAt: undefined,
    feedAt: thisMoment(),
    openOrders: null,
    checkedAt: null,
  };
}

/** The orders that have not ended, as far as is known. */
export function working({ session, parts, endedBefore }: Runner): SessionState['working'] {
  if (session !== undefined) return session.state().working;
  const { state } = parts.journal;
  return state === undefined ? [] : state.working.filter(({ order }) => !endedBefore.has(order));
}

/** Those of them that the venue may know. */
export function workingAtVenue(runner: Runner): readonly VenueOrderId[] {
  return working(runner).flatMap(({ order, symbol, client_order_id }) =>
    client_order_id === undefined ? [] : [{ order, symbol, client_order_id }],
  );
}

/**
 * Does what takes time, and has it answer into the inbox; what goes wrong is an answer, too.
 */
export function begin(runner: Runner, work: () => Promise<Item | undefined>): void {
  void work().then(
    (item) => item !== undefined && runner.inbox.put(item),
    (fault: unknown) => {
      if (!runner.signal.aborted) runner.inbox.put({ fault });
    },
  );
}
