/** What a case of the catalogue is. */
import type { OrderEvent } from '../../engine/journal.ts';
import { clientOrderId, orderOfClientId } from '../../trading/venue.ts';
import type { Alert, BotLine, TriedBot, World, WorldOptions } from './world.ts';
import { ACCOUNT, SESSION } from './world.ts';
import type { VenueLine } from '../venue/session/simulated-venue.ts';

export type CaseStatus = 'pass' | 'fail' | 'inconclusive' | 'not_applicable';

export interface Case {
  readonly id: string;
  readonly title: string;
  /** As `article` resolves them. */
  readonly articles: readonly string[];
  readonly stimulus: string;
  readonly expectation: string;
  /** Which code of production it tries, beside engine, session, runner and reports. */
  readonly exercises?: string;
  /** Why it does not apply to a bot, if it does not. */
  readonly notApplicable?: (tried: TriedBot) => string | undefined;
  /** Absent of a case that applies to no bot of this engine. */
  readonly play?: (inCase: Play) => Promise<void>;
}

/** Plays a part of a case in a world of its own; what must hold after every part is looked at then. */
export type Play = (
  name: string,
  options: Omit<WorldOptions, 'seed'> & After,
  part: (world: World, check: Check) => Promise<void>,
) => Promise<void>;

interface After {
  /** Of a part that ends otherwise than by going on. */
  readonly ends?: 'halted' | 'failed' | 'unverified';
}

/**
 * Notes whether something holds.
 * @param what is expected. @param seen instead, where the expectation alone does not say.
 */
export type Check = (holds: boolean, what: string, seen?: string) => void;

/** What does not hold, so that nobody takes what was expected for what was seen. */
export function faultOf(what: string, seen: string | undefined): string {
  return seen === undefined ? `not so: ${what}` : `expected: ${what}; seen: ${seen}`;
}

export class Inconclusive extends Error {}

/** What one part has shown. */
export interface Evidence {
  readonly part: string;
  readonly venue: readonly VenueLine[];
  readonly bot: readonly BotLine[];
  readonly alerts: readonly Alert[];
  readonly orders: { readonly venue: readonly string[]; readonly bot: readonly string[] };
  readonly positions: {
    readonly venue: Readonly<Record<string, number>>;
    readonly bot: Readonly<Record<string, number>>;
  };
  readonly cash: { readonly venue: number; readonly bot: number };
}

/** Long enough for whatever is tried again to have been, and for orders to be asked for. */
const SETTLE_MS = 40_000;
const CENT = 1e-6;

/** Lets all come to rest, and looks at what must hold after every part. */
export async function conclude(world: World, check: Check, { ends }: After): Promise<void> {
  await world.time.pass(SETTLE_MS);
  const { orders, positions, cash } = finalOf(world);
  const says = (value: unknown): string => JSON.stringify(value);
  if (ends !== 'unverified') {
    check(
      says(orders.venue) === says(orders.bot),
      'both sides have the same open orders',
      `${says(orders.venue)} at the venue, ${says(orders.bot)} by the bot`,
    );
  }
  const symbols = new Set([...Object.keys(positions.venue), ...Object.keys(positions.bot)]);
  for (const symbol of symbols) {
    const [there, here] = [positions.venue[symbol] ?? 0, positions.bot[symbol] ?? 0];
    check(
      Math.abs(there - here) <= world.sizes.unit / 1000,
      `both sides have the same position in ${symbol}`,
      `${there} at the venue, ${here} by the bot`,
    );
  }
  check(
    Math.abs(cash.venue - cash.bot) <= CENT * Math.max(1, Math.abs(cash.venue)),
    'both sides have the same cash',
    `${cash.venue} at the venue, ${cash.bot} by the bot`,
  );
  const ids = world.heard('new_order').map((order) => String(order['client_order_id']));
  for (const id of new Set(ids)) {
    const order = orderOfClientId(world.deploymentId, id);
    check(order !== undefined, `the order ${id} is attributable to the bot`);
    const isKnown = world.events().some((event) => event.order === order);
    check(isKnown || world.tolerated.has('log'), `the order ${id} is in the log of the bot`);
  }
  const outcome = world.end?.outcome;
  const expected = ends === undefined ? undefined : ends === 'unverified' ? 'halted' : ends;
  check(
    outcome === expected,
    `the session code ${expected === undefined ? 'goes on' : `ends as ${expected}`}`,
    outcome === undefined ? 'it goes on' : `it ended as ${outcome}`,
  );
  const threw = world.botLog.find(
    ({ kind, message }) =>
      kind === 'ended' && (message as { readonly outcome?: string }).outcome === 'threw',
  );
  check(
    threw === undefined,
    'no exception is left unhandled',
    threw === undefined ? 'none' : says(threw.message),
  );
}

/** Orders and holdings as each side says at the end. */
export function finalOf(world: World): Pick<Evidence, 'orders' | 'positions' | 'cash'> {
  const state = world.state();
  const { cash, positions } = world.held();
  const there = world.venue.openOrders(SESSION).map((order) => order.clientOrderId);
  const here = (state?.working ?? []).map(({ order }) => clientOrderId(world.deploymentId, order));
  return {
    orders: { venue: there.toSorted(), bot: here.toSorted() },
    positions: { venue: positions, bot: state?.positions ?? {} },
    cash: { venue: cash, bot: state?.cash ?? world.config.cash },
  };
}

// ---- What cases ask of a world ----------------------------------------------------------------

export function ofKind(world: World, kind: OrderEvent['kind']): readonly OrderEvent[] {
  return world.events().filter((event) => event.kind === kind);
}

/** Why orders have ended so, oldest first. */
export function reasons(world: World, kind: OrderEvent['kind']): readonly string[] {
  return ofKind(world, kind).map((event) => ('reason' in event ? event.reason : ''));
}

/** How many orders the venue has heard of the bot. */
export function sent(world: World): number {
  return world.heard('new_order').length;
}

export function atVenue(world: World, order: number) {
  return world.venue.order(ACCOUNT, clientOrderId(world.deploymentId, order));
}

/** Has the bot rest an order to buy below the price. */
export async function rest(world: World, share = 1): Promise<void> {
  const { quantity, below, unit } = world.sizes;
  const units = Math.max(unit, Math.floor((quantity * share) / unit) * unit);
  await world.act(({ order }) => {
    order({ side: 'buy', type: 'limit', limit: below, quantity: Number(units.toFixed(9)) });
  });
}

/** Has the bot buy at the market what one of the others offers, beside what they trade themselves. */
export async function buy(world: World): Promise<void> {
  const { price, quantity } = world.sizes;
  world.others.quote(world.symbol, undefined, { price, units: world.units(quantity) + 1 });
  await world.act(({ order }) => {
    order({ side: 'buy', quantity });
  });
  world.others.quote(world.symbol, undefined, undefined);
}

/** The alert that came first from a time on. */
export function alertAfter(world: World, time: number, like: RegExp): Alert | undefined {
  return world.alerts.find((alert) => alert.time >= time && like.test(alert.message));
}

export function alertsLike(world: World, like: RegExp): readonly Alert[] {
  return world.alerts.filter(({ message }) => like.test(message));
}
