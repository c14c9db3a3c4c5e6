import { thisMoment } from '../../../base/elapsed.ts';
import { ServiceError } from '../../../base/errors.ts';
import type { SessionState } from '../../../events/session-state.ts';
import { alertsOf } from '../../alerts.ts';
import type { Step } from '../../../engine/steps.ts';
import { OrderSpans } from '../../order-spans.ts';
import type { SessionBatch } from '../../session-events.ts';
import { newLife, type Stage } from '../../session-life.ts';
import type { Decision, LifeEvent } from '../../session-lifecycle.ts';
import type { MarketPhase, VenueReport, VenueRules } from '../../venue.ts';
import type { OrderReconciliation } from '../../venues/reconcile.ts';
import { HostedSession } from '../hosted-session.ts';
import { BackgroundWork, type RestoredSession, type WorkResult } from './background-work.ts';
import { barMsOf, type RunningFeed } from './deployed-bot.ts';
import { logDecision } from './log-decision.ts';
import { RunnerStatus } from './runner-status.ts';
import type { ServerConnection } from './server-connection.ts';
import type { TradeOptions } from './trade-options.ts';

const LICENSED_FEATURE = 'live_trading';
/** Bars are taken for this long before a turn is recorded, ms. */
const TURN_MS = 50;

/**
 * Hosts the session of a deployment in a process of its own. Everything that happens arrives in one
 * inbox and is taken in order, bars last. The session takes it, the journal records it with its
 * effects, and only then are requests sent to the venue. Taking an item never waits for the venue or
 * the server.
 */
export class PodRunner {
  readonly hosted: HostedSession;
  /** Orders that were working when the end began. */
  workingAtEnd: SessionState['working'] = [];
  readonly work: BackgroundWork;
  readonly status: RunnerStatus;
  readonly #spans = new OrderSpans(null);
  readonly #options: TradeOptions;
  #feed: RunningFeed | undefined;

