/** Controls, tried in the same way: no part of Article 6, but evidence for Articles 9 and 10. */
import { Instrument } from '../../engine/instrument.ts';
import type { OrderReason } from '../../engine/orders/order.ts';
import { allocateBars } from '../../market/bars.ts';
import { MINUTE } from '../../market/bar-time.ts';
import type { Case, Check } from './case.ts';
import { alertAfter, Inconclusive, ofKind, reasons, rest, sent } from './case.ts';
import type { World } from './world.ts';

export const CASES_C: readonly Case[] = [
  {
    id: 'C01',
    title: 'The bot is halted',
    articles: ['12(1)', '12(2)', '12(3)'],
    stimulus: 'The bot is halted with orders at the venue, one of them partly filled.',
    expectation: 'Every order is canceled; nothing is sent any more, nor after a restart.',
    exercises:
      'runner/trade, runner/venue cancelAll. Which bots a halt reaches (one, all) is decided by the server.',
    async play(inCase) {
      await inCase('halted', { ends: 'halted' }, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        for (let i = 0; i < 3; i += 1) await rest(world, 0.5);
        world.others.take(world.symbol, 'sell', below, world.units(quantity / 8));
        await world.time.pass(1000);
        const begun = world.venue.now;
        world.command('halt');
        const done = await world.time.until(() => world.end !== undefined, MINUTE);
        check(done, 'it ends');
        check(world.venue.openOrders('bot').length === 0, 'no order is open');
        check(world.end?.verified === true, 'the venue has said so');
        const why = reasons(world, 'order.canceled');
        check(why.length === 3 && why.every((one) => one === 'halted'), 'the bot knows why');
        const sentBy = Math.max(...world.heard('cancel').map(({ at }) => at)) - begun;
        check(sentBy <= 1000, 'all cancels are sent within 1 s (a house number)');
        check(alertAfter(world, begun, /halted/) !== undefined, 'it is on record');
        const before = sent(world);
        await rest(world);
        world.start();
        await world.time.pass(5000);
        for (let i = 0; i < 3; i += 1) await rest(world);
        check(sent(world) === before, 'started again, it sends nothing');
      });
    },
  },
  {
    id: 'C02',
    title: 'The bot is halted while the venue does not answer',
    articles: ['12(1)', 'RTS 7 18(2)(c)(i)', '14(2)(g)'],
    stimulus: 'The venue hears nothing from when the bot is halted.',
    expectation:
      'Cancels are tried again until the process has to end; nothing counts as canceled; people are told what is left.',
    exercises: 'runner/venue cancelAll, runner/desk',
    async play(inCase) {
      await inCase('deaf for good', { ends: 'unverified' }, async (world, check) => {
        await world.begin();
        await rest(world);
        world.do({ do: 'fault', fault: { stream: 'inbound', action: { kind: 'drop' } } });
        await world.time.pass(1);
        world.command('halt');
        const isOver = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
        check(!isOver, 'it keeps canceling for as long as it may');
        world.terminate();
        await world.time.until(() => world.end !== undefined, MINUTE);
        check(world.end?.verified === false, 'it says that it does not know');
        check(world.end?.orders[0]?.verified === false, 'it says of which order');
        check(
          world.state()?.working[0]?.pending_cancel === true,
          'that order does not count as canceled',
        );
        check(
          world.alerts.some(({ message }) => /cancel/.test(message)),
          'people are told',
        );
      });
      await inCase('deaf for 10 s', { ends: 'halted' }, async (world, check) => {
        await world.begin();
        await rest(world);
        const { now } = world.venue;
        const time = [now, now + 10_000] as const;
        world.do({ do: 'fault', fault: { stream: 'inbound', time, action: { kind: 'drop' } } });
        await world.time.pass(1);
        world.command('halt');
        const done = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
        check(done && world.end?.verified === true, 'it ends once the venue has said so');
        check(world.venue.now - now >= 10_000, 'it does not end before the venue has said so');
        check(world.venue.openOrders('bot').length === 0, 'no order is open');
      });
    },
  },
  {
    id: 'C03',
    title: 'The same is executed again and again',
    articles: ['15(3)'],
    stimulus:
      'As many orders of one side are executed within the window of the limit as it allows; then it is asked for another, started again, and asked once the window is over.',
    expectation:
      'After a number that is set it is disabled, until a named person enables it again.',
    async play(inCase) {
      await inCase('as often as the limit allows', {}, async (world, check) => {
        const limit = world.config.optionalLimits?.repeated_execution;
        const what = 'the bot has a limit of repeated executions';
        check(
          limit !== undefined,
          what,
          limit ? JSON.stringify(limit) : unset('repeated_execution'),
        );
        if (limit === undefined) return;
        const { count, seconds } = limit;
        const { below, unit } = world.sizes;
        const perBar = Math.min(BAR_OF_ORDERS, messagesOf(world));
        const room =
          Math.min(world.config.cash, world.config.risk.max_position_pct * world.config.cash) / 2;
        if (seconds < 1)
          throw unreached(`${seconds} s are less than the second that is tried here`);
        if (count > MOST_REPEATED)
          throw unreached(
            `${count} executions are more than the ${MOST_REPEATED} that are tried here`,
          );
        if (perBar < 1) throw unreached('the limit of messages leaves none for orders');
        if (count * unit * below > room)
          throw unreached(`the other limits leave no room for ${count} orders`);
        await world.begin();
        for (let from = 0; from < count; from += perBar) {
          await world.act(({ order }) => {
            for (let i = from; i < Math.min(count, from + perBar); i += 1) {
              order({ side: 'buy', type: 'limit', limit: below, quantity: unit });
            }
          });
        }
        // They rest for as many bars as their messages take, and are executed within moments.
        const filled = () => ofKind(world, 'order.filled');
        const latched = (): boolean =>
          world.journal.events.some(({ kind }) => kind === 'account.latched');
        const execute = async (orders: number): Promise<void> => {
          world.others.take(world.symbol, 'sell', below, orders * world.units(unit));
          const all = filled().length + orders;
          await world.time.until(() => filled().length >= all, MINUTE);
        };
        if (count > 1) await execute(count - 1);
        const executed = filled().length;
        check(executed === count - 1, `${count - 1} are executed`, `${executed} of them`);
        check(!latched(), `it is not disabled after ${count - 1} within ${seconds} s`);
        await execute(1);
        const [first, last] = [filled()[0]!, filled().at(-1)!];
        const took = Date.parse(last.time) - Date.parse(first.time);
        if (took > 1000 * seconds) {
          throw unreached(`to execute ${count} takes the simulated venue ${took} ms`);
        }
        check(latched(), `it is disabled after ${count} within ${seconds} s`);
        if (!latched()) return;
        const before = sent(world);
        const isDenied = async (): Promise<boolean> => {
          const denied = reasons(world, 'order.denied').length;
          await rest(world);
          const why = reasons(world, 'order.denied').slice(denied);
          return sent(world) === before && why.includes('repeated_execution');
        };
        check(await isDenied(), 'another order is denied, and not sent');
        world.kill();
        world.start();
        await world.bar();
        check(await isDenied(), 'it is still disabled when it is started again');
        await world.time.pass(Math.min(1000 * seconds, LONGEST_WAIT_MS));
        check(await isDenied(), 'time alone does not enable it');
      });
    },
  },
  {
    id: 'C04',
    title: 'Limits of an order, just kept and just broken',
    articles: ['15(1)(a)', '15(1)(b)', '15(1)(c)', '15(1)(d)', '8(b)'],
    stimulus: 'Orders below, at and above each limit: price, value, volume and messages.',
    expectation: 'What is above is denied and not sent; what is not is taken. Every limit is set.',
    exercises: 'engine/risk',
    async play(inCase) {
      await inCase('volume', {}, async (world, check) => {
        const { max_order_qty: most } = world.config.risk;
        if (!isSet(check, most, 'volume')) return;
        await world.begin();
        const unit = Math.max(world.sizes.unit, most * 1e-6);
        await around(world, check, 'max_order_qty', [most - unit, most, most + unit]);
      });
      await inCase('value', {}, async (world, check) => {
        const { max_order_value: most, max_order_qty } = world.config.risk;
        if (!isSet(check, most, 'value')) return;
        await world.begin();
        const at = most / world.sizes.price;
        const unit = Math.max(world.sizes.unit, at * 1e-6);
        if (at + unit > max_order_qty) {
          check(true, 'no order comes to it: the limit of volume is tighter');
          return;
        }
        await around(world, check, 'max_order_value', [at - unit, at, at + unit]);
      });
      await inCase('price', {}, async (world, check) => {
        const { price_collar_bps: most } = world.config.risk;
        if (!isSet(check, most, 'price')) return;
        await world.begin();
        const { price, quantity } = world.sizes;
        const distance = (price * most) / 10_000;
        for (const [by, isDenied] of [
          [distance - 0.01, false],
          [distance, false],
          [distance + 0.01, true],
        ] as const) {
          await asked(world, check, { quantity, limit: price - by }, 'price_collar_bps', isDenied);
        }
      });
      await inCase('messages', {}, async (world, check) => {
        const { max_messages_per_second } = world.config.risk;
        const { messages_kept_for_cancels: kept = 0 } = world.config.optionalLimits ?? {};
        const most = max_messages_per_second - kept;
        if (!isSet(check, most, 'messages')) return;
        await world.begin();
        const { below, unit } = world.sizes;
        const tries = Math.min(1000, Math.floor(most)) + 1;
        await world.act(({ order }) => {
          for (let i = 0; i < tries; i += 1) {
            order({ side: 'buy', type: 'limit', limit: below, quantity: unit });
          }
        });
        await world.time.pass(10_000);
        const denied = reasons(world, 'order.denied');
        check(sent(world) === Math.floor(most), 'as many as may be are sent');
        const why = kept > 0 ? 'messages_kept_for_cancels' : 'max_messages_per_second';
        check(denied.join() === why, 'the one after them is denied');
        await world.act(({ broker }) => {
          for (const order of broker.working()) broker.cancel(order);
        });
        await world.time.pass(10_000);
        check(world.venue.openOrders('bot').length === 0, 'cancels always pass');
      });
      await inCase('position', {}, async (world, check) => {
        const { max_position_pct: most } = world.config.risk;
        if (!isSet(check, most, 'position')) return;
        await world.begin();
        const { quantity, below } = world.sizes;
        for (let i = 0; i < 40 && ofKind(world, 'order.denied').length === 0; i += 1) {
          await world.act(({ order }) => {
            order({ side: 'buy', type: 'limit', limit: below, quantity });
          });
        }
        const worth = sent(world) * quantity * world.sizes.price;
        check(worth <= most * world.config.cash * (1 + 1e-9), 'working orders count towards it');
      });
    },
  },
  {
    id: 'C05',
    title: 'An instrument that the bot may not trade',
    articles: ['15(5)', '8(a)'],
    stimulus: 'The strategy orders an instrument that is not of its universe.',
    expectation: 'Nothing is sent.',
    async play(inCase) {
      await inCase('of no universe', {}, async (world, check) => {
        await world.begin();
        let refused = false;
        const foreign = new Instrument('FOREIGN', 0, allocateBars(0));
        await world.act(({ broker }) => {
          try {
            broker.order({ instrument: foreign, side: 'buy', quantity: world.sizes.quantity });
          } catch {
            refused = true;
          }
        });
        check(refused, 'the order is refused');
        check(sent(world) === 0, 'nothing is sent');
      });
    },
  },
  {
    id: 'C06',
    title: 'An order beyond a limit with one approver missing',
    articles: ['15(6)'],
    stimulus:
      'An order beyond a limit is asked for while nobody has let it pass, while another one may, while it may, and once more.',
    expectation: 'It passes once, and only when it was let pass.',
    exercises:
      'engine/supervision, trading/session-supervision. That two people have to let it pass is seen to by the server, which tells of it only then.',
    async play(inCase) {
      await inCase('beyond the limit of volume', {}, async (world, check) => {
        const { max_order_qty: most } = world.config.risk;
        if (!isSet(check, most, 'volume')) return;
        const { below, unit } = world.sizes;
        const quantity = most + Math.max(unit, most * 1e-3);
        const ask = (): Promise<void> =>
          world.act(({ order, broker }) => {
            for (const one of broker.working()) broker.cancel(one);
            order({ side: 'buy', type: 'limit', limit: below, quantity });
          });
        const permit = {
          symbol: world.symbol,
          max_quantity: quantity,
          worst_price: below,
          controls: ['max_order_qty', 'max_order_value', 'max_position_pct'],
          expires_at: world.venue.now + 60 * MINUTE,
        } as const;
        await world.begin();
        await ask();
        world.permit({ ...permit, override_id: 'sale', side: 'sell' });
        await ask();
        world.permit({ ...permit, override_id: 'old', side: 'buy', expires_at: world.venue.now });
        await ask();
        world.permit({ ...permit, override_id: 'less', side: 'buy', max_quantity: most });
        await ask();
        check(sent(world) === 0, 'it is not sent while none like it was let pass');
        check(reasons(world, 'order.denied').length === 4, 'it is denied each time');
        world.permit({ ...permit, override_id: 'it', side: 'buy' });
        await ask();
        const isPayable = quantity * below < world.config.cash;
        check(sent(world) === (isPayable ? 1 : 0), 'it is sent once it was');
        await ask();
        check(sent(world) <= 1, 'it is not sent again');
      });
    },
  },
  {
    id: 'C07',
    title: 'People are told within five seconds',
    articles: ['16(5)'],
    stimulus: 'An order is refused, one is denied, the connection breaks, the server is lost.',
    expectation: 'Of each there is an alert within 5 s.',
    async play(inCase) {
      const events: Readonly<Record<string, readonly [RegExp, (world: World) => Promise<void>]>> = {
        'an order is refused': [
          /order\.rejected/,
          async (world) => {
            await world.act(({ order }) => {
              // While it is on its way; see A07.
              const tick = Math.round(world.sizes.price * 100);
              world.do({ do: 'set_terms', instrument: world.symbol, terms: { tick } });
              const { quantity, below } = world.sizes;
              order({ side: 'buy', type: 'limit', limit: below, quantity });
            });
          },
        ],
        'an order is denied': [
          /order\.denied/,
          async (world) => {
            await world.act(({ order }) => {
              order({ side: 'sell', quantity: world.sizes.quantity });
            });
          },
        ],
        'the connection breaks': [
          /connection|hung up/,
          async (world) => {
            await world.bar();
            world.do({ do: 'cut', session: 'bot' });
            await world.time.pass(10_000);
          },
        ],
      };
      for (const [what, [like, happen]] of Object.entries(events)) {
        await inCase(what, {}, async (world, check) => {
          await world.begin();
          const seen = world.alerts.length;
          await happen(world);
          // Each of them happens at the end of the bar, or after it.
          const happened = Math.floor(world.venue.now / MINUTE) * MINUTE;
          const alert = world.alerts.slice(seen).find(({ message }) => like.test(message));
          check(alert !== undefined, 'there is an alert');
          check((alert?.time ?? Infinity) - happened <= 5000, 'the alert comes within 5 s');
        });
      }
      await inCase('the server is lost', {}, async (world, check) => {
        await world.begin();
        const begun = world.venue.now;
        world.isServerReachable = false;
        await world.time.pass(2 * MINUTE);
        const alert = alertAfter(world, begun, /control_unreachable/);
        check(alert !== undefined, 'there is an alert once the claim may not be traded by');
        check((alert?.time ?? Infinity) - begun <= 45_000, 'the alert comes within 5 s of that');
        const before = sent(world);
        await rest(world);
        check(sent(world) === before, 'nothing is sent without the server');
        world.isServerReachable = true;
        await world.time.pass(5000);
        await rest(world);
        check(sent(world) === before + 1, 'orders are sent once the server is there again');
      });
    },
  },
];

