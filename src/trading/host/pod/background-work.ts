import { setTimeout as delay } from 'node:timers/promises';
import { engineConfig } from '../../../bots/spec.ts';
import type { SessionState } from '../../../events/session-state.ts';
import { missingShare, type NextComparison } from '../../holdings-check.ts';
import { restoreSession } from '../../restore-session.ts';
import type { TradingSession } from '../../trading-session.ts';
import type { DenyReason, VenueOrderId, VenueReport, VenueRules } from '../../venue.ts';
import type { OrderReconciliation } from '../../venues/reconcile.ts';
import type { FeedItem } from '../../feed.ts';
import type { LifeEvent } from '../../session-lifecycle.ts';
import type { HostedSession } from '../hosted-session.ts';
import type { RunningFeed } from './deployed-bot.ts';
import type { ServerConnection } from './server-connection.ts';
import type { Connections, TradeOptions } from './trade-options.ts';
import { untilAnswered, VenueConnection } from './venue-connection.ts';

/** A later order would trade at a price that is no longer current, ms. */
const PLACE_WITHIN_MS = 60_000;
/** With the report of the end, this fits into the minute before a cluster kills a pod, ms. */
const CANCEL_WITHIN_MS = 20_000;
const COMPARE_EVERY_MS = 60_000;
const CONFIRM_AFTER_MS = 2000;
/** Interval of comparisons while holdings are missing, ms. */
const RECHECK_EVERY_MS = 30_000;

/** Item of the inbox of a runner. */
export type WorkResult =
  | LifeEvent
  | { readonly kind: 'feed_item'; readonly item: FeedItem }
  | { readonly kind: 'report'; readonly report: VenueReport }
  | { readonly kind: 'rules'; readonly rules: VenueRules }
  | { readonly kind: 'orders_reconciled'; readonly reconciliation: OrderReconciliation }
  | { readonly kind: 'session_restored'; readonly restored: RestoredSession }
  | { readonly kind: 'feed_opened'; readonly feed: RunningFeed }
  | { readonly kind: 'fault'; readonly fault: unknown };

export interface RestoredSession {
  readonly session: TradingSession;
  /** Recorded reason for which new orders were denied. */
  readonly denying: DenyReason | null;
  /** Epoch of another runner that the session was superseded by; 0 if it was not. */
  readonly foreignEpoch: number;
}

export interface WorkContext {
  readonly options: TradeOptions;
  readonly connections: Connections;
  /** Aborted when everything is over. */
  readonly signal: AbortSignal;
  readonly hosted: HostedSession;
  /** Orders that have not ended, as far as is known. */
  readonly working: () => SessionState['working'];
  readonly server: () => ServerConnection | undefined;
  readonly post: (result: WorkResult) => void;
  /** Resolves when there is room for more results that may wait. */
  readonly postBehind: (result: WorkResult) => Promise<void>;
}

/** Work of a runner that waits for the venue, the feed or the server. */
export class BackgroundWork {
  readonly #context: WorkContext;
  readonly #claimed = Promise.withResolvers<void>();
  /** Aborted when the runner needs no further bars. */
  readonly #feeding = new AbortController();
  #restoring: Promise<unknown> = Promise.resolve();
  #connection: VenueConnection | undefined;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** Undefined until the venue is open, and for a simulated venue. */
  get connection(): VenueConnection | undefined {
    return this.#connection;
  }

  /** Allows restoring the session and canceling its orders. */
  settleClaim(): void {
    this.#claimed.resolve();
  }

  stopFeed(): void {
    this.#feeding.abort();
  }

