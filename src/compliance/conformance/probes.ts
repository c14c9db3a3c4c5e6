/** Series of orders that are computed from a limit of the bot: just below, at and beyond it. */
import type { OrderReason } from '../../engine/orders/order.ts';
import { MINUTE } from '../../base/durations.ts';
import type { Limit, Probe } from './case.ts';
import { Inconclusive, type Check } from './expectations.ts';
import { messagesPerBar } from './numbers.ts';
import { ACCOUNT, type World } from './world.ts';

/** @returns false if the rest of the part is pointless. */
type Play = (world: World, check: Check) => Promise<boolean>;

export const PROBES: Readonly<Record<Probe, Play>> = {
  volume: async (world, check) => {
    const { max_order_qty: most } = world.config.risk;
    const step = Math.max(world.sizes.unit, most * 1e-6);
    return around(world, check, 'max_order_qty', most, step);
  },
  value: async (world, check) => {
    const { max_order_value, max_order_qty } = world.config.risk;
    const most = max_order_value / world.sizes.price;
    const step = Math.max(world.sizes.unit, most * 1e-6);
    if (most + step <= max_order_qty) {
      return around(world, check, 'max_order_value', most, step);
    }
    check(true, 'no order reaches this limit, because the volume limit is tighter');
    return true;
  },
  price: async (world, check) => {
    const { price, quantity } = world.sizes;
    const distance = (price * world.config.risk.price_collar_bps) / 10_000;
    for (const by of [distance - 0.01, distance, distance + 0.01]) {
      const request = { quantity, limit: price - by };
      await ask(world, check, request, 'price_collar_bps', by > distance);
    }
    return true;
  },
  messages: probeMessages,
  position: async (world, check) => {
    const { quantity, below, price } = world.sizes;
    const most = world.config.risk.max_position_pct * world.config.cash;
    for (let i = 0; i < 40 && denials(world).length === 0; i += 1) {
      await world.act(({ order }) => {
        order({ side: 'buy', type: 'limit', limit: below, quantity });
      });
    }
    const worth = sent(world) * quantity * price;
    check(worth <= most * (1 + 1e-9), 'working orders count toward the limit');
    return true;
  },
  'repeated execution': probeRepeatedExecution,
};

const SETTINGS: Readonly<Record<Limit, keyof World['config']['risk']>> = {
  volume: 'max_order_qty',
  value: 'max_order_value',
  price: 'price_collar_bps',
  messages: 'max_messages_per_second',
  position: 'max_position_pct',
};

/** Checks that the bot sets a limit. */
export function isSet({ config }: World, of: Limit, check: Check): boolean {
  const limit = config.risk[SETTINGS[of]];
  const seen = limit < Infinity ? String(limit) : unset(SETTINGS[of]);
  check(limit < Infinity, `the bot has a ${of} limit`, seen);
  return limit < Infinity;
}

/** @param setting below `spec.risk`. */
function unset(setting: string): string {
  return `none (set spec.risk.${setting})`;
}

function sent(world: World): number {
  return world.requests('POST /order').length;
}

function denials(world: World): readonly string[] {
  return world.events().flatMap((event) => (event.kind === 'order.denied' ? [event.reason] : []));
}

/** Orders three quantities: one `step` below `most`, `most` itself, and one `step` above. */
async function around(
  world: World,
  check: Check,
  reason: OrderReason,
  most: number,
  step: number,
): Promise<boolean> {
  const limit = world.sizes.price;
  for (const quantity of [most - step, most, most + step]) {
    await ask(world, check, { quantity, limit }, reason, quantity > most);
  }
  return true;
}

async function ask(
  world: World,
  check: Check,
  request: { readonly quantity: number; readonly limit: number },
  reason: OrderReason,
  isDenied: boolean,
): Promise<void> {
  const [before, denied] = [sent(world), denials(world).length];
  await world.act(({ order, broker }) => {
    for (const one of broker.working()) broker.cancel(one);
    order({ side: 'buy', type: 'limit', ...request });
  });
  const why = denials(world).slice(denied);
  const what = `${request.quantity} at ${request.limit}`;
  const seen = why.length === 0 ? 'it is not denied' : `denied as ${why.join(', ')}`;
  const wanted = `${what} is ${isDenied ? '' : 'not '}denied as ${reason}`;
  check(why.includes(reason) === isDenied, wanted, seen);
  if (isDenied) check(sent(world) === before, `${what} is not sent`);
}

