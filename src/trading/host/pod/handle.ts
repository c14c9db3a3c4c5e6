/** What is done with each thing that comes to the inbox. None of it waits for the venue or the server. */
import { thisMoment } from '../../../base/elapsed.ts';
import { ServiceError } from '../../../base/errors.ts';
import { dataEvent } from '../../session-events.ts';
import type { FeedItem } from '../../feed.ts';
import type { Mismatch, OrderReconciliation } from '../../venues/reconcile.ts';
import type { SessionSupervision } from '../../session-supervision.ts';
import { VenueSession } from '../../venue-session.ts';
import type { MarketPhase, VenueReport, VenueRules } from '../../venue.ts';
import type { RunningFeed } from './deployed-bot.ts';
import type { ServerNews } from './server-connection.ts';
import { end, fail, haltSession } from './ending.ts';
import { compare, openBars, pumpBars, pumpReports, pumpTerms, reconcile } from './startup.ts';
import { isOfNewerEpoch } from './foreign-epoch.ts';
import { takeHoldings } from './holdings-check.ts';
import { settleDenial } from './permission.ts';
import { take } from './record.ts';
import { begin, type Item, type Opened, type Trading } from './runner.ts';

export async function handle(t: Trading, item: Item): Promise<void> {
  if (item === 'look') return;
  if (item === 'stop') end(t, 'stopped', false);
  else if (item === 'feed_ended') end(t, 'finished', false);
  else if ('feed' in item) await takeFeed(t, item.feed);
  else if ('report' in item) takeReport(t, item.report);
  else if ('terms' in item) takeTerms(t, item.terms);
  else if ('server' in item) takeServerNews(t, item.server);
  else if ('opened' in item) takeOpened(t, item.opened);
  else if ('reconciled' in item) takeReconciled(t, item.reconciled);
  else if ('holdings' in item) takeCompared(t, item.holdings);
  else if ('feedOpened' in item) takeFeedOpened(t, item.feedOpened);
  else if ('concluded' in item) t.verified = item.concluded;
  else fail(t, item.fault);
}

function takeOpened(t: Trading, { session, denying, foreignEpoch }: Opened): void {
  const { log, metrics } = t.parts;
  t.session = session;
  t.resumed.resolve();
  t.denying = denying;
  t.foreignEpoch = Math.max(t.foreignEpoch, foreignEpoch);
  metrics.denying(denying);
  const { status, time, working: left } = session.state();
  log.info(
    time === undefined
      ? 'resumed: 0 steps, from the beginning'
      : `resumed: ${t.steps} steps, until ${time}, ${left.length} working orders`,
  );
  if (t.at !== undefined) {
    begin(t, () => pumpReports(t, t.at!));
    begin(t, () => pumpTerms(t, t.at!));
  }
  if (t.ending !== undefined) haltSession(t);
  else if (status === 'halted') end(t, 'halted', true);
  else if (status !== 'running') fail(t, session.failure ?? ruined());
  else if (t.at === undefined) takeCompared(t, []);
  else begin(t, () => reconcile(t));
}

function takeReconciled(t: Trading, { reports, orphans }: OrderReconciliation): void {
  for (const report of reports) takeReport(t, report);
  for (const orphan of orphans) {
    const { client_order_id: id } = orphan;
    if (isOfNewerEpoch(t, orphan)) continue;
    t.parts.log.warn(`order ${id} is open at the venue and not known: it is canceled`);
    t.at!.desk.cancel(orphan);
  }
  begin(t, () => compare(t));
}

function takeCompared(t: Trading, found: readonly Mismatch[] | undefined): void {
  const isFirst = t.mismatches === undefined;
  takeHoldings(t, found);
  if (isFirst) begin(t, () => openBars(t));
}

function takeFeedOpened(t: Trading, feed: RunningFeed): void {
  t.feed = feed;
  t.feedAt = thisMoment();
  if (t.ending === undefined) begin(t, () => pumpBars(t, feed));
  t.server?.report();
}

