/** One bot at one simulated venue, in virtual time: what a case is played in. */
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import type { Bot } from '../../bots/load-bot.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { msSince, thisMoment } from '../../base/elapsed.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import { seededRandom } from '../../engine/random.ts';
import type { Step } from '../../engine/steps.ts';
import type { Log } from '../../base/log.ts';
import { MINUTE } from '../../market/bar-time.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import type { ServerConnection } from '../../trading/host/pod/server-connection.ts';
import type { RunnerMetrics } from '../../trading/host/pod/runner-metrics.ts';
import { trade } from '../../trading/host/pod/trade.ts';
import type { Connections, RunEnd } from '../../trading/host/pod/trade-options.ts';
import { liveFeed } from '../../trading/live-feed.ts';
import type { TimedPermit } from '../../trading/session-supervision.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { Venue, VenueReport } from '../../trading/venue.ts';
import type { Scenario, Deed } from '../venue/session/scenario.ts';
import { SimulatedVenue, type VenueLine } from '../venue/session/simulated-venue.ts';
import type { SelfTrade } from '../venue/session/order.ts';
import { openDoor, type Numbers } from './door.ts';
import { newExerciser, type Exerciser, type Hands } from './exerciser.ts';
import { barsOf, OTHERS, othersAt, PRICE_UNIT, TICK } from './market.ts';
import type { BarService, Others } from './market.ts';
import { memoryJournal, type MemoryJournal } from './memory-journal.ts';
import { inVirtualTime, type Life, type VirtualTime } from './virtual-time.ts';

type RunnerAnswer = NonNullable<Awaited<ReturnType<ServerConnection['end']>>>;

/** A bot that is tried. */
export interface TriedBot {
  readonly bot: Pick<Bot, 'spec' | 'strategy' | 'params'>;
  /** Shows steps to a strategy that runs elsewhere; see `HostedRun`. */
  readonly take?: (steps: readonly Step[]) => Promise<void>;
  /** What stands between its session code and the venue, where that is not what is delivered. */
  readonly adapter?: (venue: Venue, context: AdapterContext) => Venue;
}

export interface AdapterContext {
  readonly deploymentId: string;
  /** Says a word to the venue as the session itself would. */
  readonly deed: (deed: Deed) => void;
}

export interface WorldOptions {
  readonly seed: number;
  /** Whose orders are tried; the exerciser's by default. */
  readonly drive?: 'own' | 'exerciser';
  readonly isCanceledOnDisconnect?: boolean;
  readonly selfTrade?: SelfTrade;
  /** Whether each report comes three times, with the one before it in between. */
  readonly repeats?: boolean;
  /** Of trades, as a share of the last price; none by default. */
  readonly corridor?: number;
}

/** What happened on the bot's side. */
export interface BotLine {
  /** ms since the epoch. */
  readonly time: number;
  readonly kind: 'asked' | 'answered' | 'failed' | 'reported' | 'event' | 'log' | 'ended';
  readonly message: unknown;
}

/** Something that people are to know. */
export interface Alert {
  /** ms since the epoch. */
  readonly time: number;
  readonly message: string;
}

/** How an exerciser trades within the limits of the bot. */
export interface Sizes {
  /** Currency. */
  readonly price: number;
  /** Units of one order of which a fourth can be filled. */
  readonly quantity: number;
  /** Units in which the venue counts. */
  readonly unit: number;
  /** Of a limit that rests, below and above the price; currency. */
  readonly below: number;
  readonly above: number;
}

