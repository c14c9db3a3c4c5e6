import { setTimeout as delay } from 'node:timers/promises';
import type { DenyReason } from '../../../engine/orders/order.ts';
import { engineConfig } from '../../../bots/spec.ts';
import { missingShare, type NextComparison } from '../../holdings-check.ts';
import { restoreSession } from '../../restore-session.ts';
import type { TradingSession } from '../../trading-session.ts';
import type { VenueOrderId, VenueReport, VenueRules } from '../../venue.ts';
import { SETTLE_MS } from '../../venues/venue-client.ts';
import {
  reconcileHoldings,
  reconcileOrders,
  type OrderReconciliation,
} from '../../venues/reconcile.ts';
import type { FeedItem } from '../../feed.ts';
import type { LifeEvent } from '../../session-lifecycle.ts';
import type { OrderSpans } from '../../order-spans.ts';
import type { HostedSession } from '../hosted-session.ts';
import type { RunningFeed } from './deployed-bot.ts';
import type { ServerConnection } from './server-connection.ts';
import { Inbox } from './inbox.ts';
import type { TradeOptions } from './trade-options.ts';
import { untilAnswered, VenueConnection } from './venue-connection.ts';

/** Time within which an order must be placed, before its price is outdated, ms. */
const PLACE_WITHIN_MS = 60_000;
/** Time for canceling. Together with the report of the end, it fits into the minute before a cluster kills a pod, ms. */
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
  | { readonly kind: 'comparison_due' }
  | { readonly kind: 'fault'; readonly fault: unknown };

export interface RestoredSession {
  readonly session: TradingSession;
  /** Recorded reason for which new orders were denied. */
  readonly denying: DenyReason | null;
  /** Epoch of another runner that the session was superseded by; 0 if it was not. */
  readonly foreignEpoch: number;
}

/** Work of a runner that waits for the venue, the feed or the server. Its results go to the inbox. */
export class BackgroundWork {
  readonly inbox = new Inbox<WorkResult>();
  /** Undefined if no server supervises the deployment. */
  server: ServerConnection | undefined;
  /** Undefined until it is open, and for a simulated venue. */
  connection: VenueConnection | undefined;
  /** Resolved to allow restoring the session and canceling its orders. */
  readonly claimed = Promise.withResolvers<void>();
  /** Aborted when the runner needs no further bars. */
  readonly feeding = new AbortController();
  readonly #options: TradeOptions;
  readonly #hosted: HostedSession;
  readonly #signal: AbortSignal;
  readonly #spans: OrderSpans;
  #restoring: Promise<unknown> = Promise.resolve();

  /** @param signal aborted when everything is over. */
  constructor(
    options: TradeOptions,
    hosted: HostedSession,
    signal: AbortSignal,
    spans: OrderSpans,
  ) {
    this.#options = options;
    this.#hosted = hosted;
    this.#signal = signal;
    this.#spans = spans;
  }

  /** Restores the session once the claim is settled. */
  restore(): void {
    const opened = this.claimed.promise.then(() => this.#openVenue());
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
    const { inbox } = this;
    const { config } = this.#options;
    const connection = this.connection!;
    this.#start(async () => {
      if (work === 'reconcile') {
        const working = this.#workingAtVenue();
        const reconciliation = await this.#answered('cannot reconcile the orders', () =>
          reconcileOrders(connection.venue, config.deployment_id, working, Date.now()),
        );
        return inbox.put({ kind: 'orders_reconciled', reconciliation });
      }
      const onReport = (report: VenueReport): void => inbox.put({ kind: 'report', report });
      const isKnown =
        work === 'compare' || (await connection.refresh(this.#workingAtVenue(), onReport));
      const session = this.#hosted.session!;
      const compare = () => reconcileHoldings(connection.venue, session.state());
      const found = isKnown ? await this.#answered('cannot read the holdings', compare) : undefined;
      const share = missingShare(session.state(), found ?? []);
      inbox.put({ kind: 'compared', found, share, hasSteps: session.steps > 0 });
    });
  }

  scheduleComparison(next: NextComparison): void {
    const { confirmMs = CONFIRM_AFTER_MS, reconcileMs = COMPARE_EVERY_MS } =
      this.#options.venueTimes ?? {};
    const waits = {
      confirm: confirmMs,
      recheck: Math.min(RECHECK_EVERY_MS, reconcileMs),
      routine: reconcileMs,
    };
    const post = () => !this.#signal.aborted && this.inbox.put({ kind: 'comparison_due' });
    setTimeout(post, waits[next]).unref();
  }