  /** Restores the session once the claim is settled. */
  restore(): void {
    const opened = this.#claimed.promise.then(() => this.#openVenue());
    this.#start(async () => {
      this.#restoring = opened.then(() => this.#restore());
      await this.#restoring;
    });
  }

  /**
   * Begins a comparison with the venue: of the orders, of the holdings, or while the session trades
   * of both, which needs reports of all working orders.
   */
  compareHoldings(work: 'reconcile' | 'compare' | 'compare_again'): void {
    const { post } = this.#context;
    const connection = this.#connection!;
    this.#start(async () => {
      if (work === 'reconcile') {
        const reconciliation = await connection.reconcile(this.#workingAtVenue());
        return post({ kind: 'orders_reconciled', reconciliation });
      }
      const onReport = (report: VenueReport): void => post({ kind: 'report', report });
      const isKnown =
        work === 'compare' || (await connection.refresh(this.#workingAtVenue(), onReport));
      const session = this.#context.hosted.session!;
      const found = isKnown ? await connection.compare(() => session.state()) : undefined;
      const share = missingShare(session.state(), found ?? []);
      post({ kind: 'compared', found, share, hasSteps: session.steps > 0 });
    });
  }

  scheduleComparison(next: NextComparison): void {
    const { options, signal, post } = this.#context;
    const { confirmMs = CONFIRM_AFTER_MS, reconcileMs = COMPARE_EVERY_MS } =
      options.venueTimes ?? {};
    const waits = {
      confirm: confirmMs,
      recheck: Math.min(RECHECK_EVERY_MS, reconcileMs),
      routine: reconcileMs,
    };
    setTimeout(() => !signal.aborted && post({ kind: 'comparison_due' }), waits[next]).unref();
  }

  connectFeed(): void {
    const { options, connections, signal, post } = this.#context;
    const { config, bot, catalogueDir, log } = options;
    this.#start(async () => {
      const open = () => connections.openFeed(config, bot.bot, catalogueDir, log);
      const feed = await untilAnswered(open, 'the feed of bars is unavailable', { log, signal });
      post({ kind: 'feed_opened', feed });
    });
  }

  followFeed(feed: RunningFeed): void {
    const { signal, hosted, postBehind } = this.#context;
    const { time } = hosted.session!.state();
    const stopped = AbortSignal.any([signal, this.#feeding.signal]);
    this.#start(async () => {
      try {
        for await (const item of feed.items(
          time === null ? undefined : Date.parse(time),
          stopped,
        )) {
          await postBehind({ kind: 'feed_item', item });
          stopped.throwIfAborted();
        }
        await postBehind({ kind: 'feed_ended' });
      } catch (error) {
        if (!stopped.aborted) throw error;
      }
    });
  }

  followVenue(): void {
    const { signal, post } = this.#context;
    const connection = this.#connection!;
    this.#start(async () => {
      for await (const report of connection.reports()) post({ kind: 'report', report });
    });
    this.#start(async () => {
      for await (const rules of connection.venue.terms(signal)) post({ kind: 'rules', rules });
    });
  }

  /** Cancels all orders before the end, and reports whether the venue confirmed that. */
  cancelOrders(): void {
    this.#start(async () => {
      this.#context.post({ kind: 'orders_canceled', verified: await this.#cancelOrders() });
    });
  }

  #start(work: () => Promise<void>): void {
    const { signal, post } = this.#context;
    work().catch((fault: unknown) => {
      if (!signal.aborted) post({ kind: 'fault', fault });
    });
  }

  async #openVenue(): Promise<void> {
    const { options, connections, signal, hosted, post } = this.#context;
    const { config, bot, journal, log, venueTimes = {} } = options;
    const { venue: chosen, exchange, deployment_id: deploymentId } = config;
    if (chosen.type !== 'exchange') return;
    const { name, ...definition } = exchange!;
    const { settleMs, timeoutMs, placeWithinMs = PLACE_WITHIN_MS } = venueTimes;
    const { universe } = bot.bot.spec.spec;
    const open = () =>
      connections.openExchangeVenue({
        name,
        definition,
        deploymentId,
        signal,
        credentialsDir: chosen.credentials_dir,
        symbols: universe.symbols,
        currency: universe.currency,
        account: engineConfig(bot.bot.spec).account.model,
        onTrouble: (text) => log.warn(`${name}: ${text}`),
        // Checked right before sending, because the machine may have slept while the order waited.
        mayPlace: (id) => hosted.mayPlace() && this.#connection?.gateway.isTimely(id) === true,
        ...(settleMs !== undefined && { settleMs }),
        ...(timeoutMs !== undefined && { timeoutMs }),
      });
    this.#connection = new VenueConnection(deploymentId, {
      venue: await untilAnswered(open, 'the venue is unavailable', { log, signal }),
      log,
      signal,
      mayPlace: (order) => hosted.mayPlace(order),
      placeWithinMs,
      onReport: (report) => post({ kind: 'report', report }),
      onRetry: () => post({ kind: 'ticked' }),
    });
    if (journal.rules !== undefined) return;
    const { venue } = this.#connection;
    const rules = await untilAnswered(() => venue.rules(), 'the rules of the venue', {
      log,
      signal,
    });
    await journal.keepRules(rules);
  }

  async #restore(): Promise<void> {
    const { options, hosted, post } = this.#context;
    // With an empty journal, the session would start again, with order numbers that exist.
    if (hosted.life.isLost) return;
    const { journal, bot, config, timeoutMs } = options;
    let denying: DenyReason | null = null;
    let epoch = 1;
    let foreignEpoch = 0;
    const inputs = async function* () {
      for await (const input of journal.inputs()) {
        if (input.kind === 'control.epoch_set') ({ epoch } = input);
        else if (input.kind === 'control.denying') {
          denying = input.reason;
          if (denying === 'superseded') foreignEpoch = epoch + 1;
        }
        yield input;
      }
    };
    const setup = {
      symbols: bot.bot.spec.spec.universe.symbols,
      strategy: bot.bot.strategy,
      params: bot.bot.params,
      config: engineConfig(bot.bot.spec),
      timeoutMs,
      opening: config.opening,
      signals: bot.signals,
      venue: this.#connection && {
        deployment_id: config.deployment_id,
        rules: journal.rules!,
      },
    };
    const session = await restoreSession(setup, inputs(), bot.take, journal.state);
    post({ kind: 'session_restored', restored: { session, denying, foreignEpoch } });
  }

  async #cancelOrders(): Promise<boolean> {
    const { options, signal, hosted, working } = this.#context;
    const { config, journal, venueTimes, log, stop } = options;
    const withinMs = venueTimes?.cancelWithinMs ?? CANCEL_WITHIN_MS;
    const until = performance.now() + withinMs;
    const late = delay(withinMs, undefined, { signal }).catch(() => {});
    if (!this.#isClaimed()) {
      // Open orders may be another instance's, or an earlier process's whose claim expires soon.
      if (working().length > 0) await Promise.race([this.#claimed.promise, late]);
      if (!this.#isClaimed()) return working().length === 0;
    }
    // A session that is still being restored must be halted too.
    const restored = Promise.race([this.#restoring.catch(() => {}), late]);
    if (config.venue.type !== 'exchange') {
      await restored;
      return true;
    }
    if (hosted.session === undefined && journal.state === undefined && !hosted.life.isLost) {
      return true;
    }
    let [isDone] = await Promise.all([this.#cancelWithin(until - performance.now()), restored]);
    // No other process has the credentials, so an ending runner exits only when it must.
    const mustContinue = (): boolean =>
      hosted.life.ending?.isFinal === true &&
      hosted.life.claim !== 'gone' &&
      !stop.aborted &&
      !signal.aborted;
    while (!isDone && mustContinue()) {
      log.error(
        'orders may still be open at the venue: the runner keeps canceling until none is open',
      );
      isDone = await this.#cancelWithin(withinMs);
    }
    return isDone;
  }

  async #cancelWithin(withinMs: number): Promise<boolean> {
    const { signal } = this.#context;
    const until = performance.now() + withinMs;
    for (let wait = 50; !signal.aborted; wait = Math.min(2 * wait, 1000)) {
      const left = until - performance.now();
      if (left <= 0) return false;
      const workingAtVenue = () => this.#workingAtVenue();
      if ((await this.#connection?.cancelOnce(workingAtVenue, left)) === true) return true;
      await delay(Math.min(wait, Math.max(0, until - performance.now())), undefined, { signal });
    }
    return false;
  }

  #isClaimed(): boolean {
    const { hosted, server } = this.#context;
    return server()?.hasClaim !== false || hosted.life.claim === 'gone';
  }

  /** Working orders that the venue may know. */
  #workingAtVenue(): readonly VenueOrderId[] {
    return this.#context
      .working()
      .flatMap(({ order, symbol, client_order_id }) =>
        client_order_id === undefined ? [] : [{ order, symbol, client_order_id }],
      );
  }
}