export interface World {
  readonly time: VirtualTime;
  readonly venue: SimulatedVenue;
  readonly others: Others;
  readonly data: BarService;
  readonly exerciser: Exerciser;
  readonly config: EngineConfig;
  readonly symbols: readonly string[];
  readonly symbol: string;
  readonly sizes: Sizes;
  readonly journal: MemoryJournal;
  readonly venueLog: readonly VenueLine[];
  readonly botLog: readonly BotLine[];
  readonly alerts: readonly Alert[];
  readonly deploymentId: string;
  /** Starts the session code, or starts it again on the log that it left. */
  start(): void;
  /** Ends it as SIGKILL does: nothing of it goes on. */
  kill(): void;
  /** Asks it to end, as SIGTERM does. */
  terminate(): void;
  /** Begins, and shows the bot its first bars. */
  begin(): Promise<void>;
  /** Ends the bar with one trade of the others, and begins the next. @param price of every instrument */
  bar(price?: number): Promise<void>;
  /** Has the bar that is open end without another trade. */
  quietBar(): Promise<void>;
  /** Has the exerciser do something at the end of the bar that is open. */
  act(what: (hands: Hands) => void, price?: number): Promise<void>;
  do(deed: Deed): void;
  /** By whoever looks after the bot. */
  command(command: 'halt' | 'stop'): void;
  /** Has the server tell of an order that two people let pass a limit. */
  permit(permit: TimedPermit): void;
  /** Whether the server can be reached. */
  isServerReachable: boolean;
  /** As recorded last. */
  state(): SessionState | undefined;
  /** Order events so far. */
  events(): readonly OrderEvent[];
  readonly end: RunEnd | undefined;
  /** Has a difference at the end that the case has made on purpose not count. */
  tolerate(what: 'log'): void;
  readonly tolerated: ReadonlySet<string>;
  /** In which the venue counts a quantity. */
  units(quantity: number): number;
  /** Messages that the venue heard of the bot's session, by type. */
  heard(type: string): readonly (Readonly<Record<string, unknown>> & { readonly at: number })[];
  /** Units and cash, by the venue. */
  held(): { readonly cash: number; readonly positions: Readonly<Record<string, number>> };
}

export const SESSION = 'bot';
export const ACCOUNT = 'bot';
/** A Monday, so that no calendar has a holiday of it. */
const START = Date.UTC(2026, 0, 5, 9);
const LATENCY_MS = 5;
const LEAST_QUARTERS = 8;
const TIMEFRAME = parseTimeframe('1m');

