import type {
  ClientMessage,
  CancelReject,
  Execution,
  MassCancelReport,
  OpenOrders,
  Positions,
  RawMessage,
  ReferenceData,
  Unnumbered,
  VenueMessage,
} from './messages.ts';
import type { Gateway } from './scenario.ts';
import type { Link, SimulatedVenue } from './simulated-venue.ts';

export interface SessionClientSetup {
  readonly venue: SimulatedVenue;
  readonly session: string;
  readonly password: string;
  readonly cancelOnDisconnect: boolean;
  /** Told each message about orders and accounts once, in the order of their numbers. */
  readonly onMessage: (message: Business) => void;
}

export type Business =
  | Execution
  | CancelReject
  | MassCancelReport
  | OpenOrders
  | Positions
  | ReferenceData;

const RECONNECT_MS = 100;
/** What was asked for again and has not come after so long is asked for once more. */
const ASK_AGAIN_MS = 1000;
/** After so many heartbeats without a message the connection is given up. */
const GIVE_UP_AFTER = 2.4;

/**
 * The member's end of an order session: it logs on, keeps the connection, goes over to the other
 * gateway when it is lost, and lets through each message once and in turn. Orders are never sent again
 * by themselves: numbers that the venue has missed are stepped over.
 */
export class SessionClient {
  readonly #setup: SessionClientSetup;
  readonly #held = new Map<number, VenueMessage>();
  #link: Link | undefined;
  #gateway: Gateway = 'primary';
  #hasBegun = false;
  #isLoggedOn = false;
  #isRefused = false;
  #isClosed = false;
  #nextOut = 1;
  #nextIn = 1;
  /** What was asked for last, both included. */
  #asked: readonly [from: number, to: number] = [0, 0];
  /** Up to where messages are known to exist. */
  #known = 0;
  #heartbeatMs = 0;
  #lastHeard = 0;
  #lastSent = 0;
  #garbled = 0;

  constructor(setup: SessionClientSetup) {
    this.#setup = setup;
    this.#connect();
  }

  /**
   * Whether orders may be sent: logged on, and without a known gap in the venue's messages. A
   * message that was lost after the newest received one stays unknown until the next one arrives.
   */
  get isReady(): boolean {
    return this.#isLoggedOn && this.#known < this.#nextIn;
  }

  /** Whether the venue has refused to let it log on; it does not try again. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Messages that could not be read, or were of no known kind. */
  get garbled(): number {
    return this.#garbled;
  }

  send(message: Unnumbered<ClientMessage>): void {
    const seq = this.#nextOut;
    this.#nextOut += 1;
    this.#lastSent = this.#setup.venue.now;
    this.#link?.send({ ...message, seq });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#isLoggedOn) this.send({ type: 'logout' });
  }