  /** @param signal aborted when everything is over. */
  constructor(options: TradeOptions, signal: AbortSignal) {
    const { config, journal, gate, metrics } = options;
    this.#options = options;
    this.hosted = new HostedSession(newLife(config.venue.type === 'exchange', journal.latches), {
      recordsHalts: true,
      failsWhenRuined: true,
      observe: () => ({
        isLicensed: gate?.check(LICENSED_FEATURE).allowed !== false,
        isClaimFresh: this.work.server?.mayTrade() !== false,
      }),
      perform: (decision) => this.#perform(decision),
      onProgress: ({ events }) => metrics.count(events),
      prepareWarmUp: (part) => this.#options.bot.warmUp(part),
      prepareBars: (step) => this.#prepareBars(step),
      write: (batch) => this.#write(batch),
    });
    this.hosted.unrestored = journal.state?.working ?? [];
    this.work = new BackgroundWork(options, this.hosted, signal, this.#spans);
    this.status = new RunnerStatus(options, this.hosted, this.work);
    this.work.server = this.#connectToServer(signal);
    if (this.work.server === undefined) this.post({ kind: 'claimed' });
    this.work.restore();
  }

  post(event: LifeEvent): void {
    this.work.inbox.put(event);
  }

  /** Takes what has arrived, records it, and then sends requests to the venue. */
  async turn(): Promise<void> {
    const { hosted } = this;
    const { inbox } = this.work;
    await inbox.news();
    const until = performance.now() + TURN_MS;
    try {
      for (let item = inbox.take(); item !== undefined; item = inbox.take()) {
        hosted.dispatch({ kind: 'ticked' });
        await this.#handle(item);
        if (hosted.life.claim === 'fenced' || performance.now() >= until) break;
      }
      hosted.dispatch({ kind: 'ticked' });
      await hosted.write();
    } catch (error) {
      hosted.dispatch({ kind: 'write_failed', error: this.#failureOf(error) });
    }
    if (hosted.life.claim === 'fenced' || hosted.life.isBroken) return;
    this.work.connection?.gateway.send(hosted.session?.outbox() ?? []);
  }

  close(): Promise<unknown> {
    this.#spans.close();
    return Promise.allSettled([this.#feed?.close(), this.work.connection?.venue.close()]);
  }

  #connectToServer(signal: AbortSignal): ServerConnection | undefined {
    const { config, instanceId, log, journal, connections } = this.#options;
    if (config.control === undefined) return undefined;
    return connections.connectToServer({
      control: config.control,
      deploymentId: config.deployment_id,
      instanceId,
      describeRunner: () => this.status.describe(),
      log,
      signal,
      nextBatch: (recorded) => journal.nextBatch(recorded),
      onEvent: (event) => this.post(event),
      spans: this.#spans,
    });
  }

  /** @throws ServiceError `storage_unavailable` */
  async #write({ events, state, steps }: Omit<SessionBatch, 'number'>): Promise<void> {
    const { journal, metrics } = this.#options;
    await journal.append(events, state, steps);
    metrics.show(state);
    this.#spans.take({ events, state });
    const alerts = alertsOf(events);
    for (const alert of alerts) metrics.alerted(alert);
    // The server raises the alerts, and should not wait for the next report.
    if (alerts.length > 0) this.work.server?.report();
  }

  async #handle(item: WorkResult): Promise<void> {
    const { hosted } = this;
    if (item.kind === 'feed_item') await hosted.takeFeedItem(item.item);
    else if (item.kind === 'report') this.#takeReport(item.report);
    else if (item.kind === 'rules') this.#takeRules(item.rules);
    else if (item.kind === 'orders_reconciled') this.#takeReconciliation(item.reconciliation);
    else if (item.kind === 'session_restored') this.#adopt(item.restored);
    else if (item.kind === 'comparison_due') this.#compareAgain();
    else if (item.kind === 'feed_opened') this.#adoptFeed(item.feed);
    else if (item.kind === 'fault') {
      hosted.dispatch({ kind: 'failed', error: this.#failureOf(item.fault) });
    } else hosted.dispatch(item);
  }

  /** If the next bars have closed too, orders would trade at outdated prices. */
  async #prepareBars(step: Step): Promise<boolean> {
    const { bot, venueTimes } = this.#options;
    this.status.barAt = thisMoment();
    await bot.take([step]);
    const barMs = barMsOf(bot.bot);
    const closedFor = Date.now() - step.time - barMs;
    return this.hosted.life.isAtVenue && closedFor >= (venueTimes?.freshForMs ?? barMs);
  }

  #takeReport(report: VenueReport): void {
    const { hosted } = this;
    const connection = this.work.connection!;
    const isNews = connection.isNews(report);
    if (hosted.session === undefined) {
      // Once the session is restored, the order is queried again.
      if (report.status === 'open') return;
      hosted.unrestored = hosted.unrestored.filter(({ order }) => order !== report.order);
      return;
    }
    if (!isNews) return;
    try {
      hosted.take({ kind: 'venue.report', report });
      connection.keep(report);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (this.#isForeign(report)) return;
      this.#options.log.warn(`the venue reports an unknown order: ${error.message}`);
      hosted.note('venue.orphan', { ...report });
    }
  }

  #takeRules(rules: VenueRules): void {
    const { hosted } = this;
    const before = hosted.session?.rules;
    if (before === undefined || hosted.life.ending !== undefined) return;
    if (JSON.stringify(rules) === JSON.stringify(before)) return;
    hosted.take({ kind: 'venue.terms', rules });
    for (const symbol of this.#options.bot.bot.spec.spec.universe.symbols) {
      const phase = phaseOf(rules, symbol);
      if (phase === phaseOf(before, symbol)) continue;
      this.#options.log.info(`${symbol} is ${phase} at the venue`);
      const isAlarming = phase === 'halted' || phase === 'deleted';
      hosted.note(isAlarming ? 'venue.halted' : 'venue.phase', { symbol, phase });
    }
  }

  #takeReconciliation({ reports, orphans }: OrderReconciliation): void {
    for (const report of reports) this.#takeReport(report);
    for (const orphan of orphans) {
      if (this.#isForeign(orphan)) continue;
      const { client_order_id: id } = orphan;
      this.#options.log.warn(
        `order ${id} is open at the venue but not known to the session, and is canceled`,
      );
      this.work.connection!.gateway.cancel(orphan);
    }
    this.work.compareHoldings('compare');
  }

  #compareAgain(): void {
    const { ending, holdings } = this.hosted.life;
    if (ending !== undefined) return;
    this.work.compareHoldings(holdings.mismatches.length === 0 ? 'compare_again' : 'reconcile');
  }