/** Plays a case: the world is gone when `play` has resolved. */
export async function inWorld<T>(
  tried: TriedBot,
  options: WorldOptions,
  play: (world: World) => Promise<T>,
): Promise<T> {
  const { spec, strategy } = tried.bot;
  const config = engineConfig(spec);
  const { symbols } = spec.spec.universe;
  const sizes = sizesFor(config);
  const venue = new SimulatedVenue(scenarioOf(symbols, config.cash, sizes, options));
  const random = seededRandom(options.seed ^ 0x2545f491);
  return inVirtualTime(venue, random, async (time) => {
    const deploymentId = deploymentOf(options.seed);
    const venueLog: VenueLine[] = [];
    const botLog: BotLine[] = [];
    const alerts: Alert[] = [];
    const tolerated = new Set<string>();
    const journal = memoryJournal((some) => {
      for (const { kind, occurred_at, payload } of some) {
        note('event', { kind, occurred_at, payload });
        if (!ALERTING.has(kind)) continue;
        const { reason = '', phase = '' } = payload as { readonly [name: string]: string };
        alerts.push({ time: venue.now, message: `${kind} ${reason}${phase}`.trim() });
      }
    });
    const exerciser = newExerciser();
    const others = othersAt(venue);
    const data = barsOf(venue, sizes.unit);
    const numbers: Numbers = { nextOut: 1, nextIn: 1, requests: 0, corrections: new Map() };
    const note = (kind: BotLine['kind'], message: unknown): void =>
      void botLog.push({ time: venue.now, kind, message });
    let life: Life | undefined;
    const permits: TimedPermit[] = [];
    let tell: ((command: RunnerAnswer['command']) => void) | undefined;
    let end: RunEnd | undefined;

    venue.listen((line) => {
      // Of market data only what has happened, and what a session goes by.
      const { type } = line.message as { readonly type?: string };
      if (line.stream === 'feed' && type !== 'trade' && type !== 'status') return;
      venueLog.push({ ...line, message: { ...line.message } });
    });
    const log = logTo((level, text) => {
      note('log', { level, text });
      if (level !== 'info') alerts.push({ time: venue.now, message: text });
    });
    const deed = (what: Deed): void => venue.at(venue.now, what);
    const connections = (its: Life): Connections => ({
      openExchangeVenue: async ({ onTrouble }) => {
        const door = await openDoor({
          venue,
          session: SESSION,
          password: 'simulated',
          deploymentId,
          quantityUnit: sizes.unit,
          priceUnit: PRICE_UNIT,
          isCanceledOnDisconnect: options.isCanceledOnDisconnect ?? false,
          selfTrade: options.selfTrade ?? 'none',
          numbers,
          onTrouble: (text) => !its.isOver && onTrouble?.(text),
        });
        links.set(its, door);
        return noted(tried.adapter?.(door, { deploymentId, deed }) ?? door, {
          life: its,
          note,
          repeats: options.repeats === true,
        });
      },
      openFeed: async () => ({
        items: (after, signal) =>
          liveFeed({
            exchange: data.exchange,
            symbols,
            timeframe: TIMEFRAME,
            after,
            signal,
            onTrouble: (text) => log.warn(`market data: ${text}`),
          }),
        close: async () => {},
      }),
      connectToServer({ onNews }) {
        let answeredAt = thisMoment();
        let command: RunnerAnswer['command'] = 'trade';
        const answer = (): RunnerAnswer => ({
          epoch: 1,
          claim_seconds: 60,
          report_seconds: 5,
          command,
          halt:
            command === 'halt'
              ? { halt_id: 'h1', scope: 'bot', reason: 'conformance', by: 'administrator:case' }
              : null,
          recorded: 0,
          controls: {
            thresholds: {},
            permits: permits.map((one) => ({ ...one, controls: [...one.controls] })),
            latches_lifted: 0,
          },
        });
        tell = (what) => {
          command = what;
          onNews({ answer: answer() });
        };
        tell('trade');
        return {
          mayTrade: () => {
            // Reading the uptime takes most of the time of a test, and virtual time seldom advances.
            if (world.isServerReachable && answeredAt.calendar !== Date.now())
              answeredAt = thisMoment();
            return msSince(answeredAt) < CLAIM_MS;
          },
          get answeredAt() {
            return answeredAt;
          },
          hasClaim: true,
          report() {},
          end: async () => (world.isServerReachable ? answer() : undefined),
        };
      },
    });
    let terminate = (): void => {};
    const links = new Map<Life, Venue>();
    const ended = async (done: Promise<RunEnd>, its: Life): Promise<void> => {
      try {
        const known = await done;
        if (its.isOver) return;
        end = known;
        const { outcome, verified, orders, error } = known;
        note('ended', { outcome, verified, orders, error: error?.message ?? null });
      } catch (error) {
        note('ended', { outcome: 'threw', error: String(error) });
      }
    };
    const running: typeof strategy = options.drive === 'own' ? strategy : exerciser.strategy;
    const world: World = {
      time,
      venue,
      others,
      data,
      exerciser,
      config,
      symbols,
      symbol: symbols[0]!,
      sizes,
      journal,
      venueLog,
      botLog,
      alerts,
      deploymentId,
      isServerReachable: true,
      get end() {
        return end;
      },
      start() {
        const its: Life = { isOver: false };
        life = its;
        const stop = new AbortController();
        terminate = () => stop.abort();
        const done = time.live(its, () =>
          trade({
            config: configOf(deploymentId),
            bot: {
              bot: { ...tried.bot, spec: inMinutes(spec), strategy: running } as Bot,
              hash: '',
              // A bot that has models comes with files, whose strategy is not run here.
              signals: undefined,
              needsSteps: tried.take !== undefined,
              take: (steps: readonly Step[]) =>
                tried.take === undefined ? NOTHING : time.real(() => tried.take!(steps)),
              close: async () => {},
            },
            journal,
            gate: undefined,
            metrics: NO_METRICS,
            log,
            stop: stop.signal,
            instanceId: 'conformance',
            catalogueDir: '',
            timeoutMs: STRATEGY_TIMEOUT_MS,
            connections: connections(its),
            onView() {},
          }),
        );
        void ended(done, its);
      },
      terminate: () => terminate(),
      kill() {
        if (life === undefined) return;
        life.isOver = true;
        void links.get(life)?.close();
      },
      async begin() {
        world.start();
        await time.pass(2000);
        for (let i = 0; i < 3; i += 1) await world.bar();
      },
      async bar(price = sizes.price) {
        const next = (Math.floor(venue.now / MINUTE) + 1) * MINUTE;
        await time.pass(next - venue.now + 100);
        for (const symbol of symbols) others.print(symbol, price);
        await time.pass(1000);
      },
      async quietBar() {
        const next = (Math.floor(venue.now / MINUTE) + 1) * MINUTE;
        await time.pass(next - venue.now + 100);
        for (const symbol of symbols) data.tick(symbol);
        await time.pass(1000);
      },
      async act(what, price) {
        exerciser.tell(what);
        await world.bar(price);
        // After a while without trades it takes another one for a bar to end.
        if (!exerciser.isDone) await world.bar(price);
      },
      do: deed,
      command: (command) => tell?.(command),
      permit(permit) {
        permits.push(permit);
        tell?.('trade');
      },
      state: () => journal.state,
      events: () =>
        journal.events
          .filter(({ kind }) => kind.startsWith('order.'))
          .map(({ payload }) => payload as OrderEvent),
      tolerated,
      tolerate: (what) => void tolerated.add(what),
      units: (quantity) => Math.round(quantity / sizes.unit),
      heard: (type) =>
        venueLog.flatMap((line) => {
          const message = line.message as Readonly<Record<string, unknown>>;
          const isIt = line.kind === 'heard' && line.whose === SESSION && message['type'] === type;
          return isIt ? [{ ...message, at: line.time }] : [];
        }),
      held() {
        const { cash, positions } = venue.holdings(ACCOUNT);
        const units = Object.entries(positions).flatMap(([symbol, count]) =>
          count === 0 ? [] : [[symbol, Number((count * sizes.unit).toFixed(9))]],
        );
        return { cash, positions: Object.fromEntries(units) };
      },
    };
    deed({ do: 'phase', phase: 'continuous' });
    try {
      return await play(world);
    } finally {
      world.kill();
      await time.pass(10);
    }
  });
}

