/** What is done with each thing that comes to the inbox. None of it waits for the venue or the server. */
import { thisMoment } from '../../../base/elapsed.ts';
import { ServiceError } from '../../../base/errors.ts';
import { dataEvent } from '../../session-events.ts';
import type { FeedItem } from '../../feed.ts';
import type { Mismatch, OrderReconciliation } from '../../venues/reconcile.ts';
import type { SessionSupervision } from '../../session-supervision.ts';
import type { MarketPhase, VenueReport, VenueRules } from '../../venue.ts';
import type { RunningFeed } from './deployed-bot.ts';
import type { ServerNews } from './server-connection.ts';
import { end, fail, haltSession } from './ending.ts';
import { compare, openBars, pumpBars, pumpReports, pumpTerms, reconcile } from './startup.ts';
import { isOfNewerEpoch } from './foreign-epoch.ts';
import { takeHoldings } from './holdings-check.ts';
import { settleDenial } from './permission.ts';
import { take } from './record.ts';
import { begin, type Item, type Opened, type Runner } from './runner.ts';

export async function handle(runner: Runner, item: Item): Promise<void> {
  if (item === 'look') return;
  if (item === 'stop') end(runner, 'stopped', false);
  else if (item === 'feed_ended') end(runner, 'finished', false);
  else if ('feed' in item) await takeFeed(runner, item.feed);
  else if ('report' in item) takeReport(runner, item.report);
  else if ('terms' in item) takeTerms(runner, item.terms);
  else if ('server' in item) takeServerNews(runner, item.server);
  else if ('opened' in item) takeOpened(runner, item.opened);
  else if ('reconciled' in item) takeReconciled(runner, item.reconciled);
  else if ('holdings' in item) takeCompared(runner, item.holdings);
  else if ('feedOpened' in item) takeFeedOpened(runner, item.feedOpened);
  else if ('concluded' in item) runner.verified = item.concluded;
  else fail(runner, item.fault);
}

function takeOpened(runner: Runner, { session, denying, foreignEpoch }: Opened): void {
  const { log, metrics } = runner.parts;
  runner.session = session;
  runner.resumed.resolve();
  runner.denying = denying;
  runner.foreignEpoch = Math.max(runner.foreignEpoch, foreignEpoch);
  metrics.denying(denying);
  const { status, time, working: left } = session.state();
  log.info(
    time === undefined
      ? 'resumed: 0 steps, from the beginning'
      : `resumed: ${runner.steps} steps, until ${time}, ${left.length} working orders`,
  );
  if (runner.connection !== undefined) {
    begin(runner, () => pumpReports(runner, runner.connection!));
    begin(runner, () => pumpTerms(runner, runner.connection!));
  }
  if (runner.ending !== undefined) haltSession(runner);
  else if (status === 'halted') end(runner, 'halted', true);
  else if (status !== 'running') fail(runner, session.failure ?? ruined());
  else if (runner.connection === undefined) takeCompared(runner, []);
  else begin(runner, () => reconcile(runner));
}

function takeReconciled(runner: Runner, { reports, orphans }: OrderReconciliation): void {
  for (const report of reports) takeReport(runner, report);
  for (const orphan of orphans) {
    const { client_order_id: id } = orphan;
    if (isOfNewerEpoch(runner, orphan)) continue;
    runner.parts.log.warn(`order ${id} is open at the venue and not known: it is canceled`);
    runner.connection!.gateway.cancel(orphan);
  }
  begin(runner, () => compare(runner));
}

function takeCompared(runner: Runner, found: readonly Mismatch[] | undefined): void {
  const isFirst = runner.mismatches === undefined;
  takeHoldings(runner, found);
  if (isFirst) begin(runner, () => openBars(runner));
}

function takeFeedOpened(runner: Runner, feed: RunningFeed): void {
  runner.feed = feed;
  runner.feedAt = thisMoment();
  if (runner.ending === undefined) begin(runner, () => pumpBars(runner, feed));
  runner.server?.report();
}

