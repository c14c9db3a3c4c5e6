/** Tests the controls of RTS 6 Articles 12 to 17 while the bot is under the target load. */
import type { Order } from '../../engine/orders/order.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import type { Hands } from '../conformance/exerciser.ts';
import { faultOf, type Check } from '../conformance/case.ts';
import { inWorld, SESSION, type TriedBot, type World } from '../conformance/world.ts';
import { MINUTE } from '../../market/bar-time.ts';
import { agreesWithVenue } from './venue-agreement.ts';
import { openSpan } from './host.ts';
import { openLoader, type Load, type Loader, type Meters } from './stress-load.ts';
import { rounded } from './samples.ts';
import { MOST_AT_ONCE } from './load-schedule.ts';

export interface SafeguardResult {
  readonly id:
    | 'kill'
    | 'limits'
    | 'collar_period'
    | 'reserve'
    | 'repetition'
    | 'throttle'
    | 'market'
    | 'reconciliation'
    | 'alerts'
    | 'surveillance'
    | 'shutdown';
  /** Citations, see `article`. */
  readonly articles: readonly string[];
  /** `inconclusive`: only the duration was too long, and only because of a busy host. */
  readonly status: 'pass' | 'fail' | 'inconclusive';
  /** Whether all checks hold except for durations, which depend on the machine. */
  readonly holds: boolean;
  readonly reason: string | null;
  readonly measured: Readonly<Record<string, number | null>>;
}

/** Internal thresholds, except for `alertMs`, which Article 16(5) prescribes. */
export const BOUNDS = {
  killSentMs: 1000,
  killConfirmedMs: 5000,
  drainMs: 30_000,
  /** Maximum ratio of p99 under load to p99 before the load. */
  slowerTimes: 3,
  /** Shorter waits pass, because noise of the machine dominates them. */
  noiseMs: 50,
  /** Maximum growth of memory in use, bytes per 1,000 messages. */
  heapPerThousand: 4 * 2 ** 20,
  /** Number of messages below which memory growth is not judged. */
  heapMessages: 5000,
  alertMs: 5000,
} as const;

/** Variants of the bot under test. */
export interface BotVariants {
  /** The unchanged bot. */
  readonly own: TriedBot;
  /** The bot without limits on messages and repeated executions. */
  readonly lifted: TriedBot;
  /** The bot without the limit on messages. */
  readonly latching: TriedBot;
}

const SETTLE_MS = 40_000;
/** Maximum virtual time to wait for a limit with a long window. */
const LONG_MS = 3 * 3_600_000;
const ENDS: ReadonlySet<string> = new Set([
  'order.canceled',
  'order.expired',
  'order.rejected',
  'order.denied',
]);

