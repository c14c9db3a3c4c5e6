/** One bot at one simulated exchange in virtual time, in which the parts of cases run. */
import type { Log } from '../../base/log.ts';
import { engineConfig } from '../../bots/spec.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import { seededRandom } from '../../engine/random.ts';
import type { SessionState } from '../../events/session-state.ts';
import { MINUTE } from '../../base/durations.ts';
import type { RunEnd } from '../../trading/host/pod/trade-options.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { ExchangeDefinition } from '../../trading/venues/exchanges-file.ts';
import { Agenda } from '../venue/agenda.ts';
import type { SelfTrade } from '../venue/book-order.ts';
import { limitEndpoints } from '../venue/in-process.ts';
import type { ExchangeLine } from '../venue/exchange-line.ts';
import { SimulatedExchange } from '../venue/simulated-exchange.ts';
import { ControlServer } from './control-server.ts';
import { newExerciser, type Exerciser, type ActContext } from './exerciser.ts';
import { memoryJournal, type MemoryJournal } from './memory-journal.ts';
import { Participants, PARTICIPANTS } from './participants.ts';
import { PRICE_UNIT, sizesFor, type Sizes } from './sizes.ts';
import { TriedSession, type TriedBot } from './tried-session.ts';
import { inVirtualTime, type VirtualTime } from './virtual-time.ts';

export interface WorldOptions {
  readonly seed: number;
  /** Source of the orders; the exerciser by default. */
  readonly drive?: 'own' | 'exerciser';
  /** Self-trade prevention of the account; none by default. */
  readonly selfTrade?: SelfTrade;
  /** Whether every report arrives three times, with the one before it in between. */
  readonly repeats?: boolean;
  /** One-way delay of messages, ms; 5 by default. */
  readonly latencyMs?: number;
  /** Interval at which the adapter queries the market rules, ms; only once by default. */
  readonly termsMs?: number;
}

/** An observation of the session. */
export interface BotLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly kind: 'event' | 'log' | 'ended';
  readonly message: unknown;
}

/** An alert to the people who supervise the bot. */
export interface Alert {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly message: string;
}

/** A request that the exchange received. */
export interface ReceivedRequest {
  readonly params: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Longer than any part. */
const NEVER_MS = 24 * 60 * MINUTE;
/** Name of the account of the bot. */
export const ACCOUNT = 'bot';
const CREDENTIALS = { apiKey: 'simulated', secret: 'simulated' };
/** A Monday on which no calendar has a holiday. */
const START = Date.UTC(2026, 0, 5, 9);

/** Runs `play` in a world that ends with it. */
export function inWorld<T>(
  tried: TriedBot,
  options: WorldOptions,
  play: (world: World) => Promise<T>,
): Promise<T> {
  const agenda = new Agenda(START);
  const random = seededRandom(options.seed ^ 0x2545f491);
  // ccxt keeps the timers that exist when it is loaded, so it must be loaded before virtual time begins.
  const restore = limitEndpoints();
  return inVirtualTime(agenda, random, async (time) => {
    const world = new World(tried, options, agenda, time);
    try {
      return await play(world);
    } finally {
      world.kill();
      await time.pass(10);
    }
  }).finally(restore);
}

export class World {
  readonly time: VirtualTime;
  readonly exchange: SimulatedExchange;
  readonly others: Participants;
  readonly server = new ControlServer();
  readonly exerciser: Exerciser = newExerciser();
  readonly config: EngineConfig;
  readonly symbols: readonly string[];
  readonly sizes: Sizes;
  readonly journal: MemoryJournal;
  readonly exchangeLog: ExchangeLine[] = [];
  readonly botLog: BotLine[] = [];
  readonly alerts: Alert[] = [];
  readonly deploymentId: string;
  /** Differences at the end that the case has caused on purpose. */
  readonly tolerated = new Set<'log' | 'holdings'>();
  /** Result of the session once it has ended. */
  end: RunEnd | undefined;
  readonly #tried: TriedBot;
  readonly #options: WorldOptions;
  readonly #definition: ExchangeDefinition;
  #session: TriedSession | undefined;