async function takeFeed(runner: Runner, item: FeedItem): Promise<void> {
  const { session } = runner;
  if (runner.ending !== undefined || session === undefined) return;
  if (item.kind !== 'data.bars') {
    // Of a gap its bars come next, and belong with it: alone, it would be told again after a crash.
    if (item.kind === 'data.gap') runner.gaps.push(item);
    else runner.events.push(dataEvent(item));
    return;
  }
  runner.barAt = thisMoment();
  await runner.parts.bot.take([item.step]);
  if (runner.isExchange) {
    // Those that come next have closed, too: by these, orders would be of another time.
    const { freshForMs = runner.barMs } = runner.parts.venueTimes ?? {};
    runner.isStale = Date.now() >= item.step.time + runner.barMs + freshForMs;
  }
  settleDenial(runner);
  const progress = session.push(item.step);
  if (session.failure?.code === 'interrupted') {
    runner.isBroken = true;
    end(runner, 'stopped', false);
    return;
  }
  runner.events.push(...runner.gaps.map(dataEvent));
  runner.gaps = [];
  runner.steps += 1;
  take(runner, item, progress);
  if (progress.state.status !== 'running') fail(runner, session.failure ?? ruined());
}

function takeReport(runner: Runner, report: VenueReport): void {
  const { session, reported } = runner;
  const { order, status, filled, cost, fee, fee_units, corrections } = report;
  runner.checkedAt = Date.now();
  if (!(session?.rules !== undefined)) {
    // It is asked for again once there is a session.
    if (status !== 'open') runner.endedBefore.add(order);
    return;
  }
  const text = JSON.stringify([status, filled, cost, fee, fee_units, corrections]);
  if (reported.get(order) === text) return;
  try {
    take(runner, { kind: 'venue.report', report }, session.report(report));
    if (status === 'open') reported.set(order, text);
    else reported.delete(order);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    if (isOfNewerEpoch(runner, report)) return;
    runner.parts.log.warn(`the venue tells of an order that is not known: ${error.message}`);
    runner.events.push({ kind: 'venue.orphan', occurred_at: Date.now(), payload: { ...report } });
  }
}

function takeTerms(runner: Runner, rules: VenueRules): void {
  const { session } = runner;
  if (!(session?.rules !== undefined) || runner.ending !== undefined) return;
  const before = session.rules;
  if (JSON.stringify(rules) === JSON.stringify(before)) return;
  take(runner, { kind: 'venue.terms', rules }, session.revise(rules));
  for (const symbol of runner.setup.symbols) {
    const phase = phaseOf(rules, symbol);
    if (phase === phaseOf(before, symbol)) continue;
    const isAlarming = phase === 'halted' || phase === 'deleted';
    runner.parts.log.info(`${symbol} is ${phase} at the venue`);
    const kind = isAlarming ? 'venue.halted' : 'venue.phase';
    runner.events.push({ kind, occurred_at: Date.now(), payload: { symbol, phase } });
  }
}

function phaseOf({ instruments }: VenueRules, symbol: string): MarketPhase | 'deleted' {
  const rules = instruments[symbol];
  return rules === undefined ? 'deleted' : (rules.phase ?? 'open');
}

function takeServerNews(runner: Runner, news: ServerNews): void {
  const { log } = runner.parts;
  if ('answer' in news) {
    const { command, halt, controls } = news.answer;
    runner.supervision = controls as SessionSupervision;
    runner.claimed.resolve();
    if (command === 'halt') {
      const { halt_id, reason, by } = halt ?? { halt_id: '', reason: '', by: '' };
      end(runner, 'halted', true, { halt: { halt_id, reason, by } });
    } else if (command === 'stop') end(runner, 'stopped', true);
  } else if ('fenced' in news) {
    runner.isFenced = true;
    log.error('another instance has the claim: this one ends, and touches nothing');
  } else if ('gone' in news) {
    runner.isGone = true;
    runner.claimed.resolve();
    log.warn('the server knows of no such deployment any more: what is open is canceled');
    end(runner, 'stopped', true);
  } else {
    runner.isLost ||= news.fault.reason === 'log_lost';
    runner.claimed.resolve();
    fail(runner, news.fault);
  }
}

function ruined(): ServiceError {
  return new ServiceError('failure', 'the account is lost', { reason: 'ruined' });
}
