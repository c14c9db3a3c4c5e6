/**
 * One deployment at work. Whatever happens (bars, what the venue tells, what the server says, a
 * signal) comes to one inbox and is taken in order: the session is told, what it was told and what
 * came of it is put on disk, and only then the venue is asked for anything. Nobody in here waits for
 * the venue or the server; they answer into the inbox.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { engineConfig } from '../bots/spec.ts';
import type { Step } from '../engine/steps.ts';
import { ServiceError } from '../errors.ts';
import type { LicenseGate } from '../gate/gate.ts';
import type { Log } from '../log.ts';
import { dataEvent, orderEvent, type SessionEvent } from '../tasks/session-events.ts';
import { asTaskError } from '../tasks/task-error.ts';
import { openExchangeVenue, type ExchangeVenueOptions } from '../trading/exchange-venue.ts';
import type { DataEvent, FeedItem } from '../trading/feed.ts';
import {
  reconcileHoldings,
  reconcileOrders,
  type Mismatch,
  type OrderReconciliation,
} from '../trading/reconcile.ts';
import type { SessionInput } from '../trading/session-input.ts';
import { stateHash, type Progress, type SessionState } from '../trading/session-state.ts';
import { Session } from '../trading/session.ts';
import { VenueSession } from '../trading/venue-session.ts';
import type { DenyReason, Venue, VenueOrderId, VenueReport } from '../trading/venue.ts';
import { openFeed, type RunningBot, type RunningFeed } from './bot.ts';
import type { RunConfig } from './config.ts';
import { startControl, type ControlNews, type Ended, type Said } from './control.ts';
import { openDesk, type Desk } from './desk.ts';
import type { Missing } from './health.ts';
import { newInbox } from './inbox.ts';
import { inputEvent } from './inputs.ts';
import type { Journal } from './journal.ts';
import type { RunnerMetrics, Times } from './metrics.ts';
import { cancelAll, untilAnswered } from './venue.ts';

/** What a deployment trades with. */
export interface Trade {
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
  readonly doors?: Doors | undefined;
  /** Aborted when it is to end in good order. */
  readonly stop: AbortSignal;
  /** Handed what may be asked about it while it goes on. */
  readonly onView: (view: View) => void;
}

export interface VenueTimes extends Pick<ExchangeVenueOptions, 'settleMs' | 'timeoutMs'> {
  /** How long to try to cancel what is open, ms. */
  readonly cancelWithinMs?: number;
}

