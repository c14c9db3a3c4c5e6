import { seededRandom } from '../../../engine/random.ts';
import { Agenda } from './agenda.ts';
import { Exchange, type Member } from './exchange.ts';
import { Faults, type Fault, type Stream } from './faults.ts';
import { Feed, type FeedReceiver, type ReplayRefused } from './feed.ts';
import type { Listing } from './listing.ts';
import type {
  ClientMessage,
  Execution,
  FeedMessage,
  RawMessage,
  Snapshot,
  VenueMessage,
} from './messages.ts';
import type { Order } from './order.ts';
import { OrderSession, type SessionLink } from './order-session.ts';
import type { Deed, Gateway, Scenario } from './scenario.ts';
import { Tape } from './tape.ts';

/** One line of what the venue has heard, said, and done wrong on purpose; in the order of its doing. */
export interface VenueLine {
  /** ms since the epoch, by the venue. */
  readonly time: number;
  readonly kind: 'heard' | 'said' | 'deed' | 'fault';
  readonly stream?: Stream;
  /** The session, or the account of a drop copy. */
  readonly whose?: string;
  readonly message: object;
}

/** The member's end of a connection to a gateway. */
export interface Link {
  readonly isUp: boolean;
  send(message: ClientMessage | RawMessage): void;
  /** Breaks the connection; the venue notices once it would have heard of it. */
  drop(): void;
}

export interface LinkReceiver {
  receive(message: VenueMessage | RawMessage): void;
  dropped(): void;
}

const DROP_COPY_DEPTH = 100_000;

interface DropCopy {
  readonly tape: Tape<Execution>;
  readonly receivers: ((message: Execution | RawMessage) => void)[];
}

/**
 * A venue to try bots at: an order book per instrument with its phases and auctions, order sessions
 * through two gateways, drop copy, and market data on two sides, all of which can be made to fail on
 * purpose. Time is virtual, nothing is random but by the seed, and all it says is data.
 *
 * To be tried here discharges nothing: RTS 6 Article 6 asks for tests against the venue's own system,
 * and RTS 7 Article 9(6) has members use the venue's own facility. The flows that RTS 7 Article 9(3)
 * names are what it is built to show.
 */
