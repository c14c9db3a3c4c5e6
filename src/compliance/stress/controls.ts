/** Controls of Articles 12 to 17, tried while the bot is under the load that it has to withstand. */
import { finalOf } from '../conformance/case.ts';
import { inWorld, SESSION, type TriedBot, type World } from '../conformance/world.ts';
import { MINUTE } from '../../market/time.ts';
import { openLoad, type Load, type Loader, type Meters } from './load.ts';
import { rounded } from './samples.ts';

export interface ControlResult {
  readonly id: 'kill' | 'limits' | 'throttle' | 'market' | 'reconciliation' | 'alerts';
  /** As `article` resolves them. */
  readonly articles: readonly string[];
  readonly status: 'pass' | 'fail';
  readonly reason: string | null;
  readonly measured: Readonly<Record<string, number | null>>;
}

/** House numbers, but for the last, which is of Article 16(5). */
export const BOUNDS = {
  killSentMs: 1000,
  killConfirmedMs: 5000,
  drainMs: 30_000,
  alertMs: 5000,
} as const;

const SETTLE_MS = 40_000;

/** @param load of one bar, at the rate that is to be withstood. */
export async function tryControls(
  tried: TriedBot,
  seed: number,
  load: Load,
  meters: Meters,
): Promise<ControlResult[]> {
  const results: ControlResult[] = [];
  const under = async (
    name: ControlResult['id'],
    articles: readonly string[],
    play: (world: World, loader: Loader, note: Note) => Promise<void>,
  ): Promise<void> => {
    const faults: string[] = [];
    const measured: Record<string, number | null> = {};
    const note: Note = {
      check: (holds, what) => void (holds || faults.push(what)),
      measure: (what, value) => void (measured[what] = value === null ? null : rounded(value)),
    };
    await inWorld(tried, { seed }, async (world) => {
      const loader = openLoad(world, meters, { decision: [], check: [], ack: [] });
      await world.begin();
      await loader.beat(load);
      await play(world, loader, note);
    });
    const status = faults.length > 0 ? 'fail' : 'pass';
    const reason = faults.length > 0 ? faults.join('; ') : null;
    results.push({ id: name, articles, status, reason, measured });
  };

  await under('kill', ['12(1)', '10'], async (world, loader, { check, measure }) => {
    let sent = -Infinity;
    world.venue.listen(({ kind, whose, message, time }) => {
      const { type } = message as { readonly type?: string };
      if (kind === 'heard' && whose === SESSION && type === 'cancel') sent = time;
    });
    await loader.beat(load);
    const open = world.venue.openOrders(SESSION).length;
    const begun = world.venue.now;
    const real = meters.now();
    world.command('halt');
    const done = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
    // Time that the machine needs does not pass at the venue: both count.
    const took = meters.now() - real;
    const sentMs = open === 0 ? 0 : sent - begun + took;
    const confirmedMs = world.venue.now - begun + took;
    measure('open_orders', open);
    measure('sent_ms', sentMs);
    measure('confirmed_ms', confirmedMs);
    check(open > 0 || load.cancels === 0, 'there was something to cancel');
    check(done && world.end?.verified === true, 'the bot is halted, and the venue says so');
    check(world.venue.openOrders(SESSION).length === 0, 'no order is left open');
    check(sentMs <= BOUNDS.killSentMs, `all cancels are sent within ${BOUNDS.killSentMs} ms`);
    check(
      confirmedMs <= BOUNDS.killConfirmedMs,
      `and confirmed within ${BOUNDS.killConfirmedMs} ms`,
    );
  });

  await under('limits', ['15(1)', '10'], async (world, loader, { check, measure }) => {
    const breaches = breachesOf(world);
    check(breaches.length === 3, 'limits of price, value and volume are set');
    const refused: string[] = [];
    world.exerciser.tell(({ broker, instruments }) => {
      for (const { request, reason } of breaches) {
        const order = broker.order({ instrument: instruments[0]!, side: 'buy', ...request });
        if (order.status === 'denied') refused.push(String(order.reason));
        else check(false, `an order beyond ${reason} is not denied`);
      }
    });
    await loader.beat(load);
    measure('offered', breaches.length);
    measure('caught', refused.length);
    measure('missed', breaches.length - refused.length);
  });

  await under('throttle', ['10', 'RTS 7 9(3)(c)'], async (world, loader, { check, measure }) => {
    const limit = Math.max(1, Math.floor(load.out / 4));
    world.do({
      do: 'throttle',
      session: SESSION,
      throttle: { limit, per_ms: 1000, policy: 'reject' },
    });
    await loader.beat(load);
    await world.time.pass(SETTLE_MS);
    world.do({ do: 'throttle', session: SESSION, throttle: undefined });
    await world.time.pass(SETTLE_MS);
    measure('limit_per_second', limit);
    check(agree(world), 'after the throttle of the venue both sides agree on orders and holdings');
  });

  await under('market', ['10', '16(5)'], async (world, loader, { check, measure }) => {
    const { price } = world.sizes;
    await loader.beat(load);
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
    await loader.beat(load);
    await world.time.pass(SETTLE_MS);
    measure('open_orders', world.venue.openOrders(SESSION).length);
    check(world.end === undefined, 'it goes on after a gap of prices, a halt and a loss of data');
    check(agree(world), 'and both sides agree on orders and holdings');
  });

  await under('reconciliation', ['17(3)', '10'], async (world, loader, { check, measure }) => {
    await loader.beat(load);
    world.do({ do: 'cut', session: SESSION });
    await loader.beat(load);
    await world.time.pass(SETTLE_MS);
    measure('lost', loader.lost());
    check(agree(world), 'after a cut of the connection both sides agree on orders and holdings');
  });

  await under('alerts', ['16(5)', '10'], async (world, loader, { check, measure }) => {
    // It has nothing of so much to sell.
    world.exerciser.tell(({ broker, instruments }) => {
      broker.order({
        instrument: instruments[0]!,
        side: 'sell',
        quantity: 1e9 * world.sizes.quantity,
      });
    });
    const { alertMs } = await loader.beat(load);
    measure('alert_ms', alertMs);
    check(alertMs !== null, 'an order that is denied is told of');
    check((alertMs ?? Infinity) <= BOUNDS.alertMs, 'within 5 s, whatever else there is to do');
  });
  return results;
}

interface Note {
  readonly check: (holds: boolean, what: string) => void;
  readonly measure: (what: string, value: number | null) => void;
}

function agree(world: World): boolean {
  const { orders, positions, cash } = finalOf(world);
  const symbols = new Set([...Object.keys(positions.venue), ...Object.keys(positions.bot)]);
  const isHeld = [...symbols].every(
    (symbol) =>
      Math.abs((positions.venue[symbol] ?? 0) - (positions.bot[symbol] ?? 0)) <=
      world.sizes.unit / 1000,
  );
  const isPaid = Math.abs(cash.venue - cash.bot) <= 1e-6 * Math.max(1, Math.abs(cash.venue));
  return isHeld && isPaid && JSON.stringify(orders.venue) === JSON.stringify(orders.bot);
}

/** One order beyond each limit that an order has by itself. */
function breachesOf({ config: { risk }, sizes }: World) {
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
