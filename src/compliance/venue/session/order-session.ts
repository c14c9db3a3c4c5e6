import type { Agenda } from './agenda.ts';
import type { Exchange, Member } from './exchange.ts';
import type { Faults } from './faults.ts';
import type {
  ClientMessage,
  Logon,
  RawMessage,
  ResendRequest,
  Unnumbered,
  VenueMessage,
} from './messages.ts';
import { Tape } from './tape.ts';

/** So many orders, amendments and cancels in any stretch of so many ms; the rest is refused or waits. */
export interface Throttle {
  readonly limit: number;
  readonly per_ms: number;
  readonly policy: 'reject' | 'queue';
}

export interface SessionSetup {
  readonly name: string;
  readonly password: string;
  readonly account: string;
  readonly heartbeat_ms: number;
  /** To the venue and back, each, ms. */
  readonly latency_ms: number;
  /** Between the messages that are said again, ms: what is new comes in between. */
  readonly resend_pace_ms: number;
  /** How many messages can be said again; in place of older ones there is a sequence reset. */
  readonly resend_depth: number;
  readonly throttle?: Throttle;
}

/** The venue's end of a connection. */
export interface SessionLink {
  readonly isUp: boolean;
  readonly deliver: (message: VenueMessage | RawMessage) => void;
  /** Nothing that is under way on it arrives any more. */
  drop(): void;
}

/** Told what a session hears and says. */
export interface SessionListener {
  heard(session: string, message: ClientMessage | RawMessage): void;
  said(session: string, message: VenueMessage): void;
}

/** These are not said again: a sequence reset stands in for them. */
const OF_THE_SESSION: ReadonlySet<VenueMessage['type']> = new Set([
  'logon',
  'logout',
  'heartbeat',
  'test_request',
  'resend_request',
  'sequence_reset',
]);

/** A message that was missed for so many heartbeats: first the other side is asked, then given up. */
const ASK_AFTER = 1.2;
const GIVE_UP_AFTER = 2.4;

/**
 * The venue's side of an order session. Both sides number their messages, over all connections and
 * both gateways; what is missing is asked for, and nothing is taken out of turn. As FIX sessions do
 * it, in outline; a venue's own protocol differs in detail.
 */
export class OrderSession {
  readonly setup: SessionSetup;
  throttle: Throttle | undefined;
  readonly #member: Member;
  readonly #agenda: Agenda;
  readonly #exchange: Exchange;
  readonly #faults: Faults;
  readonly #listener: SessionListener;
  #tape: Tape<VenueMessage>;
  /** What came out of turn, by number. */
  readonly #held = new Map<number, ClientMessage>();
  /** When the newest were let through that the throttle counts, oldest first. */
  readonly #passed: number[] = [];
  #link: SessionLink | undefined;
  #cancelsOnDisconnect = false;
  #nextIn = 1;
  /** The last message that has been asked for again. */
  #asked = 0;
  #lastHeard = 0;
  #lastSaid = 0;
  /** Messages that wait for the throttle are let through one after the other from this time on. */
  #waiting = 0;

  constructor(
    setup: SessionSetup,
    member: Member,
    parts: {
      readonly agenda: Agenda;
      readonly exchange: Exchange;
      readonly faults: Faults;
      readonly listener: SessionListener;
    },
  ) {
    this.setup = setup;
    this.throttle = setup.throttle;
    this.#member = member;
    this.#agenda = parts.agenda;
    this.#exchange = parts.exchange;
    this.#faults = parts.faults;
    this.#listener = parts.listener;
    this.#tape = new Tape(setup.resend_depth);
  }

  get isConnected(): boolean {
    return this.#link?.isUp === true;
  }

  isOn(link: SessionLink): boolean {
    return this.#link === link;
  }

