import type { Agenda } from './agenda.ts';
import type { Faults } from './faults.ts';
import { shown, viewOf, type Listing } from './listing.ts';
import type { FeedMessage, LevelView, RawMessage, Snapshot } from './messages.ts';
import { Tape } from './tape.ts';

export interface FeedSetup {
  /** ms from the venue to whoever listens, on each side. */
  readonly latency_ms: { readonly a: number; readonly b: number };
  /** How often heartbeats and checksums are said; 0 for never. */
  readonly heartbeat_ms: number;
  /** How many messages can be replayed. */
  readonly replay_depth: number;
}

export type FeedReceiver = (message: FeedMessage | RawMessage) => void;

/** In place of a replay that reaches back farther than messages are kept. */
export interface ReplayRefused {
  readonly type: 'replay_refused';
  /** The oldest that is kept. */
  readonly oldest: number;
}

/**
 * Market data as venues send them out: every message on two sides, A and B, of which a listener takes
 * whichever comes first; numbered, so that a loss shows; with replays and snapshots to make it good.
 */
export class Feed {
  readonly #agenda: Agenda;
  readonly #faults: Faults;
  readonly #setup: FeedSetup;
  readonly #tape: Tape<FeedMessage>;
  readonly #receivers: Record<'a' | 'b', FeedReceiver[]> = { a: [], b: [] };
  readonly #onSaid: (message: FeedMessage) => void;

  constructor(
    agenda: Agenda,
    faults: Faults,
    setup: FeedSetup,
    onSaid: (message: FeedMessage) => void,
  ) {
    this.#agenda = agenda;
    this.#faults = faults;
    this.#setup = setup;
    this.#tape = new Tape(setup.replay_depth);
    this.#onSaid = onSaid;
  }

  /** Number of the newest message. */
  get seq(): number {
    return this.#tape.last;
  }

  subscribe(side: 'a' | 'b', receive: FeedReceiver): void {
    this.#receivers[side].push(receive);
  }

  say(message: FeedMessage): void {
    this.#faults.say('feed', '', message, this.#number);
  }

  /** Says that it is there, with the number of the newest message, and what books should come to. */
  beat(listings: readonly Listing[]): void {
    const { now: time } = this.#agenda;
    for (const { book, terms } of listings) {
      const checksum = bookChecksum(viewOf(book.bids.levels), viewOf(book.asks.levels));
      this.say({ type: 'checksum', seq: 0, time, instrument: terms.instrument, checksum });
    }
    const heartbeat = { type: 'heartbeat', seq: this.seq, time } as const;
    this.#faults.say('feed', '', heartbeat, (said) => this.#send(said));
  }

  /** Says the messages of these numbers again, both included. */
  replay(
    from: number,
    to: number,
    receive: (message: FeedMessage | RawMessage | ReplayRefused) => void,
  ): void {
    const { latency_ms: latency } = this.#setup;
    const last = Math.min(to, this.seq);
    if (this.#tape.get(from) === undefined && from <= last) {
      const oldest = Math.max(1, this.seq - this.#setup.replay_depth + 1);
      const refused = { type: 'replay_refused', oldest } as const;
      this.#faults.send('recovery', '', refused, latency.a, receive);
      return;
    }
    for (let seq = from; seq <= last; seq += 1) {
      this.#faults.send('recovery', '', this.#tape.get(seq)!, latency.a, receive);
    }
  }

  snapshot(listing: Listing, receive: (message: Snapshot | RawMessage) => void): void {
    const { book, phase, terms } = listing;
    const bids = viewOf(book.bids.levels);
    const asks = viewOf(book.asks.levels);
    const snapshot: Snapshot = {
      type: 'snapshot',
      seq: this.seq,
      time: this.#agenda.now,
      instrument: terms.instrument,
      phase,
      last: shown(book.last),
      bids,
      asks,
      checksum: bookChecksum(bids, asks),
    };
    this.#faults.send('recovery', '', snapshot, this.#setup.latency_ms.a, receive);
  }

  readonly #number = (message: FeedMessage): void => {
    // Nobody else has it yet.
    (message as { seq: number }).seq = this.#tape.last + 1;
    this.#tape.push(message);
    this.#send(message);
  };

  #send(message: FeedMessage): void {
    this.#onSaid(message);
    const { latency_ms: latency } = this.#setup;
    for (const side of ['a', 'b'] as const) {
      for (const receive of this.#receivers[side]) {
        this.#faults.send(`feed_${side}`, '', message, latency[side], receive);
      }
    }
  }
}

/** Of a book, best price first: FNV-1a of 32 bits over `price,quantity;` of bids, `|`, and asks. */
export function bookChecksum(bids: readonly LevelView[], asks: readonly LevelView[]): number {
  const text = [bids, asks]
    .map((side) => side.map(([price, quantity]) => `${price ?? 'any'},${quantity};`).join(''))
    .join('|');
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return hash;
}