  /** Whether the order belongs to another runner, which then must not be disturbed. */
  #isForeign({ order, client_order_id }: Pick<VenueReport, 'order' | 'client_order_id'>): boolean {
    const epoch = this.work.connection!.epochOf({ client_order_id });
    if (epoch <= this.hosted.epoch) return false;
    this.hosted.dispatch({ kind: 'foreign_order_seen', order, client_order_id, epoch });
    return true;
  }

  #adopt({ session, denying, foreignEpoch }: RestoredSession): void {
    const { time, working } = session.state();
    this.#options.log.info(
      `resumed: ${session.steps} steps, until ${time}, ${working.length} working orders`,
    );
    if (this.work.connection !== undefined) this.work.followVenue();
    this.hosted.adopt(session, denying, foreignEpoch);
    // The log of the server needs them to repeat the session.
    if (this.#options.journal.state === undefined && session.rules !== undefined) {
      this.hosted.take({ kind: 'venue.terms', rules: session.rules });
    }
  }

  #adoptFeed(feed: RunningFeed): void {
    this.#feed = feed;
    this.status.feedAt = thisMoment();
    this.hosted.dispatch({ kind: 'feed_connected' });
    this.work.server?.report();
  }

  #perform(decision: Decision): void {
    const { metrics, log } = this.#options;
    logDecision(log, decision, this.hosted.epoch);
    const { kind } = decision;
    if (kind === 'claim_settled' && decision.claim !== 'fenced') this.work.claimed.resolve();
    else if (kind === 'restoration_adopted') metrics.denying(decision.denying);
    else if (kind === 'input_decided' && decision.input.kind === 'control.denying') {
      metrics.denying(decision.input.reason);
      this.work.server?.report();
    } else if (kind === 'stage_entered') this.#enter(decision.stage);
    else if (kind === 'comparison_scheduled') this.work.scheduleComparison(decision.next);
    else if (kind === 'superseded') this.work.server?.report();
    else if (kind === 'ending_began') {
      this.workingAtEnd = this.hosted.working;
      this.work.feeding.abort();
      this.work.cancelOrders();
    }
  }

  #enter(stage: Stage): void {
    if (stage === 'reconciling') this.work.compareHoldings('reconcile');
    else if (stage === 'connecting') this.work.connectFeed();
    else if (stage === 'trading') this.work.followFeed(this.#feed!);
  }

  #failureOf(fault: unknown): ServiceError {
    const { log } = this.#options;
    if (!(fault instanceof ServiceError)) log.error({ err: fault, msg: 'unexpected error' });
    const error =
      fault instanceof ServiceError
        ? fault
        : new ServiceError('failure', 'unexpected error; see the log', { cause: fault });
    if (this.hosted.life.ending !== undefined) log.error(`while ending: ${error.message}`);
    return error;
  }
}

function phaseOf({ instruments }: VenueRules, symbol: string): MarketPhase | 'deleted' {
  const rules = instruments[symbol];
  return rules === undefined ? 'deleted' : (rules.phase ?? 'open');
}