  constructor(tried: TriedBot, options: WorldOptions, agenda: Agenda, time: VirtualTime) {
    const { spec } = tried.bot;
    this.time = time;
    this.#tried = tried;
    this.#options = options;
    this.config = engineConfig(spec);
    this.sizes = sizesFor(this.config);
    this.symbols = spec.spec.universe.symbols;
    this.deploymentId = deploymentOf(options.seed);
    const market = marketOf(this.symbols, spec.spec.universe.currency);
    this.exchange = new SimulatedExchange(this.#setup(market), agenda);
    this.#definition = { ...this.exchange.definition, symbols: Object.fromEntries(market) };
    this.others = new Participants(this.exchange, (symbol) => this.listed(symbol));
    this.journal = memoryJournal((events) => this.#noteEvents(events));
    this.exchange.listen((line) => this.exchangeLog.push(line));
  }

  /** First symbol of the bot. */
  get symbol(): string {
    return this.symbols[0]!;
  }

  get now(): number {
    return this.exchange.now;
  }

  /** Symbol at the exchange of a symbol of the bot. */
  listed(symbol = this.symbol): string {
    return this.#definition.symbols![symbol]!;
  }

  /** Starts the session, or restarts it with the journal of the last one. */
  start(): void {
    const { drive, repeats = false, latencyMs = 5, termsMs = NEVER_MS } = this.#options;
    const { strategy } = this.#tried.bot;
    this.#session = new TriedSession(
      {
        tried: this.#tried,
        strategy: drive === 'own' ? strategy : this.exerciser.strategy,
        exchange: this.exchange,
        definition: this.#definition,
        credentials: CREDENTIALS,
        server: this.server,
        journal: this.journal,
        deploymentId: this.deploymentId,
        latencyMs,
        termsMs,
        repeats,
        log: this.#openLog(),
        onEnd: (end, error) => this.#noteEnd(end, error),
      },
      this.time,
    );
  }

  /** Ends the process of the session like SIGKILL. */
  kill(): void {
    this.#session?.kill();
  }

  /** Requests the end of the session, like SIGTERM. */
  terminate(): void {
    this.#session?.terminate();
  }

  /** Starts the session and its first bars. */
  async begin(): Promise<void> {
    this.start();
    await this.time.pass(2000);
    for (let i = 0; i < 3; i += 1) await this.bar();
  }

  /** Ends the bar and starts the next one with a trade of every instrument. */
  async bar(price = this.sizes.price): Promise<void> {
    await this.#passToNextBar();
    for (const symbol of this.symbols) this.others.print(symbol, price);
    await this.time.pass(1000);
  }

  /** Ends the bar and starts the next one without a trade. */
  async quietBar(): Promise<void> {
    await this.#passToNextBar();
    for (const symbol of this.symbols) this.exchange.startBar(this.listed(symbol));
    await this.time.pass(1000);
  }

  /** Lets the exerciser act at the end of the present bar. */
  async act(what: (context: ActContext) => void, price?: number): Promise<void> {
    this.exerciser.schedule(what);
    await this.bar(price);
    // After a time without trades, a bar ends only with the second trade.
    if (!this.exerciser.isDone) await this.bar(price);
  }

  /** State that the session recorded last. */
  state(): SessionState | undefined {
    return this.journal.state;
  }

  /** Order events so far. */
  events(): readonly OrderEvent[] {
    return this.journal.events
      .filter(({ kind }) => kind.startsWith('order.'))
      .map(({ payload }) => payload as OrderEvent);
  }

  /** Converts a quantity to units of the exchange. */
  units(quantity: number): number {
    return Math.round(quantity / this.sizes.unit);
  }

  /** Requests of a call that the exchange received from the bot. */
  requests(call: string): readonly ReceivedRequest[] {
    return this.exchangeLog.flatMap((line) =>
      line.kind === 'request' && line.call === call
        ? [{ params: line.message as Readonly<Record<string, string>>, at: line.time }]
        : [],
    );
  }

  /** Holdings of the bot at the exchange: units by symbol, and currency. */
  held(): { readonly cash: number; readonly positions: Readonly<Record<string, number>> } {
    const balances = this.exchange.balances(ACCOUNT);
    const positions = this.symbols.flatMap((symbol) => {
      const units = balances.get(this.listed(symbol).split('/')[0]!) ?? 0;
      return units === 0 ? [] : [[symbol, units] as const];
    });
    const { currency } = this.#tried.bot.spec.spec.universe;
    return { cash: balances.get(currency) ?? 0, positions: Object.fromEntries(positions) };
  }

  async #passToNextBar(): Promise<void> {
    const next = (Math.floor(this.now / MINUTE) + 1) * MINUTE;
    await this.time.pass(next - this.now + 100);
  }