  /** Why it may not log on; undefined once it has. Another connection that it has is dropped. */
  logon(message: Logon, link: SessionLink): string | undefined {
    if (message.password !== this.setup.password) return 'bad_credentials';
    if (message.reset_sequences) {
      this.#nextIn = 1;
      this.#tape = new Tape(this.setup.resend_depth);
    }
    if (message.seq < this.#nextIn) return `sequence_too_low: expected ${this.#nextIn}`;
    this.#link?.drop();
    this.#link = link;
    this.#cancelsOnDisconnect = message.cancel_on_disconnect;
    this.#lastHeard = this.#agenda.now;
    this.#asked = 0;
    this.#held.clear();
    const { name, heartbeat_ms } = this.setup;
    this.say({ type: 'logon', session: name, heartbeat_ms });
    this.#watch(link);
    this.#inTurn(message);
    return undefined;
  }

  /** Ends the connection, having said why. */
  logout(reason: string): void {
    this.say({ type: 'logout', reason });
    this.drop();
  }

  /** The connection is gone, whoever ended it. */
  drop(): void {
    const link = this.#link;
    if (link === undefined) return;
    this.#link = undefined;
    // What was said before it still arrives.
    this.#agenda.at(this.#agenda.now + this.setup.latency_ms, () => link.drop());
    if (!this.#cancelsOnDisconnect) return;
    this.#exchange.massCancel(this.#member.session, {}, 'cancel_on_disconnect');
  }

  take(message: ClientMessage | RawMessage): void {
    this.#listener.heard(this.setup.name, message);
    this.#lastHeard = this.#agenda.now;
    if (message.type !== 'raw') this.#inTurn(message);
  }

  /** Says a message as soon as its faults allow, and keeps it for whoever has missed it. */
  say(message: Unnumbered<VenueMessage>): void {
    this.#faults.say('orders', this.setup.name, message as VenueMessage, this.#number);
  }

  readonly #number = (message: VenueMessage): void => {
    // Nobody else has it yet.
    (message as { seq: number }).seq = this.#tape.last + 1;
    this.#tape.push(message);
    this.#send(message);
  };

  #send(message: VenueMessage): void {
    this.#listener.said(this.setup.name, message);
    this.#lastSaid = this.#agenda.now;
    const link = this.#link;
    if (link === undefined) return;
    const { name, latency_ms: latency } = this.setup;
    this.#faults.send('orders', name, message, latency, link.deliver);
  }

  #inTurn(message: ClientMessage): void {
    const { seq } = message;
    if (seq < this.#nextIn) {
      const isRepeat = 'possibly_duplicate' in message && message.possibly_duplicate;
      if (!isRepeat) this.logout(`sequence_too_low: expected ${this.#nextIn}`);
      return;
    }
    if (seq > this.#nextIn) {
      this.#held.set(seq, message);
      // It may be that both sides have missed something: neither may wait for the other.
      if (message.type === 'resend_request') this.#sayAgain(message);
      if (this.#asked >= seq - 1) return;
      this.#asked = seq - 1;
      this.#askAgain();
      return;
    }
    this.#nextIn += 1;
    this.#handle(message);
    for (;;) {
      const next = this.#held.get(this.#nextIn);
      if (next === undefined) return;
      this.#held.delete(this.#nextIn);
      this.#nextIn += 1;
      // It was answered when it came.
      if (next.type !== 'resend_request') this.#handle(next);
    }
  }