export class SimulatedVenue {
  readonly #agenda: Agenda;
  readonly #exchange: Exchange;
  readonly #faults: Faults;
  readonly #feed: Feed;
  readonly #sessions: ReadonlyMap<string, OrderSession>;
  readonly #accounts: ReadonlyMap<string, number>;
  readonly #down = new Set<Gateway>();
  readonly #links = new Map<Gateway, Set<VenueLink>>([
    ['primary', new Set()],
    ['secondary', new Set()],
  ]);
  readonly #dropCopies = new Map<string, DropCopy>();
  readonly #listeners: ((line: VenueLine) => void)[] = [];

  constructor(scenario: Scenario) {
    const { instruments, accounts, feed } = scenario;
    const agenda = new Agenda(scenario.start);
    // Of their own each, so that a fault more does not move the ends of auctions.
    const ends = seededRandom(scenario.seed);
    const chances = seededRandom(scenario.seed ^ 0x5bd1e995);
    const onFault = (fault: Fault, message: object): void =>
      this.#log('fault', fault.stream, fault.whose, { action: fault.action, message });
    this.#agenda = agenda;
    this.#faults = new Faults(agenda, chances, onFault);
    this.#feed = new Feed(agenda, this.#faults, feed, (message) =>
      this.#log('said', 'feed', undefined, message),
    );
    this.#accounts = new Map(accounts.map(({ name }, index) => [name, index]));
    const sessions: OrderSession[] = [];
    this.#exchange = new Exchange(instruments, accounts, agenda, ends, {
      execution: (order, execution) => this.#tell(sessions[order.session]!, order, execution),
      cancelReject: ({ session }, reject) => sessions[session]?.say(reject),
      market: (message) => this.#feed.say(message),
    });
    const parts = {
      agenda,
      exchange: this.#exchange,
      faults: this.#faults,
      listener: {
        heard: (name: string, message: object) => this.#log('heard', 'orders', name, message),
        said: (name: string, message: object) => this.#log('said', 'orders', name, message),
      },
    };
    for (const [session, setup] of scenario.sessions.entries()) {
      const member: Member = { account: this.#accountOf(setup.account), session };
      sessions.push(new OrderSession(setup, member, parts));
    }
    this.#sessions = new Map(sessions.map((one) => [one.setup.name, one]));
    for (const fault of scenario.faults) this.#faults.add(fault);
    for (const { at, deed } of scenario.deeds) this.at(at, deed);
    if (feed.heartbeat_ms > 0) this.#beat(feed.heartbeat_ms);
  }

  /** ms since the epoch. */
  get now(): number {
    return this.#agenda.now;
  }

  /** Lets time pass until then, and all happen that is due. */
  run(until: number): void {
    this.#agenda.run(until);
  }

  /** Lets the next thing happen, if it is due by then; false where there is none. */
  step(until: number): boolean {
    return this.#agenda.step(until);
  }

  /** Has something happen at a time; at once, but after what is under way, when it is past. */
  at(time: number, deed: Deed): void {
    this.#agenda.at(time, () => {
      this.#log('deed', undefined, undefined, deed);
      this.#perform(deed);
    });
  }

  /** Timers of those who live in the venue's time. */
  wake(time: number, task: () => void): void {
    this.#agenda.at(time, task);
  }

  /** Tells of every line from now on; what it does about it, it does through `at`. */
  listen(listener: (line: VenueLine) => void): void {
    this.#listeners.push(listener);
  }

  /** A connection, on which a session has to log on; undefined while the gateway is down. */
  connect(gateway: Gateway, receiver: LinkReceiver): Link | undefined {
    if (this.#down.has(gateway)) return undefined;
    const links = this.#links.get(gateway)!;
    const onDrop = (dropped: VenueLink): void => {
      links.delete(dropped);
      if (dropped.session?.isOn(dropped) === true) dropped.session.drop();
    };
    const link = new VenueLink(receiver, this.#hear, onDrop);
    links.add(link);
    return {
      get isUp() {
        return link.isUp;
      },
      send: (message) => this.#receive(link, message),
      drop: () => link.drop(),
    };
  }

  /** Copies of all that the account's sessions are told of orders, numbered on their own. */
  watchDropCopy(account: string, receive: (message: Execution | RawMessage) => void): void {
    const copy = this.#dropCopies.get(account) ?? {
      tape: new Tape<Execution>(DROP_COPY_DEPTH),
      receivers: [],
    };
    this.#dropCopies.set(account, copy);
    copy.receivers.push(receive);
  }

  /** Has copies sent again, from this number on, to all who watch. */
  replayDropCopy(account: string, from: number): void {
    const { tape } = this.#dropCopies.get(account)!;
    for (let seq = from; seq <= tape.last; seq += 1) {
      const copy = tape.get(seq);
      if (copy !== undefined) this.#sendCopy(account, { ...copy, possibly_duplicate: true });
    }
  }

  subscribe(side: 'a' | 'b', receive: FeedReceiver): void {
    this.#feed.subscribe(side, receive);
  }

  /** Has market data of these numbers sent again to who asks, both included. */
  replay(
    from: number,
    to: number,
    receive: (message: FeedMessage | RawMessage | ReplayRefused) => void,
  ): void {
    this.#feed.replay(from, to, receive);
  }

  snapshot(instrument: string, receive: (message: Snapshot | RawMessage) => void): void {
    this.#feed.snapshot(this.#listing(instrument), receive);
  }

  /** What the venue holds an order to be; undefined where it knows none. */
  order(account: string, clientOrderId: string): Readonly<Order> | undefined {
    return this.#exchange.find(this.#accountOf(account), clientOrderId);
  }

  /** By session, oldest first. */
  openOrders(session: string): readonly Readonly<Order>[] {
    const index = [...this.#sessions.keys()].indexOf(session);
    return this.#exchange.openOrders(index);
  }

  /** Currency, and quantity units by instrument. */
  holdings(account: string): {
    readonly cash: number;
    readonly positions: Readonly<Record<string, number>>;
  } {
    return this.#exchange.holdingsOf(this.#accountOf(account));
  }

  /** Book, phase and terms, to be looked at only. */
  instrument(symbol: string): Pick<Listing, 'book' | 'phase' | 'terms' | 'isDeleted'> {
    return this.#listing(symbol);
  }

  isConnected(session: string): boolean {
    return this.#session(session).isConnected;
  }

  #receive(link: VenueLink, message: ClientMessage | RawMessage): void {
    const name = link.session?.setup.name ?? (message.type === 'logon' ? message.session : '');
    const latency = this.#sessions.get(name)?.setup.latency_ms ?? 0;
    this.#faults.send<ClientMessage | RawMessage>('inbound', name, message, latency, link.arrive);
  }

  readonly #hear = (link: VenueLink, message: ClientMessage | RawMessage): void => {
    const { session } = link;
    if (session !== undefined) {
      if (session.isOn(link)) session.take(message);
      return;
    }
    this.#log('heard', 'orders', undefined, message);
    const asked = message.type === 'logon' ? this.#sessions.get(message.session) : undefined;
    if (asked === undefined || message.type !== 'logon') {
      this.#turnAway(link, 'not_logged_on');
      return;
    }
    link.session = asked;
    const refusal = asked.logon(message, link);
    if (refusal !== undefined) this.#turnAway(link, refusal);
  };

  /** Of a session that it is not on: the farewell has no number. */
  #turnAway(link: VenueLink, reason: string): void {
    const farewell = { type: 'logout', seq: 0, reason } as const;
    this.#log('said', 'orders', undefined, farewell);
    const latency = link.session?.setup.latency_ms ?? 0;
    this.#agenda.at(this.now + latency, () => {
      link.deliver(farewell);
      link.drop();
    });
  }

  #tell(session: OrderSession, order: Order, execution: Execution): void {
    session.say(execution);
    const { name } = this.#exchange.accounts[order.account]!.setup;
    const copy = this.#dropCopies.get(name);
    if (copy === undefined) return;
    this.#faults.say('drop_copy', name, { ...execution }, (said) => {
      (said as { seq: number }).seq = copy.tape.last + 1;
      copy.tape.push(said);
      this.#sendCopy(name, said);
    });
  }

  #sendCopy(account: string, message: Execution): void {
    this.#log('said', 'drop_copy', account, message);
    for (const receive of this.#dropCopies.get(account)!.receivers) {
      this.#faults.send('drop_copy', account, message, 0, receive);
    }
  }

  #perform(deed: Deed): void {
    const exchange = this.#exchange;
    switch (deed.do) {
      case 'place':
        exchange.place(this.#other(deed.as), deed.client_order_id, deed.instrument, deed);
        return;
      case 'amend':
        exchange.amend(this.#other(deed.as), deed);
        return;
      case 'cancel':
        exchange.cancel(this.#other(deed.as), deed.client_order_id, deed.orig_client_order_id);
        return;
      case 'phase': {
        const { instrument } = deed;
        const all = instrument === undefined ? exchange.listings : [this.#listing(instrument)];
        for (const listing of all) exchange.schedulePhase(listing, deed.phase);
        return;
      }
      case 'end_order': {
        const order = this.#orderOf(deed);
        if (order.leaves > 0) exchange.end(order, 'venue_operator');
        return;
      }
      case 'pin':
        this.#orderOf(deed).isPinned = deed.is_pinned;
        return;
      case 'bust':
        exchange.bust(deed.trade_id);
        return;
      case 'correct':
        exchange.correct(deed.trade_id, deed.price, deed.quantity);
        return;
      case 'set_terms':
        exchange.setTerms(this.#listing(deed.instrument), deed.terms);
        this.#tellReference();
        return;
      case 'delete':
        exchange.delete(this.#listing(deed.instrument));
        this.#tellReference();
        return;
      case 'log_out':
        this.#session(deed.session).logout(deed.reason);
        return;
      case 'cut':
        for (const gateway of this.#links.keys()) {
          this.#cut(gateway, ({ session }) => session?.setup.name === deed.session);
        }
        return;
      case 'gateway':
        if (deed.is_up) this.#down.delete(deed.gateway);
        else {
          this.#down.add(deed.gateway);
          this.#cut(deed.gateway, () => true);
        }
        return;
      case 'throttle':
        this.#session(deed.session).throttle = deed.throttle;
        return;
      case 'fault':
        this.#faults.add(deed.fault);
        return;
      case 'clear_faults':
        this.#faults.clear();
        return;
      case 'make_up':
        this.#feed.say({ ...deed.message, seq: 0 });
    }
  }

  #cut(gateway: Gateway, which: (link: VenueLink) => boolean): void {
    for (const link of [...this.#links.get(gateway)!].filter(which)) link.drop();
  }

  #tellReference(): void {
    for (const session of this.#sessions.values()) session.tellReference('');
  }

  #beat(interval: number): void {
    this.#agenda.at(this.now + interval, () => {
      this.#feed.beat(this.#exchange.listings);
      this.#beat(interval);
    });
  }

  #other(account: string): Member {
    return { account: this.#accountOf(account), session: -1 };
  }

  #accountOf(name: string): number {
    const index = this.#accounts.get(name);
    if (index === undefined) throw new RangeError(`the scenario has no account ${name}`);
    return index;
  }

  #session(name: string): OrderSession {
    const session = this.#sessions.get(name);
    if (session === undefined) throw new RangeError(`the scenario has no session ${name}`);
    return session;
  }

  #listing(symbol: string): Listing {
    const listing = this.#exchange.listing(symbol);
    if (listing === undefined) throw new RangeError(`the scenario has no instrument ${symbol}`);
    return listing;
  }

  #orderOf(deed: { readonly as: string; readonly client_order_id: string }): Order {
    const order = this.#exchange.find(this.#accountOf(deed.as), deed.client_order_id);
    if (order === undefined)
      throw new RangeError(`${deed.as} has no order ${deed.client_order_id}`);
    return order;
  }

  #log(
    kind: VenueLine['kind'],
    stream: Stream | undefined,
    whose: string | undefined,
    message: object,
  ): void {
    if (this.#listeners.length === 0) return;
    const line = {
      time: this.now,
      kind,
      ...(stream !== undefined && { stream }),
      ...(whose !== undefined && { whose }),
      message,
    };
    for (const listener of this.#listeners) listener(line);
  }
}

/** The venue's end of a connection, on which a session may have logged on. */
class VenueLink implements SessionLink {
  isUp = true;
  session: OrderSession | undefined;
  readonly #receiver: LinkReceiver;
  readonly #hear: (link: VenueLink, message: ClientMessage | RawMessage) => void;
  readonly #onDrop: (link: VenueLink) => void;

  constructor(
    receiver: LinkReceiver,
    hear: (link: VenueLink, message: ClientMessage | RawMessage) => void,
    onDrop: (link: VenueLink) => void,
  ) {
    this.#receiver = receiver;
    this.#hear = hear;
    this.#onDrop = onDrop;
  }

  readonly arrive = (message: ClientMessage | RawMessage): void => {
    if (this.isUp) this.#hear(this, message);
  };

  readonly deliver = (message: VenueMessage | RawMessage): void => {
    if (this.isUp) this.#receiver.receive(message);
  };

  drop(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.#onDrop(this);
    this.#receiver.dropped();
  }
}