  #setup(market: ReadonlyMap<string, string>) {
    const { seed, selfTrade = 'none' } = this.#options;
    const { price, unit } = this.sizes;
    const { currency } = this.#tried.bot.spec.spec.universe;
    const instruments = [...market.values()].map((symbol) => ({
      symbol,
      base: symbol.split('/')[0]!,
      quote: currency,
      priceUnit: PRICE_UNIT,
      quantityUnit: unit,
      referencePrice: Math.round(price / PRICE_UNIT),
      randomEndMs: 30_000,
      tick: 1,
      lot: 1,
      maxQuantity: 1e12,
      band: 0.5,
      minValue: 0,
    }));
    const balances = { [currency]: this.config.cash };
    const own = { name: ACCOUNT, ...CREDENTIALS, balances, selfTrade };
    const others = PARTICIPANTS.map((name) => ({
      name,
      apiKey: '',
      secret: '',
      balances: {},
      isUnlimited: true,
    }));
    return { seed, instruments, accounts: [own, ...others] };
  }

  #note(kind: BotLine['kind'], message: unknown): void {
    this.botLog.push({ time: this.now, kind, message });
  }

  #alert(message: string): void {
    this.alerts.push({ time: this.now, message });
  }

  #noteEvents(events: readonly SessionEvent[]): void {
    for (const { kind, occurred_at, payload } of events) {
      this.#note('event', { kind, occurred_at, payload });
      if (!ALERTING.has(kind)) continue;
      const { reason = '', phase = '' } = payload as Readonly<Record<string, string>>;
      this.#alert(`${kind} ${reason}${phase}`.trim());
    }
  }

  #noteEnd(end: RunEnd | undefined, error: unknown): void {
    if (end === undefined) {
      this.#note('ended', { outcome: 'threw', error: String(error) });
      return;
    }
    this.end = end;
    const { outcome, verified, orders } = end;
    this.#note('ended', { outcome, verified, orders, error: end.error?.message ?? null });
  }

  #openLog(): Log {
    const to = (level: 'info' | 'warn' | 'error') => (what: unknown) => {
      const text = typeof what === 'string' ? what : describeLogged(what);
      this.#note('log', { level, text });
      if (level !== 'info') this.#alert(text);
    };
    return { debug: () => {}, info: to('info'), warn: to('warn'), error: to('error') } as Log;
  }
}

/** Events that the server reports to the people who supervise the bot. */
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

/** Symbol at the exchange by symbol of the bot. */
function marketOf(symbols: readonly string[], currency: string): ReadonlyMap<string, string> {
  return new Map(
    symbols.map((symbol) => {
      const [base = ''] = symbol.split('/');
      return [symbol, `${base.replaceAll(/[^a-zA-Z0-9]/g, '').toUpperCase()}/${currency}`];
    }),
  );
}

function deploymentOf(seed: number): string {
  return `00000000-0000-4000-8000-${(seed >>> 0).toString(16).padStart(12, '0')}`;
}

/** Omits the stack, which names the directory of the installation. */
function describeLogged(what: unknown): string {
  const { msg = '', err } = what as { readonly msg?: string; readonly err?: unknown };
  return `${msg}: ${String(err)}`;
}