  #handle(message: ClientMessage): void {
    switch (message.type) {
      case 'logon':
      case 'heartbeat':
        return;
      case 'logout':
        this.logout('requested');
        return;
      case 'test_request':
        this.say({ type: 'heartbeat', test_id: message.test_id });
        return;
      case 'resend_request':
        this.#sayAgain(message);
        return;
      case 'sequence_reset':
        this.#nextIn = Math.max(this.#nextIn, message.next);
        return;
      case 'new_order':
      case 'amend':
      case 'cancel':
        this.#throttled(message);
        return;
      case 'mass_cancel': {
        const { client_order_id, instrument } = message;
        const isKnown = instrument === undefined || this.#exchange.listing(instrument);
        const reason = isKnown ? undefined : ('unknown_instrument' as const);
        const { session } = this.#member;
        const result = this.#exchange.massCancel(session, message, 'mass_cancel');
        const { now: time } = this.#agenda;
        this.say({ type: 'mass_cancel_report', client_order_id, ...result, reason, time });
        return;
      }
      case 'order_status_request':
        this.say(this.#exchange.statusOf(this.#member, message.client_order_id));
        return;
      case 'open_orders_request': {
        const orders = this.#exchange.openOrders(this.#member.session).map((order) => ({
          client_order_id: order.clientOrderId,
          instrument: this.#exchange.symbolOf(order),
        }));
        this.say({ type: 'open_orders', request_id: message.request_id, orders });
        return;
      }
      case 'positions_request': {
        const { cash, positions } = this.#exchange.holdingsOf(this.#member.account);
        this.say({ type: 'positions', request_id: message.request_id, cash, positions });
        return;
      }
      case 'reference_request':
        this.tellReference(message.request_id);
    }
  }

  /** What may be traded, and on what terms. */
  tellReference(requestId: string): void {
    const { version, listings } = this.#exchange;
    const instruments = listings.filter(({ isDeleted }) => !isDeleted).map(({ terms }) => terms);
    this.say({ type: 'reference_data', request_id: requestId, version, instruments });
  }

  #throttled(message: Trading): void {
    const { throttle } = this;
    const { now } = this.#agenda;
    if (throttle === undefined) {
      this.#trade(message);
      return;
    }
    while (this.#passed.length > 0 && this.#passed[0]! <= now - throttle.per_ms) {
      this.#passed.shift();
    }
    if (this.#waiting === 0 && this.#passed.length < throttle.limit) {
      this.#passed.push(now);
      this.#trade(message);
    } else if (throttle.policy === 'reject') {
      this.#turnAway(message);
    } else {
      const at = (this.#passed.at(-throttle.limit) ?? now) + throttle.per_ms;
      this.#passed.push(at);
      this.#waiting += 1;
      this.#agenda.at(at, () => {
        this.#waiting -= 1;
        this.#trade(message);
      });
    }
  }

  #trade(message: Trading): void {
    const { client_order_id: name } = message;
    if (message.type === 'new_order') {
      this.#exchange.place(this.#member, name, message.instrument, message);
    } else if (message.type === 'amend') {
      this.#exchange.amend(this.#member, message);
    } else {
      this.#exchange.cancel(this.#member, name, message.orig_client_order_id);
    }
  }

  #turnAway(message: Trading): void {
    const { type, client_order_id: name } = message;
    if (type === 'new_order') {
      this.#exchange.turnAway(this.#member, name, message.instrument, message, 'throttled');
    } else {
      const order = this.#exchange.find(this.#member.account, message.orig_client_order_id);
      const status = order?.status ?? 'unknown';
      this.#exchange.rejectRequest(this.#member, message, type, 'throttled', status);
    }
  }

  #askAgain(): void {
    this.say({ type: 'resend_request', from: this.#nextIn, to: this.#asked });
  }

  /** Messages with the numbers that they had; those of the session itself are stepped over. */
  #sayAgain({ from, to }: Pick<ResendRequest, 'from' | 'to'>): void {
    const last = Math.min(to, this.#tape.last);
    let { now: at } = this.#agenda;
    for (let seq = Math.max(1, from); seq <= last;) {
      const message = this.#tape.get(seq);
      let next = seq + 1;
      let again: VenueMessage;
      if (message === undefined || OF_THE_SESSION.has(message.type)) {
        while (next <= last && this.#isSkipped(next)) next += 1;
        again = { type: 'sequence_reset', seq, next, possibly_duplicate: true };
      } else {
        again = { ...message, possibly_duplicate: true } as VenueMessage;
      }
      this.#agenda.at(at, () => this.#send(again));
      at += this.setup.resend_pace_ms;
      seq = next;
    }
  }

  #isSkipped(seq: number): boolean {
    const message = this.#tape.get(seq);
    return message === undefined || OF_THE_SESSION.has(message.type);
  }

  /** Heartbeats for as long as the connection lasts, and the end of it when there are none. */
  #watch(link: SessionLink): void {
    const { heartbeat_ms: interval } = this.setup;
    this.#agenda.at(this.#agenda.now + interval, () => {
      if (this.#link !== link) return;
      const { now } = this.#agenda;
      if (!link.isUp || now - this.#lastHeard >= GIVE_UP_AFTER * interval) {
        this.logout('no_heartbeat');
        return;
      }
      if (this.#held.size > 0) this.#askAgain();
      if (now - this.#lastHeard >= ASK_AFTER * interval) {
        this.say({ type: 'test_request', test_id: String(now) });
      } else if (now - this.#lastSaid >= interval) {
        this.say({ type: 'heartbeat' });
      }
      this.#watch(link);
    });
  }
}

type Trading = Extract<ClientMessage, { type: 'new_order' | 'amend' | 'cancel' }>;