/** Events of which the server is told, and with it whoever watches the bot. */
const ALERTING: ReadonlySet<string> = new Set([
  'order.denied',
  'order.rejected',
  'order.corrected',
  'venue.halted',
  'venue.mismatch',
  'venue.orphan',
  'data.refused',
  'data.gap',
  'control.denying',
  'control.halted',
]);

/** Two thirds of a claim. */
const CLAIM_MS = 40_000;
/**
 * Long, because the test itself places the orders and ends: a busy host must not end the session by
 * this timeout.
 */
const STRATEGY_TIMEOUT_MS = 3_600_000;
const NOTHING = Promise.resolve();

const NO_METRICS: RunnerMetrics = {
  count() {},
  denying() {},
  alerted() {},
  show() {},
  text: async () => '',
  contentType: '',
};

/** Bars are of a minute here, whatever the bot's own are: only then there are enough of them. */
function inMinutes(spec: BotSpec): BotSpec {
  const { data } = spec.spec;
  return { ...spec, spec: { ...spec.spec, data: { ...data, timeframe: TIMEFRAME.name } } };
}

/** What the bot's limits leave room for. */
function sizesFor({ cash, units, risk }: EngineConfig): Sizes {
  const budget = Math.min(cash / 20, risk.max_order_value / 2, (risk.max_position_pct * cash) / 8);
  const isWhole = units === 'whole';
  const most = risk.max_order_qty / 2;
  const price = Math.max(1, Math.min(100, isWhole ? Math.floor(budget / LEAST_QUARTERS) : 100));
  const wanted = Math.min(budget / price, most);
  const unit = isWhole ? 1 : 10 ** Math.min(-3, Math.floor(Math.log10(wanted / 1000)));
  const quantity = Number((Math.floor(wanted / unit / 4) * 4 * unit).toFixed(9));
  const away = Math.min(0.01, risk.price_collar_bps / 20_000);
  const onTick = (value: number): number => Number((Math.round(value * 100) / 100).toFixed(2));
  return {
    price,
    quantity,
    unit,
    below: onTick(price * (1 - away)),
    above: onTick(price * (1 + away)),
  };
}