/** Of repeated executions, that one run of the case plays: more take minutes. */
const MOST_REPEATED = 1000;
/** Orders that the exerciser asks for at one bar. */
const BAR_OF_ORDERS = 50;
/** For a window that is longer, waiting it out is left to the stress test. */
const LONGEST_WAIT_MS = 10 * MINUTE;

/** Orders that may be sent at one bar. */
function messagesOf({ config: { risk, optionalLimits } }: World): number {
  return Math.floor(
    risk.max_messages_per_second - (optionalLimits?.messages_kept_for_cancels ?? 0),
  );
}

function unreached(why: string): Inconclusive {
  return new Inconclusive(`repeated_execution cannot be reached: ${why}.`);
}

/** @param setting below `spec.risk`. */
function unset(setting: string): string {
  return `none (set spec.risk.${setting})`;
}

const SETTINGS = {
  volume: 'max_order_qty',
  value: 'max_order_value',
  price: 'price_collar_bps',
  messages: 'max_messages_per_second',
  position: 'max_position_pct',
} as const;

function isSet(check: Check, limit: number, of: keyof typeof SETTINGS): boolean {
  const seen = limit < Infinity ? String(limit) : unset(SETTINGS[of]);
  check(limit < Infinity, `the bot has a limit of ${of}`, seen);
  return limit < Infinity;
}