/** @param load the target load of one bar. */
export async function trySafeguards(
  { own, lifted, latching }: BotVariants,
  seed: number,
  load: Load,
  meters: Meters,
): Promise<SafeguardResult[]> {
  const results: SafeguardResult[] = [];
  const run = async (
    name: SafeguardResult['id'],
    articles: readonly string[],
    play: (world: World, loader: Loader, note: Note, log: readonly SessionEvent[]) => Promise<void>,
    { tried = lifted, first = load }: { readonly tried?: TriedBot; readonly first?: Load } = {},
  ): Promise<void> => {
    const faults: string[] = [];
    const late: string[] = [];
    const lateByHost: string[] = [];
    const measured: Record<string, number | null> = {};
    const note: Note = {
      check: (holds, what, seen) => void (holds || faults.push(faultOf(what, seen))),
      inTime({ ms, netMs }, mostMs, what) {
        if (ms <= mostMs) return;
        const isByHost = netMs <= mostMs;
        const seen = isByHost ? `${formatMs(ms)}, ${describeNetTime(netMs)}` : formatMs(ms);
        (isByHost ? lateByHost : late).push(faultOf(`${what} within ${mostMs} ms`, seen));
      },
      measure: (what, value) => void (measured[what] = value === null ? null : rounded(value)),
    };
    await inWorld(tried, { seed }, async (world) => {
      const log: SessionEvent[] = [];
      const durations = { decision: [], check: [], ack: [] };
      const loader = openLoader(world, meters, durations, (events) => void log.push(...events));
      await world.begin();
      await loader.playBar(first);
      await play(world, loader, note, log);
    });
    const all = [...faults, ...late, ...lateByHost];
    const hasFailed = faults.length + late.length > 0;
    const status = hasFailed ? 'fail' : all.length > 0 ? 'inconclusive' : 'pass';
    const reason = all.length > 0 ? all.join('; ') : null;
    results.push({ id: name, articles, status, holds: faults.length === 0, reason, measured });
  };

  await run('kill', ['12(1)', '10'], async (world, loader, { check, inTime, measure }) => {
    let sent = -Infinity;
    world.venue.listen(({ kind, whose, message, time }) => {
      const { type } = message as { readonly type?: string };
      if (kind === 'heard' && whose === SESSION && type === 'cancel') sent = time;
    });
    await loader.playBar(load);
    const open = world.venue.openOrders(SESSION).length;
    const begun = world.venue.now;
    const span = openSpan(meters);
    world.command('halt');
    const done = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
    // The venue's virtual clock stands still while the machine computes, so both times count.
    const { realMs, netMs } = span();
    const after = (ms: number) => ({ ms: ms + realMs, netMs: ms + netMs });
    const allSent = open === 0 ? { ms: 0, netMs: 0 } : after(sent - begun);
    const allConfirmed = after(world.venue.now - begun);
    measure('open_orders', open);
    measure('sent_ms', allSent.ms);
    measure('sent_net_ms', allSent.netMs);
    measure('confirmed_ms', allConfirmed.ms);
    measure('confirmed_net_ms', allConfirmed.netMs);
    check(open > 0 || load.cancels === 0, 'the bot has an open order to cancel');
    check(
      done && world.end?.verified === true,
      'the bot is halted, and the venue confirms that no order is open',
    );
    check(world.venue.openOrders(SESSION).length === 0, 'no order is left open');
    inTime(allSent, BOUNDS.killSentMs, 'all cancels are sent');
    inTime(allConfirmed, BOUNDS.killConfirmedMs, 'all cancels are confirmed');
  });

  await run('limits', ['15(1)', '10'], async (world, loader, { check, measure }) => {
    const breaches = createBreaches(world);
    const unset = ORDER_LIMITS.filter((name) => !breaches.some(({ reason }) => reason === name));
    check(unset.length === 0, 'limits on price, value and volume are set', nameUnset(...unset));
    const denied: string[] = [];
    world.exerciser.tell(({ broker, instruments }) => {
      for (const { request, reason } of breaches) {
        const order = broker.order({ instrument: instruments[0]!, side: 'buy', ...request });
        if (order.status === 'denied') denied.push(String(order.reason));
        else check(false, `an order beyond ${reason} is denied`, `the order is ${order.status}`);
      }
    });
    await loader.playBar(load);
    measure('offered', breaches.length);
    measure('caught', denied.length);
    measure('missed', breaches.length - denied.length);
  });

  await run('collar_period', ['15(1)(a)', '10'], async (world, _, { check, measure }) => {
    const collar = world.config.optionalLimits?.price_collar_period;
    check(collar !== undefined, 'a collar over a period is set', nameUnset('price_collar_period'));
    if (collar === undefined) return;
    // The market moves beyond the collar of the period, and the order follows it.
    const price = Number((world.sizes.price * (1 + (collar.bps / 10_000) * 1.1)).toFixed(2));
    await world.bar(price);
    let reason: string | undefined;
    await world.act(({ order }) => {
      reason = order({
        side: 'buy',
        type: 'limit',
        limit: price,
        quantity: world.sizes.unit,
      }).reason;
    }, price);
    const isCaught = reason === 'price_collar_period';
    measure('offered', 1);
    measure('caught', isCaught ? 1 : 0);
    measure('missed', isCaught ? 0 : 1);
    check(
      isCaught,
      'an order beyond the collar of the period is denied',
      reason === undefined ? 'the order was accepted' : `denied as ${reason}`,
    );
  });

  await run(
    'reserve',
    ['15(1)(d)', '10'],
    async (world, _, { check, measure }) => {
      const limit = world.config.risk.max_messages_per_second;
      const kept = world.config.optionalLimits?.messages_kept_for_cancels ?? 0;
      check(
        Number.isFinite(limit),
        'a limit on messages is set',
        nameUnset('max_messages_per_second'),
      );
      check(kept > 0, 'capacity is kept for cancels', nameUnset('messages_kept_for_cancels'));
      if (!Number.isFinite(limit)) return;
      let resting: Readonly<Order>[] = [];
      let denied = 0;
      let canceled = 0;
      const fill = (hands: Hands): void => {
        const placed = Array.from({ length: load.out }, () =>
          hands.order({
            side: 'buy',
            type: 'limit',
            limit: world.sizes.below,
            quantity: world.sizes.unit,
          }),
        );
        denied += placed.filter(({ status }) => status === 'denied').length;
        resting = placed.filter(({ status }) => status === 'working');
      };
      await world.act(fill);
      await world.act((hands) => {
        const before = resting;
        fill(hands);
        for (const order of before) hands.broker.cancel(order);
        canceled = before.length;
      });
      await world.time.pass(SETTLE_MS);
      const heard = world.heard('cancel').length;
      measure('orders_denied', denied);
      measure('cancels_asked', canceled);
      measure('cancels_sent', heard);
      check(
        denied > 0 || load.out <= limit - kept,
        'the limit on messages engages',
        `${denied} orders denied`,
      );
      check(
        canceled > 0 && heard >= canceled,
        'cancels are sent while orders are denied',
        `${heard} of ${canceled} cancels reached the venue`,
      );
    },
    { tried: own, first: { ...load, fills: 0, cancels: 0, out: 1 } },
  );

  await run(
    'repetition',
    ['15(3)', '10'],
    async (world, loader, { check, measure }) => {
      const latch = world.config.optionalLimits?.repeated_execution;
      check(
        latch !== undefined,
        'a limit on repeated executions is set',
        nameUnset('repeated_execution'),
      );
      if (latch === undefined) return;
      const isTried = latch.count <= MOST_AT_ONCE;
      const few = `the limit on repeated executions is at most ${MOST_AT_ONCE}, which this test can reach`;
      check(isTried, few, `${latch.count} (spec.risk.repeated_execution)`);
      if (!isTried) return;
      const lots = [
        { symbol: world.symbol, orders: latch.count, quantity: world.sizes.unit },
      ] as const;
      const repeating = {
        ...load,
        out: Math.max(load.out, latch.count),
        fills: latch.count,
        lots,
      };
      await loader.playBar(repeating);
      const after = await loader.playBar(load);
      measure('executed', latch.count);
      measure('sent_after', after.sent.orders);
      check(
        after.sent.orders === 0,
        'no order is sent after the limit on repeated executions is reached',
        `${after.sent.orders} sent`,
      );
      // Only a person may enable the bot again.
      await world.time.pass(Math.min(latch.seconds * 1000, LONG_MS));
      await loader.playBar(load);
      const later = await loader.playBar(load);
      measure('sent_later', later.sent.orders);
      check(
        later.sent.orders === 0 && (later.denied['repeated_execution'] ?? 0) > 0,
        'the bot does not resume by itself',
        `${later.sent.orders} orders sent later`,
      );
    },
    { tried: latching, first: { ...load, fills: 0, cancels: 0, out: 1 } },
  );

  await run('throttle', ['10', 'RTS 7 9(3)(c)'], async (world, loader, { check, measure }) => {
    const limit = Math.max(1, Math.floor(load.out / 4));
    world.do({
      do: 'throttle',
      session: SESSION,
      throttle: { limit, per_ms: 1000, policy: 'reject' },
    });
    await loader.playBar(load);
    await world.time.pass(SETTLE_MS);
    world.do({ do: 'throttle', session: SESSION, throttle: undefined });
    await world.time.pass(SETTLE_MS);
    measure('limit_per_second', limit);
    checkAgreement(world, check, 'after the venue throttles');
  });

  await run('market', ['10', '16(5)'], async (world, loader, { check, measure }) => {
    const { price } = world.sizes;
    await loader.playBar(load);
    for (const symbol of world.symbols)
      world.others.quote(symbol, undefined, { price: price * 1.05, units: 1 });
    await world.bar(price * 0.8);
    world.do({ do: 'phase', phase: 'halt' });
    await world.time.pass(MINUTE);
    world.do({ do: 'phase', phase: 'continuous' });
    world.data.isMute = true;
    await world.bar(price);
    await world.bar(price);
    world.data.isMute = false;
    await world.bar(price);
    await loader.playBar(load);
    await world.time.pass(SETTLE_MS);
    measure('open_orders', world.venue.openOrders(SESSION).length);
    check(
      world.end === undefined,
      'the session continues after a price gap, a trading halt and a loss of market data',
    );
    checkAgreement(world, check);
  });

  await run('reconciliation', ['17(3)', '10'], async (world, loader, { check, measure }) => {
    await loader.playBar(load);
    world.do({ do: 'cut', session: SESSION });
    await loader.playBar(load);
    await world.time.pass(SETTLE_MS);
    measure('lost', loader.lost());
    checkAgreement(world, check, 'after a lost connection');
  });

  await run('alerts', ['16(5)', '10'], async (world, loader, { check, inTime, measure }) => {
    // The order exceeds the position and is denied.
    world.exerciser.tell(({ broker, instruments }) => {
      broker.order({
        instrument: instruments[0]!,
        side: 'sell',
        quantity: 1e9 * world.sizes.quantity,
      });
    });
    const { alertMs: ms, alertNetMs: netMs } = await loader.playBar(load);
    measure('alert_ms', ms);
    measure('alert_net_ms', netMs);
    check(ms !== null, 'a denied order raises an alert');
    if (ms === null || netMs === null) return;
    inTime({ ms, netMs }, BOUNDS.alertMs, 'the alert is raised under full load');
  });

  await run(
    'surveillance',
    ['13(7)', '17(3)', '10'],
    async (world, loader, { check, measure }, log) => {
      await loader.playBar(load);
      await loader.playBar(load);
      await world.time.pass(SETTLE_MS);
      const events = [...log, ...world.journal.events];
      const begun = meters.now();
      const rebuilt = rebuildFromLog(events);
      measure('events', events.length);
      measure('replay_ms', meters.now() - begun);
      const { positions } = world.held();
      const symbols = new Set([...Object.keys(positions), ...rebuilt.positions.keys()]);
      check(rebuilt.isWhole, 'the log has all order events in sequence');
      check(
        rebuilt.open.size === world.venue.openOrders(SESSION).length,
        'the log and the venue have the same number of open orders',
      );
      check(
        [...symbols].every(
          (symbol) =>
            Math.abs((positions[symbol] ?? 0) - (rebuilt.positions.get(symbol) ?? 0)) <=
            world.sizes.unit / 1000,
        ),
        'positions computed from the log match those of the venue',
      );
    },
  );

  await run('shutdown', ['14(3)', '10'], async (world, loader, { check, measure }) => {
    await loader.playBar(load);
    const open = world.venue.openOrders(SESSION).length;
    const begun = world.venue.now;
    const real = meters.now();
    world.command('stop');
    const done = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
    measure('open_orders', open);
    measure('took_ms', world.venue.now - begun + meters.now() - real);
    check(
      done && world.end?.verified === true,
      'the session ends, and the venue confirms that no order is open',
    );
    check(world.venue.openOrders(SESSION).length === 0, 'no order is left open');
    checkAgreement(world, check);
  });
  return results;
}

