/** Interaction with the matching logic: Article 6(2)(a), by the flows that RTS 7 Article 9(3) names. */
import type { OrderReason } from '../../engine/orders/order.ts';
import { MINUTE } from '../../market/bar-time.ts';
import { stepOf } from '../../trading/session-events.ts';
import type { Case } from './case.ts';
import { alertAfter, atVenue, buy, ofKind, reasons, rest, sent } from './case.ts';

const MATCHING = '6(2)(a)';
const GENERAL = ['5(4)(a)', '5(4)(c)'];
const NO_AMENDMENTS =
  'The engine sends no amendments: a change is a cancel and, once that is confirmed, a new order.';

export const CASES_A: readonly Case[] = [
  {
    id: 'A01',
    title: 'A resting order whose acknowledgement is late',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '15(2)', ...GENERAL],
    stimulus: 'A passive limit order is acknowledged after 0, 50 and 2000 ms.',
    expectation:
      'It is pending until then, sent once, and counts towards the limits from when it is sent.',
    exercises: 'runner/desk',
    async play(inCase) {
      for (const ms of [0, 50, 2000]) {
        await inCase(`acknowledged after ${ms} ms`, {}, async (world, check) => {
          await world.begin();
          world.do({
            do: 'fault',
            fault: { stream: 'orders', type: 'new', count: 1, action: { kind: 'delay', ms } },
          });
          await rest(world);
          check(world.state()?.working.length === 1, 'the order counts as working once sent');
          await world.time.pass(10_000);
          check(sent(world) === 1, 'the order is sent once');
          check(atVenue(world, 1)?.status === 'new', 'it rests at the venue');
          check(
            atVenue(world, 1)?.quantity === world.units(world.sizes.quantity),
            'it rests in its size',
          );
          check(
            atVenue(world, 1)?.price === Math.round(world.sizes.below * 100) &&
              atVenue(world, 1)?.side === 'buy',
            'it rests on its side, at its price',
          );
        });
      }
      await inCase('orders are counted when they are sent', {}, async (world, check) => {
        await world.begin();
        world.do({
          do: 'fault',
          fault: { stream: 'orders', type: 'new', action: { kind: 'delay', ms: 900 } },
        });
        const { quantity, below } = world.sizes;
        for (let i = 0; i < 4 && ofKind(world, 'order.denied').length === 0; i += 1) {
          await world.act(({ order, broker }) => {
            const count = Math.ceil(broker.cash / (quantity * below));
            for (let k = 0; k < Math.min(count, 60); k += 1) {
              order({ side: 'buy', type: 'limit', limit: below, quantity });
            }
          });
        }
        const worth = world
          .heard('new_order')
          .reduce((sum, one) => sum + Number(one['quantity']) * world.sizes.unit * below, 0);
        check(worth <= world.config.cash, 'no more is ordered than can be paid for');
        check(
          ofKind(world, 'order.denied').length > 0,
          'what is too much is denied before it is sent',
        );
      });
      await inCase('sales are counted when they are sent', {}, async (world, check) => {
        const { quantity, above } = world.sizes;
        await world.begin();
        await buy(world);
        for (let i = 0; i < 2; i += 1) {
          await world.act(({ order }) => {
            order({ side: 'sell', type: 'limit', limit: above, quantity });
          });
        }
        const sales = world.heard('new_order').filter(({ side }) => side === 'sell');
        check(sales.length === 1, 'what is being sold is not sold again');
        check(reasons(world, 'order.denied')[0] === 'short_not_allowed', 'the bot knows why');
      });
    },
  },
  {
    id: 'A02',
    title: 'Partial fills, then the rest',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      'A resting order is filled in three parts, then in full; an exit is asked for between.',
    expectation:
      'Quantity, cost and what is left are exact after each part; exits are of what is filled.',
    async play(inCase) {
      await inCase('three parts and the rest', {}, async (world, check) => {
        const { quantity, below, above } = world.sizes;
        const part = quantity / 4;
        await world.begin();
        await rest(world);
        for (let i = 1; i <= 3; i += 1) {
          world.others.take(world.symbol, 'sell', below, world.units(part));
          await world.time.pass(1000);
          const { positions = {}, cash, working = [] } = world.state() ?? {};
          check(same(positions[world.symbol], part * i), `after part ${i}: the position`);
          check(same(cash, world.config.cash - part * i * below), `after part ${i}: the cash`);
          check(same(working[0]?.filled, part * i), `after part ${i}: what is filled`);
        }
        await world.act(({ order }) => {
          order({ side: 'sell', type: 'limit', limit: above, quantity, reduceOnly: true });
        });
        const exit = world.heard('new_order').find(({ side }) => side === 'sell');
        check(exit?.['quantity'] === world.units(part * 3), 'the exit is of what is filled');
        world.others.take(world.symbol, 'sell', below, world.units(part));
        await world.bar();
        check(atVenue(world, 1)?.status === 'filled', 'the venue has filled it');
        check(world.state()?.working.length === 1, 'only the exit is left');
        const told = world.exerciser.fills.reduce((sum, fill) => sum + fill.quantity, 0);
        check(same(told, quantity), 'the strategy is told of each unit once');
        world.others.take(world.symbol, 'buy', above, world.units(part * 3));
        await world.bar();
        const { positions = {}, cash } = world.state() ?? {};
        check(same(positions[world.symbol], part), 'the exit is booked');
        const left = world.config.cash - quantity * below + part * 3 * above;
        check(same(cash, left), 'the cash has what the exit brought in');
      });
    },
  },
  {
    id: 'A03',
    title: 'Orders to be filled at once',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Half of an immediate-or-cancel order is there; of a fill-or-kill order, too.',
    expectation: 'The rest is taken for canceled, and nothing is sent after it.',
    async play(inCase) {
      for (const timeInForce of ['ioc', 'fok'] as const) {
        await inCase(timeInForce, {}, async (world, check) => {
          const { quantity, price } = world.sizes;
          await world.begin();
          const units = world.units(quantity / 2) + 1;
          world.others.quote(world.symbol, undefined, { price, units });
          await world.act(({ order }) => {
            order({ side: 'buy', type: 'limit', limit: price, quantity, timeInForce });
          });
          await world.bar();
          const filled = timeInForce === 'ioc' ? quantity / 2 : 0;
          check(world.state()?.working.length === 0, 'nothing is left working');
          check(
            same(world.state()?.positions[world.symbol] ?? 0, filled, world.sizes.unit),
            'what was filled is booked',
          );
          check(
            reasons(world, 'order.canceled')[0] === 'not_filled_at_once',
            'the rest is canceled',
          );
          check(sent(world) === 1, 'nothing is sent after it');
        });
      }
      await inCase('post only', {}, async (world, check) => {
        const { quantity, price } = world.sizes;
        await world.begin();
        world.others.quote(world.symbol, undefined, { price, units: world.units(quantity) + 1 });
        await world.act(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: price, quantity, postOnly: true });
        });
        await world.bar();
        check(ofKind(world, 'order.filled').length === 0, 'one that is only to rest takes nothing');
        check(reasons(world, 'order.rejected')[0] === 'post_only_would_cross', 'it is refused');
        check(sent(world) === 1, 'nothing is sent after it');
      });
    },
  },
  {
    id: 'A04',
    title: 'Amendments of quantity and price',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus: 'An order is amended to a smaller quantity, then to another price.',
    expectation: 'Priority is known to be kept or lost, and ids are chained.',
    notApplicable: () => NO_AMENDMENTS,
  },
  {
    id: 'A05',
    title: 'A rejected amendment',
    articles: [MATCHING, 'RTS 7 9(3)(b)'],
    stimulus: 'An amendment is rejected as unknown, and as too late.',
    expectation: 'The terms that were confirmed last are restored.',
    notApplicable: () => NO_AMENDMENTS,
  },
  {
    id: 'A06',
    title: 'A cancel that crosses a fill',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'An order is filled while the cancel of it is on its way.',
    expectation:
      'The fill is booked, the refusal of the cancel is harmless, the position is right.',
    async play(inCase) {
      await inCase('filled before it is canceled', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        await rest(world);
        await world.act(({ broker }) => {
          for (const order of broker.working()) broker.cancel(order);
          world.others.take(world.symbol, 'sell', below, world.units(quantity));
        });
        await world.bar();
        check(world.heard('cancel').length > 0, 'the cancel was asked for');
        check(ofKind(world, 'order.pending_cancel').length === 1, 'it is pending until answered');
        check(ofKind(world, 'order.canceled').length === 0, 'the order counts as filled');
        check(same(world.state()?.positions[world.symbol], quantity), 'the fill is booked');
        check(sent(world) === 1, 'nothing is sent after it');
      });
      await inCase('canceled in time', {}, async (world, check) => {
        await world.begin();
        await rest(world);
        await world.act(({ broker }) => {
          for (const order of broker.working()) broker.cancel(order);
        });
        check(atVenue(world, 1)?.status === 'canceled', 'the venue has canceled it');
        check(reasons(world, 'order.canceled')[0] === 'canceled_by_strategy', 'the bot knows why');
        check(world.state()?.working.length === 0, 'nothing is left working');
      });
    },
  },
  {
    id: 'A07',
    title: 'Orders that the venue refuses',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'Orders are refused for tick, lot, price band, instrument and closed market, which change while they are on their way.',
    expectation: 'Each is classified, none is sent again by itself, and people are told.',
    async play(inCase) {
      const refusals = [
        ['tick', 'invalid_order'],
        ['lot', 'invalid_order'],
        ['band', 'invalid_order'],
        ['instrument', 'unknown_symbol'],
        ['closed market', 'market_closed'],
      ] as const;
      for (const [what, reason] of refusals) {
        await inCase(what, {}, async (world, check) => {
          await world.begin();
          const { symbol: instrument } = world;
          const begun = world.venue.now;
          const { quantity, below } = world.sizes;
          world.exerciser.tell(({ order }) => {
            // While the order is on its way: what the bot knew of before, it would not have sent.
            if (what === 'instrument') world.do({ do: 'delete', instrument });
            else if (what === 'closed market') world.do({ do: 'phase', phase: 'closed' });
            else {
              const terms = { tick: { tick: 7919 }, lot: { lot: 999_983 }, band: { band: 1e-9 } };
              world.do({ do: 'set_terms', instrument, terms: terms[what] });
            }
            order({ side: 'buy', type: 'limit', limit: below, quantity });
          });
          await world.quietBar();
          check(sent(world) === 1, 'the order is sent');
          check(reasons(world, 'order.rejected')[0] === reason, `it is refused as ${reason}`);
          await world.time.pass(3 * MINUTE);
          check(sent(world) === 1, 'it is not sent again');
          check(world.state()?.working.length === 0, 'nothing is left working');
          check(alertAfter(world, begun, /order\.rejected/) !== undefined, 'people are told');
        });
      }
      await inCase('kinds of orders that it does not have', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        await world.act(({ order }) => {
          const limit = { side: 'buy', type: 'limit', limit: below, quantity } as const;
          order({ ...limit, timeInForce: 'day' });
          order({ ...limit, stopLoss: { percent: 0.1 } });
          order({ ...limit, ocoGroup: 1 });
          order({ side: 'buy', type: 'trailing_stop', trail: { percent: 0.1 }, quantity });
        });
        const denied = reasons(world, 'order.denied');
        check(denied.length === 4 && new Set(denied).size === 1, 'each is denied');
        check(sent(world) === 0, 'it is not sent');
      });
    },
  },
  {
    id: 'A08',
    title: 'The throttle of the venue',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '15(1)(d)', ...GENERAL],
    stimulus: 'More is sent than the venue takes; it refuses the rest, or queues it.',
    expectation:
      'What was refused is tried again more slowly, cancels get through, and no order is there twice.',
    exercises: 'runner/desk',
    async play(inCase) {
      for (const policy of ['reject', 'queue'] as const) {
        await inCase(policy, {}, async (world, check) => {
          await world.begin();
          const throttle = { limit: 2, per_ms: 1000, policy };
          world.do({ do: 'throttle', session: 'bot', throttle });
          const share = Math.min(5, world.config.risk.max_messages_per_second);
          const { quantity, below } = world.sizes;
          await world.act(({ order }) => {
            for (let i = 0; i < share; i += 1) {
              order({ side: 'buy', type: 'limit', limit: below, quantity });
            }
          });
          await world.time.pass(20_000);
          const open = world.venue.openOrders('bot').length;
          const accepted = ofKind(world, 'order.submitted').length;
          check(open === accepted, `${accepted} orders rest at the venue, once each`);
          check(reasons(world, 'order.rejected').length === 0, 'none is given up');
          world.do({ do: 'throttle', session: 'bot', throttle: { ...throttle, limit: 1 } });
          await world.act(({ broker }) => {
            for (const order of broker.working()) broker.cancel(order);
          });
          const gone = await world.time.until(
            () => world.venue.openOrders('bot').length === 0,
            MINUTE,
          );
          check(gone, 'the cancels get through');
        });
      }
    },
  },
  {
    id: 'A09',
    title: 'An order that would meet an own one',
    articles: [MATCHING, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus:
      "A purchase meets the bot's own resting sale; the account has the venue cancel the newest, the oldest, both.",
    expectation: 'The bot does not trade with itself, and knows which of its orders is gone.',
    async play(inCase) {
      for (const selfTrade of ['cancel_newest', 'cancel_oldest', 'cancel_both'] as const) {
        await inCase(selfTrade, { selfTrade }, async (world, check) => {
          await world.begin();
          await buy(world);
          const { quantity, above } = world.sizes;
          const half = Math.floor(quantity / 2 / world.sizes.unit) * world.sizes.unit;
          const units = Number(half.toFixed(9));
          await world.act(({ order }) => {
            order({ side: 'sell', type: 'limit', limit: above, quantity: units });
          });
          await world.act(({ order }) => {
            order({ side: 'buy', type: 'limit', limit: above, quantity: units });
          });
          await world.time.pass(5000);
          check(same(world.held().positions[world.symbol], quantity), 'nothing was traded');
          const left = selfTrade === 'cancel_both' ? 0 : 1;
          check(world.state()?.working.length === left, `${left} of its orders works on`);
          check(reasons(world, 'order.canceled').length === 2 - left, 'the bot knows what is gone');
        });
      }
    },
  },
  {
    id: 'A10',
    title: 'An order at the market into a thin book',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '15(1)(a)', '5(4)(d)', ...GENERAL],
    stimulus: 'Little is offered at the price, the next offer is far from it, and then nothing.',
    expectation: 'The collar holds for each order; what the book does not have is not chased.',
    async play(inCase) {
      await inCase('two levels, far apart', {}, async (world, check) => {
        const { price, quantity } = world.sizes;
        const collar = world.config.risk.price_collar_bps / 10_000;
        check(collar < Infinity, 'the bot has a price collar');
        await world.begin();
        const far = Number((price * (1 + Math.min(0.4, 2 * collar + 0.02))).toFixed(2));
        world.others.quote(world.symbol, undefined, {
          price,
          units: world.units(quantity / 4) + 1,
        });
        world.others.rest(world.symbol, 'sell', { price: far, units: world.units(quantity) });
        await world.act(({ order }) => {
          order({ side: 'buy', quantity });
        });
        await world.time.pass(10_000);
        const worst = Math.max(
          0,
          ...ofKind(world, 'order.filled').map((event) => ('price' in event ? event.price : 0)),
        );
        const slipped = worst / price - 1;
        check(
          slipped <= collar,
          `no fill is farther from the price than the collar: ${(slipped * 1e4).toFixed(0)} bps`,
        );
        check(sent(world) === 1, 'nothing is sent after it');
      });
    },
  },
  {
    id: 'A11',
    title: 'Auctions',
    articles: [MATCHING, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Opening, volatility and closing auctions call, end at random, and uncross.',
    expectation:
      'Indicative prices are no trades; orders that an auction does not take are not sent; its fills are booked.',
    async play(inCase) {
      for (const phase of ['opening_auction', 'volatility_auction', 'closing_auction'] as const) {
        await inCase(phase, {}, async (world, check) => {
          const { quantity, price, below } = world.sizes;
          await world.begin();
          world.do({ do: 'phase', phase });
          world.others.rest(world.symbol, 'buy', { price: below, units: world.units(quantity) });
          world.others.rest(world.symbol, 'sell', { price: below, units: world.units(quantity) });
          world.exerciser.tell(({ order }) => {
            order({ side: 'buy', type: 'limit', limit: price, quantity });
          });
          await world.quietBar();
          check(atVenue(world, 1)?.status === 'new', 'a limit order waits for the auction');
          await world.time.pass(2 * MINUTE);
          const closes = world.journal.events.flatMap(({ kind, payload }) =>
            kind === 'data.bars' ? Object.values(stepOf(JSON.stringify(payload)).bars) : [],
          );
          check(
            closes.every(({ close }) => close === price),
            'indicative prices are no trades',
          );
          check(ofKind(world, 'order.filled').length === 0, 'nothing is filled before it ends');
          world.do({ do: 'phase', phase: phase === 'closing_auction' ? 'closed' : 'continuous' });
          await world.time.pass(2 * MINUTE);
          check(same(world.state()?.positions[world.symbol], quantity), 'its fills are booked');
          const [fill] = ofKind(world, 'order.filled');
          check(fill !== undefined && 'price' in fill && fill.price <= price, 'at one price');
        });
      }
      await inCase('orders to be filled at once', {}, async (world, check) => {
        const { quantity, price } = world.sizes;
        await world.begin();
        world.do({ do: 'phase', phase: 'volatility_auction' });
        world.exerciser.tell(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: price, quantity, timeInForce: 'ioc' });
        });
        await world.quietBar();
        await world.time.pass(2 * MINUTE);
        check(sent(world) === 0, 'one that the auction does not take is not sent');
        check(reasons(world, 'order.denied')[0] === 'not_taken_in_auction', 'the bot knows why');
        world.do({ do: 'phase', phase: 'continuous' });
        await world.time.pass(MINUTE);
      });
    },
  },
  {
    id: 'A12',
    title: 'A halt with resting orders',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '16(5)', '5(4)(d)', ...GENERAL],
    stimulus: 'Trading is halted, resumed and halted again while an order rests.',
    expectation:
      'No new orders while it is halted, and after it only once there is a price; what rests too far from that is canceled; people are told within 5 s.',
    async play(inCase) {
      await inCase('halted twice', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        await rest(world);
        for (let i = 0; i < 2; i += 1) {
          const begun = world.venue.now;
          const before = sent(world);
          world.do({ do: 'phase', phase: 'halt' });
          world.exerciser.tell(({ order }) => {
            order({ side: 'buy', type: 'limit', limit: below, quantity });
          });
          await world.quietBar();
          await world.time.pass(3 * MINUTE);
          check(sent(world) === before, 'no order is sent while trading is halted');
          const denied = reasons(world, 'order.denied');
          check(denied[i] === 'market_halted', 'the order is denied, and does not wait');
          const alert = alertAfter(world, begun, /halt|closed/);
          check(
            alert !== undefined && alert.time - begun <= 5000,
            'people are told of the halt within 5 s',
          );
          world.do({ do: 'phase', phase: 'continuous' });
          await world.bar();
        }
        check(world.venue.openOrders('bot').length >= 1, 'the order that rested still does');
      });
      await inCase('closed', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        world.do({ do: 'phase', phase: 'closed' });
        world.exerciser.tell(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: below, quantity });
        });
        await world.quietBar();
        check(sent(world) === 0, 'no order is sent while the market is closed');
        const [why] = reasons(world, 'order.denied');
        check(why === 'market_closed', 'the order is denied, and does not wait');
      });
      await inCase('the price is another one after it', {}, async (world, check) => {
        const { quantity, below, price } = world.sizes;
        const collar = world.config.risk.price_collar_bps / 10_000;
        const set = collar < Infinity ? `${collar}` : 'none (set spec.risk.price_collar_bps)';
        check(collar < Infinity, 'the bot has a price collar', set);
        await world.begin();
        await rest(world);
        world.do({ do: 'phase', phase: 'halt' });
        await world.quietBar();
        world.do({ do: 'phase', phase: 'continuous' });
        await world.time.pass(1000);
        check(world.venue.openOrders('bot').length === 1, 'the order that rested still does');
        const jumped = Math.round(price * 100 * (1 + Math.min(0.4, 1.5 * collar))) / 100;
        for (let i = 0; i < 4; i += 1) await world.bar(jumped);
        check(world.venue.openOrders('bot').length === 0, 'too far from the price it is canceled');
        let denied: OrderReason | undefined;
        await world.act(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: below, quantity });
          denied = order({ side: 'buy', type: 'limit', limit: jumped, quantity }).reason;
        }, jumped);
        // The collar over a period may be one within which no order follows so far.
        const isHeld = denied === 'price_collar_period';
        check(
          sent(world) === (isHeld ? 1 : 2),
          `by the new price orders are ${isHeld ? 'held back' : 'sent again'}, and by the old none`,
          `${sent(world) - 1} of 2 sent, the one at the new price ${denied ?? 'taken'}`,
        );
      });
    },
  },
  {
    id: 'A13',
    title: 'All orders are canceled, one of them not at once',
    articles: [MATCHING, 'RTS 7 9(3)(b)', '12(1)', ...GENERAL],
    stimulus: 'The bot is to cancel all of its orders; the venue does not hear two of the cancels.',
    expectation: 'What survives is canceled again, and nothing counts as canceled before it is.',
    exercises: 'runner/venue cancelAll. By instrument or side the engine has no mass cancel.',
    async play(inCase) {
      await inCase('two cancels are lost', { ends: 'halted' }, async (world, check) => {
        await world.begin();
        for (let i = 0; i < 3; i += 1) await rest(world, 0.5);
        world.do({
          do: 'fault',
          fault: {
            stream: 'inbound',
            type: 'cancel',
            skip: 1,
            count: 2,
            action: { kind: 'drop' },
          },
        });
        await world.time.pass(1);
        check(world.venue.openOrders('bot').length === 3, 'three orders rest');
        world.command('halt');
        const done = await world.time.until(() => world.end !== undefined, MINUTE);
        check(
          done && world.end?.verified === true,
          'it ends once the venue says that none is open',
        );
        check(world.venue.openOrders('bot').length === 0, 'none is open');
        const asked = world.botLog.filter(
          ({ kind, message }) =>
            kind === 'asked' && (message as { readonly what: string }).what === 'cancel',
        );
        check(asked.length > 3, 'what survived was canceled again');
      });
    },
  },
  {
    id: 'A14',
    title: 'The connection is lost',
    articles: [MATCHING, 'RTS 7 9(3)(c)', '17(3)', ...GENERAL],
    stimulus:
      'The connection breaks with an order at the venue, which cancels it then, or does not; it comes back after 5 s and after 5 minutes.',
    expectation:
      'Nothing is assumed: what became of the order is asked for, and nothing is sent before.',
    exercises: 'trading/venue-reports',
    async play(inCase) {
      for (const isCanceledOnDisconnect of [true, false]) {
        for (const ms of [5000, 5 * MINUTE]) {
          const name = `${isCanceledOnDisconnect ? '' : 'not '}canceled, back after ${ms / 1000} s`;
          await inCase(name, { isCanceledOnDisconnect }, async (world, check) => {
            await world.begin();
            await rest(world);
            const begun = world.venue.now;
            world.do({ do: 'gateway', gateway: 'primary', is_up: false });
            await world.time.pass(10);
            if (!isCanceledOnDisconnect) {
              world.others.take(
                world.symbol,
                'sell',
                world.sizes.below,
                world.units(world.sizes.quantity / 4),
              );
            }
            const before = sent(world);
            await rest(world, 0.5);
            check(sent(world) === before, 'nothing is sent while it is not connected');
            if (world.venue.now < begun + ms) await world.time.pass(begun + ms - world.venue.now);
            world.do({ do: 'gateway', gateway: 'primary', is_up: true });
            await world.time.pass(60_000);
            check(
              alertAfter(world, begun, /connect|hung up|answer/) !== undefined,
              'people are told that the venue cannot be reached',
            );
            const back = world.venueLog.findLast(
              ({ kind, message }) =>
                kind === 'said' && (message as { readonly type: string }).type === 'logon',
            )!.time;
            const first = world.heard('new_order').find(({ at }) => at >= back);
            const asked = world
              .heard('order_status_request')
              .find(
                ({ at, client_order_id: id }) => at >= back && id !== first?.['client_order_id'],
              );
            const open = world.heard('open_orders_request').find(({ at }) => at >= back);
            check(
              first === undefined ||
                (asked !== undefined && asked.at <= first.at) ||
                (open !== undefined && open.at <= first.at),
              'what became of orders is asked for before others are sent',
            );
            check(world.venue.isConnected('bot'), 'it is connected again');
          });
        }
      }
    },
  },
  {
    id: 'A15',
    title: 'Orders that end unasked',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: "The venue's operator cancels an order; another one expires with the day.",
    expectation: 'The bot follows the venue, knows the reason, and does not place them again.',
    async play(inCase) {
      await inCase('canceled by the operator', {}, async (world, check) => {
        await world.begin();
        await rest(world);
        const id = world.heard('new_order').at(-1)?.['client_order_id'];
        world.do({ do: 'end_order', as: 'bot', client_order_id: String(id) });
        await world.bar();
        await world.bar();
        check(world.state()?.working.length === 0, 'the order is gone for the bot, too');
        check(reasons(world, 'order.canceled')[0] === 'canceled_by_venue', 'the bot knows why');
        check(sent(world) === 1, 'it is not placed again');
      });
      await inCase('expired', {}, async (world, check) => {
        await world.begin();
        await rest(world);
        const id = world.heard('new_order').at(-1)?.['client_order_id'];
        const expired = { status: 'expired', reason: 'day_ended' };
        for (const [type, fields] of [
          ['canceled', { ...expired, exec_type: 'expired' }],
          ['status', expired],
        ] as const) {
          const action = { kind: 'patch', fields } as const;
          world.do({ do: 'fault', fault: { stream: 'orders', type, action } });
        }
        world.do({ do: 'end_order', as: 'bot', client_order_id: String(id) });
        await world.bar();
        await world.bar();
        check(ofKind(world, 'order.expired').length === 1, 'it counts as expired');
        check(sent(world) === 1, 'it is not placed again');
      });
    },
  },
  {
    id: 'A16',
    title: 'A trade is undone or corrected',
    articles: [MATCHING, 'RTS 7 9(3)(a)', '17(3)', ...GENERAL],
    stimulus: 'Half an hour after a fill the venue undoes the trade, or corrects its price.',
    expectation: 'Position, cash and limits are those of the venue; people are told.',
    async play(inCase) {
      for (const what of ['bust', 'correct'] as const) {
        await inCase(what, {}, async (world, check) => {
          await world.begin();
          await buy(world);
          await world.time.pass(30 * MINUTE);
          const trade = world.venueLog.findLast(
            ({ message }) => (message as { exec_type?: string }).exec_type === 'trade',
          )?.message as { readonly trade_id: number; readonly last_quantity: number } | undefined;
          check(trade !== undefined, 'it has traded');
          const begun = world.venue.now;
          const trade_id = trade?.trade_id ?? 0;
          const price = Math.round(world.sizes.price * 100) - 100;
          if (what === 'bust') world.do({ do: 'bust', trade_id });
          else {
            const { last_quantity: quantity } = trade!;
            world.do({ do: 'correct', trade_id, price, quantity });
          }
          await world.bar();
          await world.time.pass(MINUTE);
          const alert = alertAfter(world, begun, /order\.corrected/);
          check(alert !== undefined && alert.time - begun <= 5000, 'people are told within 5 s');
          check(ofKind(world, 'order.corrected').length === 1, 'it counts once');
          const { equity } = world.state() ?? {};
          const isUndone = what !== 'bust' || same(equity, world.config.cash);
          check(isUndone, 'what was undone has neither gained nor lost');
        });
      }
    },
  },
  {
    id: 'A17',
    title: 'An acknowledgement is lost',
    articles: [MATCHING, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'The venue takes an order, and its answer does not arrive.',
    expectation: 'The bot asks what became of it; there is one order at most.',
    exercises: 'runner/desk',
    async play(inCase) {
      for (const what of ['answer', 'order', 'connection'] as const) {
        await inCase(`the ${what} is lost`, {}, async (world, check) => {
          await world.begin();
          const fault =
            what === 'order'
              ? ({ stream: 'inbound', type: 'new_order' } as const)
              : ({ stream: 'orders', type: 'new' } as const);
          world.do({ do: 'fault', fault: { ...fault, count: 1, action: { kind: 'drop' } } });
          await rest(world);
          if (what === 'connection') world.do({ do: 'cut', session: 'bot' });
          await world.time.pass(30_000);
          check(world.venue.openOrders('bot').length === 1, 'there is one order');
          check(
            same(world.venue.openOrders('bot')[0]?.quantity, world.units(world.sizes.quantity)),
            'of its size',
          );
          const ids = world.heard('new_order').map((one) => one['client_order_id']);
          check(new Set(ids).size === 1, 'under one name');
          check(world.heard('order_status_request').length > 1, 'what became of it is asked for');
        });
      }
    },
  },
  {
    id: 'A18',
    title: 'Failover to a second gateway',
    articles: [MATCHING, 'RTS 7 9(3)(c)'],
    stimulus: 'The gateway fails with orders in flight.',
    expectation: 'The sequence is resumed at the other one, and no order is guessed.',
    notApplicable: () =>
      'The bot has one way to its venue, and no second gateway to fail over to; see A14 for its loss.',
  },
];

/** To within a rounding error. */
export function same(a: number | undefined, b: number, within = 1e-6): boolean {
  return a !== undefined && Math.abs(a - b) <= Math.max(within, 1e-9 * Math.abs(b));
}