  #connect(): void {
    const { venue, session, password, cancelOnDisconnect } = this.#setup;
    if (this.#isClosed || this.#isRefused) return;
    const link = venue.connect(this.#gateway, {
      receive: (message) => {
        if (this.#link === link) this.#receive(message);
      },
      dropped: () => {
        if (this.#link === link) this.#lose();
      },
    });
    this.#link = link;
    if (link === undefined) {
      this.#lose();
      return;
    }
    this.#lastHeard = venue.now;
    // Nobody knows what was said before this client was there.
    const reset_sequences = !this.#hasBegun;
    if (reset_sequences) this.#nextOut = 1;
    const cancel_on_disconnect = cancelOnDisconnect;
    this.send({ type: 'logon', session, password, cancel_on_disconnect, reset_sequences });
    venue.wake(venue.now + ASK_AGAIN_MS, () => {
      if (this.#link === link && !this.#isLoggedOn) link.drop();
    });
  }

  #lose(): void {
    this.#link = undefined;
    this.#isLoggedOn = false;
    this.#held.clear();
    this.#asked = [0, 0];
    this.#gateway = this.#gateway === 'primary' ? 'secondary' : 'primary';
    const { venue } = this.#setup;
    venue.wake(venue.now + RECONNECT_MS, () => this.#connect());
  }

  #receive(received: VenueMessage | RawMessage): void {
    this.#lastHeard = this.#setup.venue.now;
    const message = readMessage(received);
    if (message === undefined) {
      // If it had a number, that is found to be missing, and asked for.
      this.#garbled += 1;
      return;
    }
    const { seq } = message;
    if (message.type === 'logout' && seq === 0) {
      // It is not logged on, and never will be with what it says of itself.
      this.#isRefused = message.reason !== 'not_logged_on';
      return;
    }
    if (seq < this.#nextIn) return;
    this.#known = Math.max(this.#known, seq);
    if (seq > this.#nextIn) {
      this.#held.set(seq, message);
      // The venue answers the logon first, whatever else is missing.
      if (message.type === 'logon') this.#begin(message.heartbeat_ms);
    } else {
      this.#take(message);
      for (;;) {
        const next = this.#held.get(this.#nextIn);
        if (next === undefined) break;
        this.#held.delete(this.#nextIn);
        this.#take(next);
      }
    }
    if (this.#held.size === 0) return;
    const [from, to] = this.#asked;
    // A gap in what is said again shows by what follows it.
    const isAgain = 'possibly_duplicate' in message && seq > this.#nextIn;
    if (this.#nextIn > to || (isAgain && this.#nextIn !== from)) this.#ask();
  }

  #take(message: VenueMessage): void {
    this.#nextIn += 1;
    switch (message.type) {
      case 'logon':
        this.#begin(message.heartbeat_ms);
        return;
      case 'heartbeat':
      case 'logout':
        return;
      case 'test_request':
        this.send({ type: 'heartbeat', test_id: message.test_id });
        return;
      case 'resend_request':
        this.#link?.send({
          type: 'sequence_reset',
          seq: message.from,
          next: message.to + 1,
          possibly_duplicate: true,
        });
        return;
      case 'sequence_reset':
        this.#nextIn = Math.max(this.#nextIn, message.next);
        return;
      case 'execution':
      case 'cancel_reject':
      case 'mass_cancel_report':
      case 'open_orders':
      case 'positions':
      case 'reference_data':
        this.#setup.onMessage(message);
        return;
      default:
        // What a later version of the venue may say.
        message satisfies never;
        this.#garbled += 1;
    }
  }

  #begin(heartbeatMs: number): void {
    if (this.#isLoggedOn) return;
    this.#hasBegun = true;
    this.#isLoggedOn = true;
    this.#heartbeatMs = heartbeatMs;
    this.#watch(this.#link!);
  }

  /** Asks for all that is missing before the first message that is held. */
  #ask(): void {
    const { venue } = this.#setup;
    const from = this.#nextIn;
    const to = Math.min(...this.#held.keys()) - 1;
    const asked = [from, to] as const;
    this.#asked = asked;
    this.send({ type: 'resend_request', from, to });
    venue.wake(venue.now + ASK_AGAIN_MS, () => {
      if (this.#asked === asked && this.#held.size > 0) this.#ask();
    });
  }

  #watch(link: Link): void {
    const { venue } = this.#setup;
    venue.wake(venue.now + this.#heartbeatMs, () => {
      if (this.#link !== link) return;
      if (venue.now - this.#lastHeard >= GIVE_UP_AFTER * this.#heartbeatMs) {
        link.drop();
        return;
      }
      if (venue.now - this.#lastSent >= this.#heartbeatMs) this.send({ type: 'heartbeat' });
      this.#watch(link);
    });
  }
}

/** Undefined for what is no message with a number. */
function readMessage(received: VenueMessage | RawMessage): VenueMessage | undefined {
  let message: unknown = received;
  if (received.type === 'raw') {
    try {
      message = JSON.parse(received.text);
    } catch {
      return undefined;
    }
  }
  const { type, seq } = (message ?? {}) as Partial<VenueMessage>;
  const isMessage = typeof type === 'string' && Number.isSafeInteger(seq) && seq! >= 0;
  return isMessage ? (message as VenueMessage) : undefined;
}