async function probeMessages(world: World, check: Check): Promise<boolean> {
  const { messages_kept_for_cancels: kept = 0 } = world.config.optionalLimits ?? {};
  const most = messagesPerBar(world);
  const { below, unit } = world.sizes;
  await world.act(({ order }) => {
    for (let i = 0; i <= Math.min(999, most); i += 1) {
      order({ side: 'buy', type: 'limit', limit: below, quantity: unit });
    }
  });
  await world.time.pass(30_000);
  check(sent(world) === most, 'all permitted orders are sent');
  const why = kept > 0 ? 'messages_kept_for_cancels' : 'max_messages_per_second';
  check(denials(world).join() === why, 'the next order is denied');
  await world.act(({ broker }) => {
    for (const order of broker.working()) broker.cancel(order);
  });
  await world.time.pass(10_000);
  check(world.exchange.openOrders(ACCOUNT).length === 0, 'cancels always pass');
  return true;
}

/** Maximum number of repeated executions in a case; more would take minutes. */
const MOST_REPEATED = 1000;
/** Orders that the exerciser places at one bar. */
const BAR_OF_ORDERS = 50;
/** The stress test waits for the end of longer windows. */
const LONGEST_WAIT_MS = 10 * MINUTE;

async function probeRepeatedExecution(world: World, check: Check): Promise<boolean> {
  const limit = world.config.optionalLimits?.repeated_execution;
  const seen = limit ? JSON.stringify(limit) : unset('repeated_execution');
  check(limit !== undefined, 'the bot has a limit on repeated executions', seen);
  if (limit === undefined) return false;
  const { count, seconds } = limit;
  requireReachable(world, limit);
  await rest(world, count);
  const execute = async (orders: number): Promise<void> => {
    const all = filled(world).length + orders;
    const { below: price, unit } = world.sizes;
    world.others.take(world.symbol, 'sell', { price, units: orders * world.units(unit) });
    await world.time.until(() => filled(world).length >= all, MINUTE);
  };
  if (count > 1) await execute(count - 1);
  const executed = filled(world).length;
  check(executed === count - 1, `${count - 1} orders are executed`, `${executed} orders`);
  check(
    !isLatched(world),
    `the bot is not disabled after ${count - 1} executions within ${seconds} s`,
  );
  await execute(1);
  const [first, last] = [filled(world)[0]!, filled(world).at(-1)!];
  const took = Date.parse(last.time) - Date.parse(first.time);
  if (took > 1000 * seconds) {
    throw unreached(`the simulated exchange takes ${took} ms to execute ${count} orders`);
  }
  check(isLatched(world), `the bot is disabled after ${count} executions within ${seconds} s`);
  if (!isLatched(world)) return false;
  await checkDisabled(world, check, seconds);
  return true;
}

function requireReachable(
  world: World,
  { count, seconds }: { readonly count: number; readonly seconds: number },
): void {
  const { cash, risk } = world.config;
  const { below, unit } = world.sizes;
  const room = (Math.min(1, risk.max_position_pct) * cash) / 2;
  if (seconds < 1)
    throw unreached(
      `a window of ${seconds} s is shorter than one second, the resolution of a case`,
    );
  if (count > MOST_REPEATED) {
    throw unreached(`${count} executions are more than ${MOST_REPEATED}, the maximum of a case`);
  }
  if (messagesPerBar(world) < 1) throw unreached('the message limit leaves no messages for orders');
  if (count * unit * below > room) {
    throw unreached(`the other limits leave no room for ${count} orders`);
  }
}

/** Places resting orders, distributed over bars so that the message limit is kept. */
async function rest(world: World, count: number): Promise<void> {
  const { below, unit } = world.sizes;
  const perBar = Math.min(BAR_OF_ORDERS, messagesPerBar(world));
  for (let from = 0; from < count; from += perBar) {
    await world.act(({ order }) => {
      for (let i = from; i < Math.min(count, from + perBar); i += 1) {
        order({ side: 'buy', type: 'limit', limit: below, quantity: unit });
      }
    });
  }
}

async function checkDisabled(world: World, check: Check, seconds: number): Promise<void> {
  const before = sent(world);
  const isDenied = async (): Promise<boolean> => {
    const denied = denials(world).length;
    await rest(world, 1);
    return sent(world) === before && denials(world).slice(denied).includes('repeated_execution');
  };
  check(await isDenied(), 'another order is denied and not sent');
  world.kill();
  world.start();
  await world.bar();
  check(await isDenied(), 'the bot is still disabled after a restart');
  await world.time.pass(Math.min(1000 * seconds, LONGEST_WAIT_MS));
  check(await isDenied(), 'the bot is still disabled after the window');
}

function filled(world: World) {
  return world.events().filter(({ kind }) => kind === 'order.filled');
}

function isLatched({ journal }: World): boolean {
  return journal.events.some(({ kind }) => kind === 'account.latched');
}

function unreached(why: string): Inconclusive {
  return new Inconclusive(`repeated_execution cannot be reached: ${why}.`);
}