  connectFeed(): void {
    const { config, bot, catalogueDir, log, connections } = this.#options;
    this.#start(async () => {
      const open = () => connections.openFeed(config, bot.bot, catalogueDir, log);
      const feed = await this.#answered('the feed of bars is unavailable', open);
      this.inbox.put({ kind: 'feed_opened', feed });
    });
  }

  followFeed(feed: RunningFeed): void {
    const { time } = this.#hosted.session!.state();
    const after = time === null ? undefined : Date.parse(time);
    const stopped = AbortSignal.any([this.#signal, this.feeding.signal]);
    this.#start(async () => {
      try {
        for await (const item of feed.items(after, stopped)) {
          await this.inbox.putBehind({ kind: 'feed_item', item });
          stopped.throwIfAborted();
        }
        await this.inbox.putBehind({ kind: 'feed_ended' });
      } catch (error) {
        if (!stopped.aborted) throw error;
      }
    });
  }

  followVenue(): void {
    const { inbox } = this;
    const connection = this.connection!;
    this.#start(async () => {
      for await (const report of connection.reports()) inbox.put({ kind: 'report', report });
    });
    this.#start(async () => {
      for await (const rules of connection.venue.terms(this.#signal))
        inbox.put({ kind: 'rules', rules });
    });
  }

  /** Cancels all orders before the end, and reports whether the venue confirmed that. */
  cancelOrders(): void {
    this.#start(async () => {
      this.inbox.put({ kind: 'orders_canceled', verified: await this.#cancelOrders() });
    });
  }

  #start(work: () => Promise<void>): void {
    work().catch((fault: unknown) => {
      if (!this.#signal.aborted) this.inbox.put({ kind: 'fault', fault });
    });
  }

  #answered<T>(problem: string, work: () => Promise<T>): Promise<T> {
    return untilAnswered(work, problem, { log: this.#options.log, signal: this.#signal });
  }

  async #openVenue(): Promise<void> {
    const { config, bot, journal, log, venueTimes = {}, connections } = this.#options;
    const { inbox } = this;
    const hosted = this.#hosted;
    const signal = this.#signal;
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
        mayPlace: (id) => hosted.mayPlace() && this.connection?.gateway.isTimely(id) === true,
        settleMs,
        timeoutMs,
      });
    this.connection = new VenueConnection(deploymentId, {
      venue: await this.#answered('the venue is unavailable', open),
      log,
      signal,
      mayPlace: (order) => hosted.mayPlace(order),
      placeWithinMs,
      onReport: (report) => inbox.put({ kind: 'report', report }),
      onRetry: () => inbox.put({ kind: 'ticked' }),
      spans: this.#spans,
    });
    if (journal.rules !== undefined) return;
    const { venue } = this.connection;
    await journal.keepRules(
      await this.#answered('cannot read the rules of the venue', () => venue.rules()),
    );
  }

  async #restore(): Promise<void> {
    // With an empty journal, the session would start again, with order numbers that exist.
    if (this.#hosted.life.isLost) return;
    const { journal, bot, config, timeoutMs } = this.#options;
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
    const { opening, deployment_id } = config;
    const venue = this.connection && { deployment_id, rules: journal.rules! };
    const terms = { timeoutMs, opening, venue };
    const session = await restoreSession(bot, terms, inputs(), journal.state);
    this.inbox.put({ kind: 'session_restored', restored: { session, denying, foreignEpoch } });
  }

  async #cancelOrders(): Promise<boolean> {
    const { journal, venueTimes, log, stop } = this.#options;
    const hosted = this.#hosted;
    const signal = this.#signal;
    const withinMs = venueTimes?.cancelWithinMs ?? CANCEL_WITHIN_MS;
    const until = performance.now() + withinMs;
    const late = delay(withinMs, undefined, { signal }).catch(() => {});
    if (!this.#isClaimed()) {
      // Open orders may belong to another instance, or to an earlier process whose claim expires soon.
      if (hosted.working.length > 0) await Promise.race([this.claimed.promise, late]);
      if (!this.#isClaimed()) return hosted.working.length === 0;
    }
    // A session that is still being restored must be halted too.
    const restored = Promise.race([this.#restoring.catch(() => {}), late]);
    if (!hosted.life.isAtVenue) {
      await restored;
      return true;
    }
    if (hosted.session === undefined && journal.state === undefined && !hosted.life.isLost) {
      return true;
    }
    let [isDone] = await Promise.all([this.#cancelWithin(until - performance.now()), restored]);
    // No other process has the credentials to cancel orders, so an ending runner exits only when it must.
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
    const signal = this.#signal;
    const hosted = this.#hosted;
    const until = performance.now() + withinMs;
    for (let wait = 50; !signal.aborted; wait = Math.min(2 * wait, 1000)) {
      const left = until - performance.now();
      if (left <= 0) return false;
      const workingAtVenue = () => this.#workingAtVenue();
      const isEmpty = await this.connection?.cancelOnce(workingAtVenue, left, hosted.epoch);
      if (isEmpty === true && this.#isSettled()) return true;
      await delay(Math.min(wait, Math.max(0, until - performance.now())), undefined, { signal });
    }
    return false;
  }

  /** Without the log, orders of an earlier process are unknown, and may still arrive at the venue. */
  #isSettled(): boolean {
    const { settleMs = SETTLE_MS } = this.#options.venueTimes ?? {};
    return !this.#hosted.life.isLost || performance.now() >= this.connection!.openedAt + settleMs;
  }

  #isClaimed(): boolean {
    return this.server?.hasClaim !== false || this.#hosted.life.claim === 'gone';
  }

  /** Working orders that the venue may know. */
  #workingAtVenue(): readonly VenueOrderId[] {
    return this.#hosted.working.flatMap(({ order, symbol, client_order_id }) =>
      client_order_id === undefined ? [] : [{ order, symbol, client_order_id }],
    );
  }
}