function checkAgreement(world: World, check: Check, when = 'at the end'): void {
  check(agreesWithVenue(world), `${when}, venue and session have the same orders and positions`);
}

/** Rebuilds open orders and positions from the order events alone. */
function rebuildFromLog(events: readonly SessionEvent[]) {
  /** Unfilled quantity by order. */
  const open = new Map<unknown, number>();
  const positions = new Map<string, number>();
  let seq = 0;
  let isWhole = true;
  for (const { kind, payload } of events) {
    const { seq: number, order, symbol, side, quantity } = payload;
    if (typeof number !== 'number') continue;
    isWhole &&= number === seq + 1;
    seq = number;
    if (kind === 'order.submitted') open.set(order, Number(quantity));
    else if (kind === 'order.filled') {
      const units = Math.abs(Number(quantity)) * (side === 'sell' ? -1 : 1);
      const name = String(symbol);
      positions.set(name, (positions.get(name) ?? 0) + units);
      const left = (open.get(order) ?? 0) - Math.abs(Number(quantity));
      if (left > 1e-9) open.set(order, left);
      else open.delete(order);
    } else if (ENDS.has(kind)) open.delete(order);
  }
  return { isWhole, open, positions };
}

interface Note {
  readonly check: Check;
  /** Requires that `took` is at most `mostMs`, ms. */
  readonly inTime: (
    took: { readonly ms: number; readonly netMs: number },
    mostMs: number,
    what: string,
  ) => void;
  readonly measure: (what: string, value: number | null) => void;
}

