import type { Fault, FaultAction, Stream } from '../../../src/compliance/venue/session/faults.ts';
import type { InstrumentSetup } from '../../../src/compliance/venue/session/listing.ts';
import type { OrderTerms } from '../../../src/compliance/venue/session/order.ts';
import type { Deed, Scenario } from '../../../src/compliance/venue/session/scenario.ts';
import {
  SessionClient,
  type Business,
  type SessionClientSetup,
} from '../../../src/compliance/venue/session/session-client.ts';
import { SimulatedVenue } from '../../../src/compliance/venue/session/simulated-venue.ts';

export const START = Date.UTC(2026, 0, 5, 8);

export function instrument(name: string, more: Partial<InstrumentSetup> = {}): InstrumentSetup {
  return {
    instrument: name,
    price_unit: 0.01,
    quantity_unit: 0.1,
    tick: 5,
    lot: 10,
    max_quantity: 10_000,
    band: 0.2,
    corridor: Infinity,
    reference_price: 10_000,
    call_ms: 60_000,
    random_end_ms: 0,
    ...more,
  };
}

/** Two instruments, a bot's account with a session, and two others; trading begins at once. */
export function scenario(more: Partial<Scenario> = {}): Scenario {
  return {
    seed: 1,
    start: START,
    instruments: [instrument('X'), instrument('Y')],
    accounts: [
      { name: 'bot', cash: 100_000, positions: { X: 500 } },
      { name: 'maker', cash: 0 },
      { name: 'taker', cash: 0 },
    ],
    sessions: [
      {
        name: 'bot-1',
        password: 'secret',
        account: 'bot',
        heartbeat_ms: 10_000,
        latency_ms: 1,
        resend_pace_ms: 1,
        resend_depth: 10_000,
      },
    ],
    feed: { latency_ms: { a: 1, b: 2 }, heartbeat_ms: 0, replay_depth: 10_000 },
    faults: [],
    deeds: [{ at: START, deed: { do: 'phase', phase: 'continuous' } }],
    ...more,
  };
}

export function newVenue(more: Partial<Scenario> = {}): SimulatedVenue {
  return new SimulatedVenue(scenario(more));
}

/** A deed at once, and all that it leads to without delay. */
export function now(venue: SimulatedVenue, ...deeds: readonly Deed[]): void {
  for (const deed of deeds) venue.at(venue.now, deed);
  venue.run(venue.now);
}

export function limit(
  as: string,
  client_order_id: string,
  side: 'buy' | 'sell',
  quantity: number,
  price: number,
  more: Partial<OrderTerms> = {},
): Extract<Deed, { do: 'place' }> {
  return {
    do: 'place',
    as,
    client_order_id,
    instrument: 'X',
    side,
    order_type: 'limit',
    time_in_force: 'day',
    quantity,
    price,
    ...more,
  };
}

export function fault(stream: Stream, action: FaultAction, more: Partial<Fault> = {}): Fault {
  return { stream, action, ...more };
}

export interface Client {
  readonly client: SessionClient;
  /** What it let through. */
  readonly heard: Business[];
  readonly send: (deed: Extract<Deed, { do: 'place' }>) => void;
}

/** A member on the session `bot-1`, logged on. */
export function logOn(venue: SimulatedVenue, more: Partial<SessionClientSetup> = {}): Client {
  const heard: Business[] = [];
  const client = new SessionClient({
    venue,
    session: 'bot-1',
    password: 'secret',
    cancelOnDisconnect: false,
    onMessage: (message) => heard.push(message),
    ...more,
  });
  venue.run(venue.now + 5);
  const send: Client['send'] = (deed) => client.send({ ...deed, type: 'new_order' });
  return { client, heard, send };
}

/** What was heard of orders: type, order and why, in short. */
export function gist(heard: readonly Business[]): readonly string[] {
  return heard.map((message) => {
    if (message.type === 'execution') {
      const { exec_type: type, client_order_id: id, reason, last_quantity: units } = message;
      return [type, id, reason ?? units].filter((part) => part !== undefined).join(' ');
    }
    if (message.type === 'cancel_reject')
      return `refused ${message.client_order_id} ${message.reason}`;
    return message.type;
  });
}