async function takeFeed(t: Trading, item: FeedItem): Promise<void> {
  const { session } = t;
  if (t.ending !== undefined || session === undefined) return;
  if (item.kind !== 'data.bars') {
    // Of a gap its bars come next, and belong with it: alone, it would be told again after a crash.
    if (item.kind === 'data.gap') t.gaps.push(item);
    else t.events.push(dataEvent(item));
    return;
  }
  t.barAt = thisMoment();
  await t.parts.bot.take([item.step]);
  if (t.isExchange) {
    // Those that come next have closed, too: by these, orders would be of another time.
    const { freshForMs = t.barMs } = t.parts.venueTimes ?? {};
    t.isStale = Date.now() >= item.step.time + t.barMs + freshForMs;
  }
  settleDenial(t);
  const progress = session.push(item.step);
  if (session.failure?.code === 'interrupted') {
    t.isBroken = true;
    end(t, 'stopped', false);
    return;
  }
  t.events.push(...t.gaps.map(dataEvent));
  t.gaps = [];
  t.steps += 1;
  take(t, item, progress);
  if (progress.state.status !== 'running') fail(t, session.failure ?? ruined());
}

function takeReport(t: Trading, report: VenueReport): void {
  const { session, reported } = t;
  const { order, status, filled, cost, fee, fee_units, corrections } = report;
  t.checkedAt = Date.now();
  if (!(session instanceof VenueSession)) {
    // It is asked for again once there is a session.
    if (status !== 'open') t.endedBefore.add(order);
    return;
  }
  const text = JSON.stringify([status, filled, cost, fee, fee_units, corrections]);
  if (reported.get(order) === text) return;
  try {
    take(t, { kind: 'venue.report', report }, session.report(report));
    if (status === 'open') reported.set(order, text);
    else reported.delete(order);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    if (isOfNewerEpoch(t, report)) return;
    t.parts.log.warn(`the venue tells of an order that is not known: ${error.message}`);
    t.events.push({ kind: 'venue.orphan', occurred_at: Date.now(), payload: { ...report } });
  }
}

function takeTerms(t: Trading, rules: VenueRules): void {
  const { session } = t;
  if (!(session instanceof VenueSession) || t.ending !== undefined) return;
  const before = session.rules;
  if (JSON.stringify(rules) === JSON.stringify(before)) return;
  take(t, { kind: 'venue.terms', rules }, session.revise(rules));
  for (const symbol of t.setup.symbols) {
    const phase = phaseOf(rules, symbol);
    if (phase === phaseOf(before, symbol)) continue;
    const isAlarming = phase === 'halted' || phase === 'deleted';
    t.parts.log.info(`${symbol} is ${phase} at the venue`);
    const kind = isAlarming ? 'venue.halted' : 'venue.phase';
    t.events.push({ kind, occurred_at: Date.now(), payload: { symbol, phase } });
  }
}

function phaseOf({ instruments }: VenueRules, symbol: string): MarketPhase | 'deleted' {
  const rules = instruments[symbol];
  return rules === undefined ? 'deleted' : (rules.phase ?? 'open');
}

function takeServerNews(t: Trading, news: ServerNews): void {
  const { log } = t.parts;
  if ('answer' in news) {
    const { command, halt, controls } = news.answer;
    t.supervision = controls as SessionSupervision;
    t.claimed.resolve();
    if (command === 'halt') {
      const { halt_id, reason, by } = halt ?? { halt_id: '', reason: '', by: '' };
      end(t, 'halted', true, { halt: { halt_id, reason, by } });
    } else if (command === 'stop') end(t, 'stopped', true);
  } else if ('fenced' in news) {
    t.isFenced = true;
    log.error('another instance has the claim: this one ends, and touches nothing');
  } else if ('gone' in news) {
    t.isGone = true;
    t.claimed.resolve();
    log.warn('the server knows of no such deployment any more: what is open is canceled');
    end(t, 'stopped', true);
  } else {
    t.isLost ||= news.fault.reason === 'log_lost';
    t.claimed.resolve();
    fail(t, news.fault);
  }
}

function ruined(): ServiceError {
  return new ServiceError('failure', 'the account is lost', { reason: 'ruined' });
}