/** Asks for quantities below, at and above a limit. */
async function around(
  world: World,
  check: Check,
  reason: OrderReason,
  [below, at, above]: readonly [number, number, number],
): Promise<void> {
  const limit = world.sizes.price;
  await asked(world, check, { quantity: below, limit }, reason, false);
  await asked(world, check, { quantity: at, limit }, reason, false);
  await asked(world, check, { quantity: above, limit }, reason, true);
}

async function asked(
  world: World,
  check: Check,
  request: { readonly quantity: number; readonly limit: number },
  reason: OrderReason,
  isDenied: boolean,
): Promise<void> {
  const [before, denied] = [sent(world), reasons(world, 'order.denied').length];
  await world.act(({ order, broker }) => {
    for (const one of broker.working()) broker.cancel(one);
    order({ side: 'buy', type: 'limit', ...request });
  });
  const why = reasons(world, 'order.denied').slice(denied);
  const what = `${request.quantity} at ${request.limit}`;
  const seen = why.length === 0 ? 'it was not denied' : `denied as ${why.join(', ')}`;
  check(
    why.includes(reason) === isDenied,
    `${what} is ${isDenied ? '' : 'not '}denied as ${reason}`,
    seen,
  );
  if (isDenied) check(sent(world) === before, `${what} is not sent`);
}