export interface View {
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

type Item =
  | 'look'
  | 'stop'
  | 'feed_ended'
  | { readonly feed: FeedItem }
  | { readonly report: VenueReport }
  | { readonly control: ControlNews }
  | { readonly opened: Opened }
  | { readonly reconciled: OrderReconciliation }
  | { readonly holdings: readonly Mismatch[] }
  | { readonly feedOpened: RunningFeed }
  | { readonly fault: unknown }
  | { readonly concluded: boolean };

interface Opened {
  readonly session: Session;
  readonly denying: DenyReason | null;
}

/** Why it is to end. */
interface Ending {
  outcome: Exclude<RunEnd['outcome'], 'fenced'>;
  /** Whether it trades never again; else another process may go on. */
  isFinal: boolean;
  error: ServiceError | undefined;
  readonly orders: readonly { readonly order: number; readonly symbol: string }[];
}

/** Of a deployment. A run in virtual time has others, which answer as these do. */
const DOORS = { openExchangeVenue, openFeed, startControl };
export type Doors = typeof DOORS;

const LOOK_EVERY_MS = 1000;
const CANCEL_WITHIN_MS = 20_000;
const TELL_WITHIN_MS = 10_000;
/** After what the venue holds was found to be less than the session's. */
const FIRST_RECHECK_MS = 2000;
const RECHECK_MS = 30_000;
const FEATURE = 'live_trading';

export async function trade(parts: Trade): Promise<RunEnd> {
  const { config, instanceId, bot, journal, gate, metrics, log, stop, onView } = parts;
  const { deployment_id: deploymentId, exchange } = config;
  const { cancelWithinMs = CANCEL_WITHIN_MS, ...venueTimes } = parts.venueTimes ?? {};
  const doors = parts.doors ?? DOORS;
  const isExchange = config.venue.type === 'exchange';
  const inbox = newInbox<Item>();
  const closing = new AbortController();
  const feeding = new AbortController();
  const { signal } = closing;
  const claimed = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();

  let session: Session | undefined;
  let at: { readonly venue: Venue; readonly desk: Desk } | undefined;
  let feed: RunningFeed | undefined;
  let { steps } = journal;
  let denying: DenyReason | null = null;
  let mismatches: readonly Mismatch[] | undefined;
  let ending: Ending | undefined;
  let isGone = false;
  let isFenced = false;
  /** The server knows more than the log, and orders would get the numbers of others. */
  let isLost = false;
  /** The session has gone on where the log has not: nothing of it is to be kept. */
  let isBroken = false;
  let verified: boolean | undefined;
  let gaps: DataEvent[] = [];
  let wasGrace = false;
  let barAt: number | undefined;
  let openOrders: number | null = null;
  let checkedAt: number | null = null;
  /** Of each order, what its newest report said. */
  const reported = new Map<number, string>();

  const working = (): SessionState['working'] => (session?.state() ?? journal.state)?.working ?? [];
  const atVenue = (): readonly VenueOrderId[] =>
    working().flatMap(({ order, symbol, client_order_id }) =>
      client_order_id === undefined ? [] : [{ order, symbol, client_order_id }],
    );
  const say = (): Said => ({
    status:
      ending !== undefined
        ? ending.outcome === 'halted'
          ? 'halting'
          : 'stopping'
        : mismatches === undefined
          ? 'starting'
          : denying === null
            ? 'trading'
            : 'denying',
    denying,
    venue: {
      connected: isExchange ? at !== undefined && at.desk.isConnected : true,
      open_orders: isExchange ? openOrders : working().length,
      checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    },
  });
  const control =
    config.control &&
    doors.startControl({
      control: config.control,
      deploymentId,
      instanceId,
      say,
      log,
      signal,
      nextBatch: (recorded) => journal.nextBatch(recorded),
      onNews: (news) => inbox.put({ control: news }),
    });
  if (control === undefined) claimed.resolve();
  onView({
    working,
    times: () => ({ bar: barAt, report: control?.heardAt, venue: at?.desk.heardAt }),
    missing: () => ({
      ...(control && !control.hasClaim && { claim: 'the server has not granted it' }),
      ...(session === undefined && { session: 'it is not resumed yet' }),
      ...(mismatches === undefined && { venue: 'it is not reconciled yet' }),
      ...(mismatches !== undefined && mismatches.length > 0 && { venue: told(mismatches) }),
      ...(feed === undefined && { feed: 'no bars come yet' }),
      ...(at !== undefined && !at.desk.isConnected && { venue: 'it does not answer' }),
      ...(denying !== null && { denying }),
      ...(ending !== undefined && { ending: ending.outcome }),
    }),
  });

  // What takes time, and answers into the inbox.
  const begin = (work: () => Promise<Item | undefined>): void =>
    void work().then(
      (item) => item !== undefined && inbox.put(item),
      (fault: unknown) => {
        if (!signal.aborted) inbox.put({ fault });
      },
    );
  const answered = <T>(what: string, work: () => Promise<T>): Promise<T> =>
    untilAnswered(work, (error) => log.warn(`${what}: ${error.message}`), signal);

  const openVenue = async (): Promise<void> => {
    const { venue: chosen } = config;
    if (chosen.type !== 'exchange') return;
    const { name, ...definition } = exchange!;
    const { universe } = bot.bot.spec.spec;
    const open = (): Promise<Venue> =>
      doors.openExchangeVenue({
        name,
        definition,
        deploymentId,
        signal,
        credentialsDir: chosen.credentials_dir,
        symbols: universe.symbols,
        currency: universe.currency,
        account: engineConfig(bot.bot.spec).account.model,
        onTrouble: (text) => log.warn(`${name}: ${text}`),
        ...venueTimes,
      });
    const venue = await answered('the venue is not to be had', open);
    const desk = openDesk({
      venue,
      log,
      signal,
      // What was to be placed by a process before may be there: that is found out first.
      mayPlace: () =>
        mismatches !== undefined &&
        ending === undefined &&
        !isFenced &&
        (control?.mayTrade() ?? true),
      onReport: (report) => inbox.put({ report }),
      onRetry: () => inbox.put('look'),
    });
    at = { venue, desk };
    if (journal.rules === undefined) {
      await journal.keepRules(await answered('the rules of the venue', () => venue.rules()));
    }
  };
  const open = async (): Promise<Item> => {
    await claimed.promise;
    await openVenue();
    // An empty log would begin from nothing where there is more.
    if (isLost) {
      resumed.resolve();
      return 'look';
    }
    const setup = {
      symbols: bot.bot.spec.spec.universe.symbols,
      strategy: bot.bot.strategy,
      params: bot.bot.params,
      config: engineConfig(bot.bot.spec),
      timeoutMs: parts.timeoutMs,
      opening: config.opening,
    };
    let last: DenyReason | null = null;
    const inputs = shown(journal.inputs(), bot.take, (reason) => (last = reason));
    const made =
      at === undefined
        ? await Session.resume(setup, inputs)
        : await VenueSession.resume(
            { ...setup, deployment_id: deploymentId, rules: journal.rules! },
            inputs,
          );
    if (journal.state !== undefined && stateHash(made.state()) !== stateHash(journal.state)) {
      throw new ServiceError('failure', 'its log leads to another state than was recorded', {
        reason: 'not_reproducible',
        remedy: 'Deploy anew: the engine or the strategy is not what it was.',
      });
    }
    return { opened: { session: made, denying: last } };
  };
  const reconcile = async (): Promise<Item> => ({
    reconciled: await answered('orders are not reconciled', () =>
      reconcileOrders(at!.venue, deploymentId, atVenue()),
    ),
  });
  const compare = async (): Promise<Item> => ({
    holdings: await answered('holdings are not known', () =>
      reconcileHoldings(at!.venue, session!.state()),
    ),
  });
  const openBars = async (): Promise<Item> => ({
    feedOpened: await answered('no bars are to be had', () =>
      doors.openFeed(config, bot.bot, parts.catalogueDir, log),
    ),
  });
  const pumpBars = async (from: RunningFeed): Promise<Item | undefined> => {
    const { time } = session!.state();
    const stopped = AbortSignal.any([signal, feeding.signal]);
    try {
      for await (const item of from.items(time === null ? undefined : Date.parse(time), stopped)) {
        inbox.put({ feed: item });
        await inbox.room();
        stopped.throwIfAborted();
      }
      return 'feed_ended';
    } catch (error) {
      if (stopped.aborted) return undefined;
      throw error;
    }
  };
  const pumpReports = async ({ venue, desk }: NonNullable<typeof at>): Promise<undefined> => {
    for await (const report of venue.reports(signal)) {
      desk.heard();
      inbox.put({ report });
    }
  };
  const conclude = async (): Promise<Item> => {
    // A session that comes yet is to be halted, too.
    const isResumed = Promise.race([resumed.promise, delay(cancelWithinMs, undefined, { signal })]);
    if (!isExchange) {
      await isResumed;
      return { concluded: true };
    }
    const isUnbegun = session === undefined && journal.state === undefined && !isLost;
    if (isUnbegun) return { concluded: true };
    const onOpen = (count: number): void => {
      openOrders = count;
      checkedAt = Date.now();
    };
    const all = { deploymentId, at: () => at, working: atVenue, onOpen, signal };
    const [concluded] = await Promise.all([
      cancelAll({ ...all, withinMs: cancelWithinMs }),
      isResumed,
    ]);
    return { concluded };
  };

  // What is done with each.
  const events: SessionEvent[] = [];
  const take = (input: SessionInput, { events: made }: Progress, why = {}): void => {
    events.push(inputEvent(input, Date.now(), why), ...made.map(orderEvent));
    metrics.count(made);
  };
  const end = (
    outcome: Ending['outcome'],
    isFinal: boolean,
    { error, why = {} }: { error?: ServiceError; why?: Readonly<Record<string, string>> } = {},
  ): void => {
    if (ending === undefined) {
      ending = { outcome, isFinal, error, orders: working() };
      feeding.abort();
      log.info(`ending: ${outcome}`);
      // Without the claim, what is open may be another's.
      if (control === undefined || control.hasClaim || isGone) begin(conclude);
      else verified = working().length === 0;
    } else if (isFinal && !ending.isFinal) Object.assign(ending, { outcome, isFinal });
    else return;
    haltSession(why);
  };
  const haltSession = (why: Readonly<Record<string, string>> = {}): void => {
    if (ending?.isFinal !== true || session === undefined || isBroken) return;
    const { status, working: left } = session.state();
    if (status !== 'running' && left.length === 0) return;
    take({ kind: 'control.halted' }, session.halt(), why);
  };
  const fail = (error: unknown): void => {
    if (!(error instanceof ServiceError)) log.error({ err: error, msg: 'it fails' });
    const known =
      error instanceof ServiceError
        ? error
        : new ServiceError('failure', 'it failed for a reason nobody expected', { cause: error });
    end('failed', true, { error: known });
  };
  const wanted = (): DenyReason | null => {
    if (ending !== undefined) return ending.outcome === 'finished' ? denying : 'stopping';
    if (mismatches !== undefined && mismatches.length > 0) return 'reconcile_mismatch';
    const decision = gate?.check(FEATURE);
    const isGrace = decision?.allowed === true && decision.status === 'grace';
    if (isGrace && !wasGrace) log.warn('the lease is in its grace period: renew it');
    wasGrace = isGrace;
    if (decision?.allowed === false) return 'license_invalid';
    return control === undefined || control.mayTrade() ? null : 'control_unreachable';
  };
  const settleDenial = (): void => {
    if (session === undefined || isBroken || session.state().status !== 'running') return;
    const reason = wanted();
    if (reason === denying) return;
    denying = reason;
    take({ kind: 'control.denying', reason }, session.deny(reason));
    metrics.denying(reason);
    if (reason === null) log.info('new orders are taken again');
    else log[reason === 'stopping' ? 'info' : 'warn'](`new orders are denied: ${reason}`);
    control?.report();
  };
  const takeFeed = async (item: FeedItem): Promise<void> => {
    if (ending !== undefined || session === undefined) return;
    if (item.kind !== 'data.bars') {
      // Of a gap its bars come next, and belong with it: alone, it would be told again after a crash.
      if (item.kind === 'data.gap') gaps.push(item);
      else events.push(dataEvent(item));
      return;
    }
    barAt = performance.now();
    await bot.take([item.step]);
    const progress = session.push(item.step);
    if (session.failure?.code === 'interrupted') {
      isBroken = true;
      end('stopped', false);
      return;
    }
    events.push(...gaps.map(dataEvent));
    gaps = [];
    steps += 1;
    take(item, progress);
    if (progress.state.status === 'running') return;
    if (session.failure !== undefined) fail(session.failure);
    else fail(new ServiceError('failure', 'the account is lost', { reason: 'ruined' }));
  };
  const takeReport = (report: VenueReport): void => {
    if (!(session instanceof VenueSession)) return;
    checkedAt = Date.now();
    const { order, status, filled, cost, fee, fee_units } = report;
    const text = JSON.stringify([status, filled, cost, fee, fee_units]);
    if (reported.get(order) === text) return;
    try {
      take({ kind: 'venue.report', report }, session.report(report));
      if (status === 'open') reported.set(order, text);
      else reported.delete(order);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      log.warn(`the venue tells of an order that is not known: ${error.message}`);
      events.push({ kind: 'venue.orphan', occurred_at: Date.now(), payload: { ...report } });
    }
  };
  const takeControl = (news: ControlNews): void => {
    if ('answer' in news) {
      const { command, halt } = news.answer;
      claimed.resolve();
      if (command === 'halt') {
        const { halt_id, reason, by } = halt ?? { halt_id: '', reason: '', by: '' };
        end('halted', true, { why: { halt_id, reason, by } });
      } else if (command === 'stop') end('stopped', true);
    } else if ('fenced' in news) {
      isFenced = true;
      log.error('another instance has the claim: this one ends, and touches nothing');
    } else if ('gone' in news) {
      isGone = true;
      claimed.resolve();
      log.warn('the server knows of no such deployment any more: what is open is canceled');
      end('stopped', true);
    } else {
      isLost = news.fault.reason === 'log_lost';
      claimed.resolve();
      fail(news.fault);
    }
  };
  const takeHoldings = (found: readonly Mismatch[]): void => {
    const isFirst = mismatches === undefined;
    const isNews = JSON.stringify(found) !== JSON.stringify(mismatches ?? []);
    mismatches = found;
    if (isNews && found.length > 0) {
      log.warn(`the venue holds less than the session says: ${told(found)}`);
      events.push({
        kind: 'venue.mismatch',
        occurred_at: Date.now(),
        payload: { mismatches: found },
      });
    } else if (isNews) log.info('the venue holds what the session says');
    if (isFirst) begin(openBars);
    if (found.length === 0) return;
    setTimeout(
      () => {
        if (!signal.aborted && ending === undefined) begin(reconcile);
      },
      isFirst ? FIRST_RECHECK_MS : RECHECK_MS,
    ).unref();
  };
  const takeOpened = ({ session: made, denying: last }: Opened): void => {
    session = made;
    resumed.resolve();
    denying = last;
    metrics.denying(last);
    const { status, time, working: left } = made.state();
    log.info(`resumed: ${steps} steps, until ${time ?? 'nothing'}, ${left.length} working orders`);
    if (ending !== undefined) return haltSession();
    if (status === 'halted') return end('halted', true);
    if (status !== 'running') {
      return fail(
        made.failure ?? new ServiceError('failure', 'the account is lost', { reason: 'ruined' }),
      );
    }
    if (at === undefined) return takeHoldings([]);
    begin(() => pumpReports(at!));
    begin(reconcile);
  };
  const handle = async (item: Item): Promise<void> => {
    if (item === 'look') return;
    if (item === 'stop') end('stopped', false);
    else if (item === 'feed_ended') end('finished', false);
    else if ('feed' in item) await takeFeed(item.feed);
    else if ('report' in item) takeReport(item.report);
    else if ('control' in item) takeControl(item.control);
    else if ('opened' in item) takeOpened(item.opened);
    else if ('reconciled' in item) {
      const { reports, orphans } = item.reconciled;
      for (const report of reports) takeReport(report);
      for (const orphan of orphans) {
        log.warn(
          `order ${orphan.client_order_id} is open at the venue and not known: it is canceled`,
        );
        at!.desk.cancel(orphan);
      }
      begin(compare);
    } else if ('holdings' in item) takeHoldings(item.holdings);
    else if ('feedOpened' in item) {
      feed = item.feedOpened;
      begin(() => pumpBars(item.feedOpened));
      if (control) control.report();
    } else if ('concluded' in item) verified = item.concluded;
    else fail(item.fault);
  };
  const record = async (): Promise<void> => {
    const some = events.splice(0);
    if (isBroken || session === undefined) return;
    const state = session.state();
    try {
      await journal.append(some, state, steps);
      metrics.show(state);
    } catch (error) {
      isBroken = true;
      fail(error);
    }
  };

  const look = setInterval(() => inbox.put('look'), LOOK_EVERY_MS);
  const onStop = (): void => inbox.put('stop');
  stop.addEventListener('abort', onStop);
  if (stop.aborted) onStop();
  const hasEnded = (): boolean => isFenced || verified !== undefined;
  begin(() =>
    open().catch((error: unknown) => {
      resumed.resolve();
      throw error;
    }),
  );
  try {
    while (!hasEnded()) {
      for (const item of await inbox.take()) {
        settleDenial();
        await handle(item);
        if (isFenced) break;
      }
      settleDenial();
      await record();
      if (session instanceof VenueSession && !isFenced && !isBroken) {
        at!.desk.send(session.outbox());
      }
    }
    const state = session?.state() ?? journal.state;
    if (isFenced || ending === undefined) {
      const nothing = { verified: false, orders: [], error: undefined };
      return { outcome: 'fenced', ...nothing, state, steps };
    }
    return await finish(ending, verified === true, state);
  } finally {
    clearInterval(look);
    stop.removeEventListener('abort', onStop);
    closing.abort(new ServiceError('interrupted', 'the runner ends'));
    await feed?.close();
    await at?.venue.close().catch(() => {});
  }

  /** Tells the server how it ended. */
  async function finish(
    { outcome, isFinal, error, orders: begun }: Ending,
    isVerified: boolean,
    state: SessionState | undefined,
  ): Promise<RunEnd> {
    const left = new Set(isExchange ? working().map(({ order }) => order) : []);
    const orders = begun.map(({ order, symbol }) => ({
      order,
      symbol,
      verified: isVerified || (session !== undefined && !left.has(order)),
    }));
    const result = { outcome, verified: isVerified, orders, error, state, steps };
    if (isGone && isVerified) await journal.keepEnd({ outcome });
    if (control === undefined || isGone || !control.hasClaim) return result;
    const known = error && asTaskError(error).error;
    const answer = await control.end(
      {
        outcome: outcome === 'finished' ? 'stopped' : outcome,
        verified: isVerified,
        orders,
        error: known
          ? {
              code: known.code,
              message: known.message,
              ...(known.reason !== undefined && { reason: known.reason }),
              ...(known.remedy !== undefined && { remedy: known.remedy }),
            }
          : null,
      },
      TELL_WITHIN_MS,
    );
    if (answer === undefined) log.warn('the server could not be told how it ended');
    const isOver = isFinal && isVerified && (outcome === 'failed' || answer?.command !== 'trade');
    if (answer !== undefined && isOver) await journal.keepEnd({ outcome });
    return result;
  }
}

function told(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ kind, symbol, expected, held }) => `${symbol ?? kind}: ${held} of ${expected}`)
    .join('; ');
}

/** Steps shown to a strategy elsewhere at once. */
const STEPS_AT_ONCE = 256;

/** What was recorded, with steps shown to the strategy before the session takes them. */
async function* shown(
  inputs: AsyncIterable<SessionInput>,
  show: RunningBot['take'],
  onDenying: (reason: DenyReason | null) => void,
): AsyncGenerator<SessionInput> {
  let some: SessionInput[] = [];
  const flush = async function* () {
    const all = some;
    some = [];
    const steps: Step[] = all.flatMap((input) => (input.kind === 'data.bars' ? [input.step] : []));
    if (steps.length > 0) await show(steps);
    yield* all;
  };
  for await (const input of inputs) {
    if (input.kind === 'control.denying') onDenying(input.reason);
    some.push(input);
    if (some.length === STEPS_AT_ONCE) yield* flush();
  }
  yield* flush();
}