function scenarioOf(
  symbols: readonly string[],
  cash: number,
  { price, unit }: Sizes,
  { seed, corridor = Infinity }: WorldOptions,
): Scenario {
  return {
    seed,
    start: START,
    instruments: symbols.map((instrument) => ({
      instrument,
      price_unit: PRICE_UNIT,
      quantity_unit: unit,
      tick: TICK,
      lot: 1,
      max_quantity: 1e12,
      band: 0.5,
      corridor,
      reference_price: Math.round(price / PRICE_UNIT),
      call_ms: 5 * MINUTE,
      random_end_ms: 30_000,
    })),
    accounts: [{ name: ACCOUNT, cash }, ...OTHERS.map((name) => ({ name, cash: 1e9 }))],
    sessions: [
      {
        name: SESSION,
        password: 'simulated',
        account: ACCOUNT,
        heartbeat_ms: 30_000,
        latency_ms: LATENCY_MS,
        resend_pace_ms: 1,
        resend_depth: 10_000,
      },
    ],
    feed: { latency_ms: { a: 1, b: 2 }, heartbeat_ms: 0, replay_depth: 1000 },
    faults: [],
    deeds: [],
  };
}

function configOf(deploymentId: string): Parameters<typeof trade>[0]['config'] {
  return {
    apiVersion: 'run/v1',
    kind: 'Run',
    bot: '',
    deployment_id: deploymentId,
    version: 1,
    state_dir: '',
    exchange: { name: 'simulated', ccxt: 'simulated' },
    venue: { type: 'exchange', credentials_dir: '' },
    control: { url: 'http://conformance.invalid', token_file: '' },
  };
}

function deploymentOf(seed: number): string {
  return `00000000-0000-4000-8000-${(seed >>> 0).toString(16).padStart(12, '0')}`;
}

/** A venue of which all that is asked and answered is noted; a life that is over is not answered. */
function noted(
  venue: Venue,
  {
    life,
    note,
    repeats,
  }: {
    readonly life: Life;
    readonly note: (kind: BotLine['kind'], message: unknown) => void;
    readonly repeats: boolean;
  },
): Venue {
  const asked = async <T>(what: string, about: unknown, work: () => Promise<T>): Promise<T> => {
    if (life.isOver) return new Promise<T>(() => {});
    note('asked', { what, about });
    try {
      const answer = await work();
      if (life.isOver) return await new Promise<T>(() => {});
      note('answered', { what, answer });
      return answer;
    } catch (error) {
      if (life.isOver) return new Promise<T>(() => {});
      note('failed', { what, error: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  };
  return {
    name: venue.name,
    rules: () => asked('rules', null, () => venue.rules()),
    place: (order) => asked('place', order, () => venue.place(order)),
    cancel: (order) => asked('cancel', order, () => venue.cancel(order)),
    find: (order) => asked('find', order, () => venue.find(order)),
    openOrders: () => asked('open_orders', null, () => venue.openOrders()),
    account: () => asked('account', null, () => venue.account()),
    async *reports(signal) {
      let before: VenueReport | undefined;
      for await (const report of venue.reports(signal)) {
        if (life.isOver) return;
        const all = repeats ? [report, before ?? report, report] : [report];
        before = report;
        for (const one of all) {
          note('reported', one);
          yield one;
        }
      }
    },
    async *terms(signal) {
      for await (const rules of venue.terms(signal)) {
        if (life.isOver) return;
        note('reported', rules);
        yield rules;
      }
    },
    close: () => venue.close(),
  };
}

function logTo(write: (level: 'info' | 'warn' | 'error', text: string) => void): Log {
  const to =
    (level: 'info' | 'warn' | 'error') =>
    (what: unknown): void =>
      write(level, typeof what === 'string' ? what : faultOf(what));
  return { debug: () => {}, info: to('info'), warn: to('warn'), error: to('error') } as Log;
}

/** Without a stack, which tells where the program is installed. */
function faultOf(what: unknown): string {
  const { msg = '', err } = what as { readonly msg?: string; readonly err?: unknown };
  return `${msg}: ${String(err)}`;
}
