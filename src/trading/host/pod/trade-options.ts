import type { ServiceError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { SessionState } from '../../../events/session-state.ts';
import type { LicenseGate } from '../../../gate/gate.ts';
import type { openExchangeVenue } from '../../venues/exchange-venue.ts';
import type { ExchangeVenueOptions } from '../../venues/venue-client.ts';
import type { openFeed, RunningBot } from './deployed-bot.ts';
import type { Journal } from './runner-journal.ts';
import type { RunConfig } from './run-config.ts';
import type { RunnerMetrics, Times } from './runner-metrics.ts';
import type { connectToServer, Ended } from './server-connection.ts';

export interface TradeOptions {
  readonly config: RunConfig;
  /** Identifies this process at the server. */
  readonly instanceId: string;
  readonly bot: RunningBot;
  readonly journal: Journal;
  /** Undefined if no license is needed. */
  readonly gate: LicenseGate | undefined;
  readonly metrics: RunnerMetrics;
  readonly catalogueDir: string;
  /** Longest time for one step of the strategy, ms. */
  readonly timeoutMs: number;
  readonly log: Log;
  /** Defaults to the times of the venue. */
  readonly venueTimes?: VenueTimes | undefined;
  readonly connections: Connections;
  /** Aborted to end the process in good order. */
  readonly stop: AbortSignal;
  readonly onView: (view: RunnerView) => void;
}

export interface VenueTimes extends Pick<ExchangeVenueOptions, 'settleMs' | 'timeoutMs'> {
  /** How long to try to cancel open orders, ms. */
  readonly cancelWithinMs?: number;
  /** An order that could not be placed within this time is canceled, ms. */
  readonly placeWithinMs?: number;
  /** Interval of comparisons with the venue's holdings, ms. */
  readonly reconcileMs?: number;
  /** Delay before a mismatch is confirmed, ms. */
  readonly confirmMs?: number;
  /** Bars are too old to trade by if they arrive this long after they have closed, ms. */
  readonly freshForMs?: number;
}

/** Connections to exchange, server and bars, which tests replace. */
export interface Connections {
  readonly openExchangeVenue: typeof openExchangeVenue;
  readonly openFeed: typeof openFeed;
  readonly connectToServer: typeof connectToServer;
}

/** Obstacles to trading, as sentences by topic; empty while the deployment trades. */
export type Missing = Readonly<Record<string, string>>;

/** A view of the running deployment, for health checks and people. */
export interface RunnerView {
  readonly missing: () => Missing;
  readonly times: () => Times;
  readonly working: () => readonly { readonly order: number; readonly symbol: string }[];
}

export interface RunEnd {
  /** `finished`: all data were replayed; `fenced`: another instance trades. */
  readonly outcome: 'finished' | 'stopped' | 'halted' | 'failed' | 'fenced';
  /** Whether the venue confirmed that no order is open, and the journal records that. */
  readonly verified: boolean;
  /** Orders that were working when the end began. */
  readonly orders: Ended['orders'];
  readonly error: ServiceError | undefined;
  readonly state: SessionState | undefined;
  readonly steps: number;
}
