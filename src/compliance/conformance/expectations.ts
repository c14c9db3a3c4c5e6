/** Checks of a part, and conditions that must hold after every part. */
import { clientOrderId, orderOfClientId } from '../../trading/venue.ts';
import type { Part } from './case.ts';
import { ACCOUNT, type World } from './world.ts';

/**
 * Records whether an expectation holds.
 *
 * @param seen what was observed instead.
 */
export type Check = (holds: boolean, what: string, seen?: string) => void;

/** Describes an expectation that does not hold. */
export function faultOf(what: string, seen: string | undefined): string {
  return seen === undefined ? `expected: ${what}` : `expected: ${what}; seen: ${seen}`;
}

/** Ends a part whose outcome cannot be judged. */
export class Inconclusive extends Error {}

/** Orders and holdings at the end, by the exchange and by the session. */
export interface Final {
  readonly orders: { readonly venue: readonly string[]; readonly bot: readonly string[] };
  readonly positions: {
    readonly venue: Readonly<Record<string, number>>;
    readonly bot: Readonly<Record<string, number>>;
  };
  readonly cash: { readonly venue: number; readonly bot: number };
}

export function finalOf(world: World): Final {
  const state = world.state();
  const { cash, positions } = world.held();
  const there = world.exchange.openOrders(ACCOUNT).map((order) => order.clientOrderId);
  const here = (state?.working ?? []).map(({ order }) => clientOrderId(world.deploymentId, order));
  return {
    orders: { venue: there.toSorted(), bot: here.toSorted() },
    positions: { venue: positions, bot: state?.positions ?? {} },
    cash: { venue: cash, bot: state?.cash ?? world.config.cash },
  };
}

/** Time in which pending retries and periodic queries finish, ms. */
const SETTLE_MS = 40_000;
const CENT = 1e-6;

/** Waits until nothing is pending, and checks what must hold after every part. */
export async function conclude(world: World, check: Check, { ends }: Part): Promise<void> {
  await world.time.pass(SETTLE_MS);
  checkAgreement(world, check, ends);
  const ids = world.requests('POST /order').map(({ params }) => params['newClientOrderId']!);
  for (const id of new Set(ids)) {
    const order = orderOfClientId(world.deploymentId, id);
    check(order !== undefined, `order ${id} belongs to the bot`);
    const isLogged = world.events().some((event) => event.order === order);
    check(isLogged || world.tolerated.has('log'), `order ${id} is in the log of the bot`);
  }
  const outcome = world.end?.outcome;
  const expected = ends === undefined ? undefined : 'halted';
  check(
    outcome === expected,
    expected === undefined ? 'the session continues' : `the session ends as ${expected}`,
    outcome === undefined ? 'it continues' : `it ended as ${outcome}`,
  );
  const threw = world.botLog.find(
    ({ kind, message }) =>
      kind === 'ended' && (message as { readonly outcome?: string }).outcome === 'threw',
  );
  check(
    threw === undefined,
    'the session throws no exception',
    JSON.stringify(threw?.message ?? 'none'),
  );
}

function checkAgreement(world: World, check: Check, ends: Part['ends']): void {
  const { orders, positions, cash } = finalOf(world);
  const compare = (venue: unknown, bot: unknown): string =>
    `${JSON.stringify(venue)} at the exchange, ${JSON.stringify(bot)} in the session`;
  if (ends !== 'unverified') {
    check(
      JSON.stringify(orders.venue) === JSON.stringify(orders.bot),
      'exchange and session have the same open orders',
      compare(orders.venue, orders.bot),
    );
  }
  if (world.tolerated.has('holdings')) return;
  for (const symbol of new Set([...Object.keys(positions.venue), ...Object.keys(positions.bot)])) {
    const [there, here] = [positions.venue[symbol] ?? 0, positions.bot[symbol] ?? 0];
    check(
      Math.abs(there - here) <= world.sizes.unit / 1000,
      `exchange and session have the same position in ${symbol}`,
      compare(there, here),
    );
  }
  check(
    Math.abs(cash.venue - cash.bot) <= CENT * Math.max(1, Math.abs(cash.venue)),
    'exchange and session have the same cash',
    compare(cash.venue, cash.bot),
  );
}