const ORDER_LIMITS = ['price_collar_bps', 'max_order_value', 'max_order_qty'] as const;

/** Describes settings below `spec.risk` that are missing. */
function nameUnset(...settings: readonly string[]): string {
  return `none (set ${settings.map((name) => `spec.risk.${name}`).join(', ')})`;
}

/** Describes the part of a duration that counts against the bot. */
export function describeNetTime(netMs: number): string {
  return `and ${formatMs(netMs)} without the time that the host ran other work`;
}

function formatMs(ms: number): string {
  return `${rounded(ms)} ms`;
}

/** Creates one order beyond each limit on a single order. */
function createBreaches({ config: { risk }, sizes }: World) {
  const all = [
    {
      limit: risk.max_order_qty,
      reason: 'max_order_qty',
      request: {
        type: 'limit',
        limit: sizes.below,
        quantity: risk.max_order_qty * 1.01 + sizes.unit,
      },
    },
    {
      limit: risk.max_order_value,
      reason: 'max_order_value',
      request: {
        type: 'limit',
        limit: sizes.below,
        quantity: (risk.max_order_value / sizes.below) * 1.01 + sizes.unit,
      },
    },
    {
      limit: risk.price_collar_bps,
      reason: 'price_collar_bps',
      request: {
        type: 'limit',
        limit: sizes.price * Math.max(0.01, 1 - (risk.price_collar_bps / 10_000) * 1.1),
        quantity: sizes.unit,
      },
    },
  ] as const;
  return all.filter(({ limit }) => Number.isFinite(limit));
}
