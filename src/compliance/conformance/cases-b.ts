/** Data that are downloaded: Article 6(2)(b), by the flows that RTS 7 Article 9(3) names. */
import { MINUTE } from '../../market/bar-time.ts';
import { stepOf } from '../../trading/session-events.ts';
import type { VenueRules } from '../../trading/venue.ts';
import type { Case } from './case.ts';
import { alertAfter, alertsLike, atVenue, buy, ofKind, reasons, rest, sent } from './case.ts';
import { same } from './cases-a.ts';
import type { World } from './world.ts';

const DATA = '6(2)(b)';
const GENERAL = ['5(4)(a)', '5(4)(c)'];

export const CASES_B: readonly Case[] = [
  {
    id: 'B01',
    title: 'Reference data, and changes of them within the day',
    articles: [DATA, 'RTS 7 9(3)(b)', ...GENERAL],
    stimulus: 'Terms are downloaded; then the tick changes, and then the instrument is deleted.',
    expectation: 'Orders keep to the terms that hold; none are sent for what is not there.',
    async play(inCase) {
      await inCase('downloaded before the first order', {}, async (world, check) => {
        await world.begin();
        await world.act(({ order }) => {
          const { quantity, below, unit } = world.sizes;
          order({
            side: 'buy',
            type: 'limit',
            limit: below - 0.0049,
            quantity: quantity + unit / 3,
          });
        });
        const [asked] = world.heard('reference_request');
        const [order] = world.heard('new_order');
        check(asked !== undefined, 'the terms are asked for');
        check(order !== undefined && asked!.at < order.at, 'before the first order');
        check(atVenue(world, 1)?.status === 'new', 'the order keeps to tick and lot');
        const most = (world.sizes.below - 0.0049) * 100;
        check((atVenue(world, 1)?.price ?? Infinity) <= most, 'it is no dearer than was asked for');
      });
      await inCase('the tick changes', {}, async (world, check) => {
        await world.begin();
        const { symbol: instrument } = world;
        // A multiple of it the price of the market is, and no other near it.
        const tick = Math.round(world.sizes.price * 100);
        world.do({ do: 'set_terms', instrument, terms: { tick } });
        await rest(world);
        await world.time.pass(10_000);
        check(reasons(world, 'order.rejected').length === 0, 'orders keep to the new tick');
        check(sent(world) === 0, 'what the tick leaves no price for is not sent');
      });
      await inCase('the instrument is deleted', {}, async (world, check) => {
        await world.begin();
        world.do({ do: 'delete', instrument: world.symbol });
        const { quantity, below } = world.sizes;
        world.exerciser.tell(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: below, quantity });
        });
        await world.quietBar();
        await world.time.pass(5 * MINUTE);
        check(sent(world) === 0, 'nothing is sent for it');
        check(reasons(world, 'order.denied')[0] === 'unknown_symbol', 'the bot knows why');
        check(alertsLike(world, /deleted/).length > 0, 'people are told');
        check(world.state()?.working.length === 0, 'nothing counts as working');
      });
    },
  },
  {
    id: 'B02',
    title: 'Logon, logout and lost heartbeats',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus:
      'The venue cannot be reached at the start; it logs the bot out; heartbeats of the bot are lost.',
    expectation: 'No order before the session is there again; people are told.',
    exercises:
      'runner/venue untilAnswered. The messages of the session are those of the simulated venue: a deployment has those of its exchange, by ccxt.',
    async play(inCase) {
      await inCase('not to be reached at the start', {}, async (world, check) => {
        world.do({ do: 'gateway', gateway: 'primary', is_up: false });
        await world.time.pass(1);
        const begun = world.venue.now;
        world.start();
        world.exerciser.tell(({ order }) => {
          order({
            side: 'buy',
            type: 'limit',
            limit: world.sizes.below,
            quantity: world.sizes.quantity,
          });
        });
        for (let i = 0; i < 3; i += 1) await world.bar();
        check(sent(world) === 0, 'nothing is sent');
        check(alertAfter(world, begun, /venue/) !== undefined, 'people are told');
        world.do({ do: 'gateway', gateway: 'primary', is_up: true });
        await world.time.pass(MINUTE);
        for (let i = 0; i < 3; i += 1) await world.bar();
        check(sent(world) === 1, 'once it is there, the bot trades');
        const [asked] = world.heard('open_orders_request');
        check(asked!.at < world.heard('new_order')[0]!.at, 'having asked what is open');
      });
      for (const what of ['logged out', 'heartbeats are lost'] as const) {
        await inCase(what, {}, async (world, check) => {
          await world.begin();
          await rest(world);
          const begun = world.venue.now;
          if (what === 'logged out') world.do({ do: 'log_out', session: 'bot', reason: 'a case' });
          else {
            for (const type of ['heartbeat', 'order_status_request']) {
              const fault = { stream: 'inbound', type, action: { kind: 'drop' } } as const;
              const time = [begun, begun + 100_000] as const;
              world.do({ do: 'fault', fault: { ...fault, time } });
            }
          }
          await world.time.pass(2 * MINUTE);
          check(alertAfter(world, begun, /connect|logged|answer/) !== undefined, 'people are told');
          await world.time.pass(MINUTE);
          check(world.venue.isConnected('bot'), 'it is connected again');
          await rest(world, 0.5);
          check(world.venue.openOrders('bot').length === 2, 'it trades');
        });
      }
    },
  },
  {
    id: 'B03',
    title: 'A gap in what the venue says of orders',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Executions are lost, and one of those that are said again; live ones come between.',
    expectation: 'What was missed is asked for, and counted once.',
    exercises: 'trading/venue-reports. The numbers are those of the simulated venue.',
    async play(inCase) {
      await inCase('lost, and lost again', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        await rest(world);
        const lost = { stream: 'orders', type: 'trade', action: { kind: 'drop' } } as const;
        world.do({ do: 'fault', fault: { ...lost, is_resent: false, count: 2 } });
        world.do({ do: 'fault', fault: { ...lost, is_resent: true, count: 1 } });
        for (let i = 0; i < 4; i += 1) {
          world.others.take(world.symbol, 'sell', below, world.units(quantity / 4));
          await world.time.pass(200);
        }
        await world.time.pass(30_000);
        check(same(world.state()?.positions[world.symbol], quantity), 'all of it is counted once');
        check(world.heard('resend_request').length > 0, 'what was missed is asked for');
        await world.bar();
        const told = world.exerciser.fills.reduce((sum, fill) => sum + fill.quantity, 0);
        check(same(told, quantity), 'the strategy is told of each unit once');
      });
      await inCase('never said', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        await world.begin();
        await rest(world);
        const action = { kind: 'suppress' } as const;
        world.do({ do: 'fault', fault: { stream: 'orders', type: 'trade', action } });
        world.others.take(world.symbol, 'sell', below, world.units(quantity / 4));
        await world.time.pass(30_000);
        check(
          same(world.state()?.positions[world.symbol], quantity / 4),
          'what no message told is found out by asking',
        );
      });
    },
  },
  {
    id: 'B04',
    title: 'Reports that come twice, and late',
    articles: [DATA, 'RTS 7 9(3)(a)', ...GENERAL],
    stimulus: 'Executions are duplicated; each report comes three times, an older one between.',
    expectation: 'Each counts once.',
    async play(inCase) {
      for (const repeats of [false, true]) {
        await inCase(repeats ? 'reports' : 'messages', { repeats }, async (world, check) => {
          const { quantity, below } = world.sizes;
          await world.begin();
          const action = { kind: 'duplicate' } as const;
          world.do({ do: 'fault', fault: { stream: 'orders', action } });
          await rest(world);
          for (let i = 0; i < 2; i += 1) {
            world.others.take(world.symbol, 'sell', below, world.units(quantity / 4));
            await world.bar();
          }
          check(
            same(world.state()?.positions[world.symbol], quantity / 2),
            'the position is right',
          );
          check(ofKind(world, 'order.filled').length === 2, 'each fill is booked once');
          const told = world.exerciser.fills.reduce((sum, fill) => sum + fill.quantity, 0);
          check(told <= quantity / 2 + 1e-9, 'the strategy is told of none twice');
        });
      }
    },
  },
  {
    id: 'B05',
    title: 'Market data are lost',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'The stream loses one bar, and 100; what was missed can be asked for.',
    expectation:
      'The bot is shown every bar, each once and in order, and acts on none that is open.',
    exercises: 'trading/live-feed, trading/assembler',
    async play(inCase) {
      for (const count of [1, 100]) {
        await inCase(`${count} lost`, {}, async (world, check) => {
          await world.begin();
          world.data.isMute = true;
          for (let i = 0; i < count; i += 1) await world.bar(world.sizes.price * (1 + 1e-4 * i));
          world.data.isMute = false;
          for (let i = 0; i < 3; i += 1) await world.bar();
          check(
            isReference(world),
            'the bars are those that the venue made, complete and in order',
          );
          check(world.exerciser.bars.length >= count + 3, 'none is missing');
        });
      }
    },
  },
  {
    id: 'B06',
    title: 'Two feeds of market data, one of them late',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Feeds A and B are reordered, and one is late.',
    expectation: 'What comes first counts, by its number.',
    notApplicable: () => 'The bot takes bars by one stream: there is no second one to choose from.',
  },
  {
    id: 'B07',
    title: 'Market data fall silent',
    articles: [DATA, 'RTS 7 9(3)(c)', '16(5)', ...GENERAL],
    stimulus: 'No market data come, and none are to be had, with an order at the venue.',
    expectation: 'Nothing is sent on old data; people are told.',
    exercises: 'trading/live-feed',
    async play(inCase) {
      await inCase('silent for ten minutes', {}, async (world, check) => {
        await world.begin();
        await rest(world);
        const before = sent(world);
        const begun = world.venue.now;
        world.data.isAway = true;
        world.exerciser.tell(({ order }) => {
          order({
            side: 'buy',
            type: 'limit',
            limit: world.sizes.below,
            quantity: world.sizes.quantity,
          });
        });
        for (let i = 0; i < 10; i += 1) await world.bar();
        check(sent(world) === before, 'nothing is sent on old data');
        const alert = alertAfter(world, begun, /market data/);
        check(
          alert !== undefined && alert.time - begun <= 3 * MINUTE,
          'people are told within three bars',
        );
        world.data.isAway = false;
        for (let i = 0; i < 3; i += 1) await world.bar();
        await world.time.pass(2 * MINUTE);
        check(isPartOfReference(world), 'what comes after it is right');
        check(alertAfter(world, begun, /data\.gap/) !== undefined, 'what is missing is told');
      });
    },
  },
  {
    id: 'B08',
    title: 'One instrument stands still while others move',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus: 'Of one instrument no data come any more; the others go on.',
    expectation: 'The others are traded on; orders for what stands still are not sent.',
    exercises: 'trading/assembler, engine',
    notApplicable: ({ bot }) =>
      bot.spec.spec.universe.symbols.length > 1 ? undefined : 'The bot trades one instrument.',
    async play(inCase) {
      await inCase('frozen', {}, async (world, check) => {
        await world.begin();
        const steps = world.exerciser.bars.length;
        world.data.frozen.add(world.symbol);
        for (let i = 0; i < 5; i += 1) await world.bar(world.sizes.price * 1.001);
        check(world.exerciser.bars.length - steps >= 4, 'the others go on');
        const last = barsOfBot(world).at(-1)!;
        check(!Object.hasOwn(last.bars, world.symbol), 'it has no bar of what stands still');
        const other = world.symbols[1]!;
        await world.act(({ order, broker, instruments }) => {
          const { quantity, below } = world.sizes;
          const request = { side: 'buy', type: 'limit', limit: below, quantity } as const;
          order(request);
          broker.order({ ...request, instrument: instruments[1]! });
        });
        check(reasons(world, 'order.denied')[0] === 'stale_data', 'nothing is sent by old prices');
        const to = world.heard('new_order').map(({ instrument }) => instrument);
        check(to.join() === other, 'the others are traded on');
      });
    },
  },
  {
    id: 'B09',
    title: 'Prices that cannot be',
    articles: [DATA, '5(4)(d)', '15(1)(a)', ...GENERAL],
    stimulus: 'Bars with a price of 0, below 0 and NaN; then a single trade 20 % off.',
    expectation: 'They are not taken; the collar does not follow a single price.',
    exercises: 'trading/assembler. The bot takes bars, not books: none is crossed or locked.',
    async play(inCase) {
      await inCase('no prices', {}, async (world, check) => {
        await world.begin();
        for (const low of [0, -1, Number.NaN]) {
          const shown = world.data.bars(world.symbol).length;
          world.data.garble = (_symbol, bars) =>
            bars.map((bar) => (bar.time === open ? { ...bar, low } : bar));
          const open = world.data.bars(world.symbol)[shown - 1]!.time;
          world.data.show(world.symbol);
          await world.bar();
          world.data.garble = undefined;
          await world.bar();
        }
        const taken = barsOfBot(world).flatMap(({ bars }) => Object.values(bars));
        check(
          taken.every(({ low }) => low > 0),
          'none of them is taken',
        );
        check(alertsLike(world, /data\.refused/).length >= 3, 'people are told of each');
      });
      await inCase('a single trade far off', {}, async (world, check) => {
        const collar = world.config.risk.price_collar_bps;
        check(collar < 2000, 'the bot has a price collar');
        await world.begin();
        const far = Math.round(world.sizes.price * 120) / 100;
        await world.bar(far);
        await world.act(({ order }) => {
          order({ side: 'buy', type: 'limit', limit: far, quantity: world.sizes.quantity });
        });
        check(sent(world) === 0, 'an order at that price is denied');
      });
    },
  },
  {
    id: 'B10',
    title: 'Messages that cannot be read',
    articles: [DATA, 'RTS 7 9(3)(a)', '16(5)', ...GENERAL],
    stimulus:
      'A message is cut off, one is of an unknown kind, one has no numbers where they belong.',
    expectation: 'The message is passed over, the process goes on, and people are told.',
    exercises: 'VenueDesk.take; the parser of a deployment is that of ccxt.',
    async play(inCase) {
      const garbled = {
        'cut off': { type: 'trade', action: { kind: 'truncate', length: 40 } },
        'of an unknown kind': {
          type: 'trade',
          action: { kind: 'patch', fields: { type: 'riddle' } },
        },
        'without numbers': {
          type: 'status',
          action: { kind: 'patch', fields: { filled: 'many' } },
        },
      } as const;
      for (const [what, { type, action }] of Object.entries(garbled)) {
        await inCase(what, {}, async (world, check) => {
          const { quantity, below } = world.sizes;
          await world.begin();
          await rest(world);
          const begun = world.venue.now;
          world.do({ do: 'fault', fault: { stream: 'orders', type, count: 1, action } });
          world.others.take(world.symbol, 'sell', below, world.units(quantity / 4));
          await world.time.pass(30_000);
          check(alertAfter(world, begun, /read|kind|known/) !== undefined, 'people are told');
          check(same(world.state()?.positions[world.symbol], quantity / 4), 'the fill is not lost');
          await rest(world, 0.5);
          check(world.venue.openOrders('bot').length === 2, 'the bot trades on');
        });
      }
    },
  },
  {
    id: 'B11',
    title: 'The phase of the market',
    articles: [DATA, 'RTS 7 9(3)(c)'],
    stimulus: 'Phases follow each other, and are told out of order.',
    expectation: "The bot's idea of the phase is the venue's.",
    async play(inCase) {
      const all = [
        ['opening_auction', 'auction'],
        ['continuous', 'open'],
        ['volatility_auction', 'auction'],
        ['continuous', 'open'],
        ['halt', 'halted'],
        ['continuous', 'open'],
        ['closing_auction', 'auction'],
        ['closed', 'closed'],
      ] as const;
      for (const what of ['in order', 'out of order', 'one of them lost'] as const) {
        await inCase(what, {}, async (world, check) => {
          await world.begin();
          for (const [at, [phase, expected]] of all.entries()) {
            const isLate = what === 'out of order' && at % 2 === 0;
            const isLost = what === 'one of them lost' && phase === 'halt';
            const action = isLost
              ? ({ kind: 'drop' } as const)
              : { kind: 'delay' as const, ms: 60_000 };
            const fault = { stream: 'feed_a', type: 'status', count: 1, action } as const;
            if (isLate || isLost) world.do({ do: 'fault', fault });
            world.do({ do: 'phase', phase });
            // Auctions end at random, half a minute later at most.
            await world.time.pass(40_000);
            if (isLost) {
              const terms = { band: 0.4 };
              world.do({ do: 'set_terms', instrument: world.symbol, terms });
              await world.time.pass(1000);
            }
            if (isLate) continue;
            check(phaseOf(world) === expected, `in ${phase} it is ${expected} for the bot, too`);
          }
          await world.time.pass(90_000);
          check(phaseOf(world) === 'closed', 'in the end it is what it is');
        });
      }
    },
  },
  {
    id: 'B12',
    title: 'The process is killed and started again',
    articles: [DATA, 'RTS 7 9(3)(c)', '15(2)', ...GENERAL],
    stimulus:
      'It is killed with an order at the venue, on its way, and lost; meanwhile others trade.',
    expectation: 'Orders and holdings are asked for before it trades; none is made twice.',
    exercises: 'The log is kept in memory: runner/journal itself is not tried here.',
    async play(inCase) {
      await inCase('with an order at the venue', {}, async (world, check) => {
        const { quantity, below } = world.sizes;
        const quarter = world.units(quantity / 4);
        await world.begin();
        await rest(world);
        world.others.take(world.symbol, 'sell', below, quarter);
        await world.bar();
        world.kill();
        await world.time.pass(MINUTE);
        world.others.take(world.symbol, 'sell', below, quarter);
        await world.time.pass(MINUTE);
        const back = world.venue.now;
        world.start();
        await world.time.pass(10_000);
        check(
          same(world.state()?.positions[world.symbol], quantity / 2),
          'it knows what was filled',
        );
        check(sent(world) === 1, 'the order is not sent again');
        await world.bar();
        await rest(world, 0.5);
        const first = world.heard('new_order').find(({ at }) => at > back);
        for (const what of ['open_orders_request', 'positions_request']) {
          const asked = world.heard(what).find(({ at }) => at > back);
          check(
            asked !== undefined && first !== undefined && asked.at < first.at,
            `${what} comes before the next order`,
          );
        }
        check(world.venue.openOrders('bot').length === 2, 'it trades on');
      });
      for (const isLost of [false, true]) {
        const name = isLost ? 'before its order arrives' : 'before its order is confirmed';
        await inCase(name, {}, async (world, check) => {
          await world.begin();
          const fault = isLost
            ? ({ stream: 'inbound', type: 'new_order', action: { kind: 'drop' } } as const)
            : ({ stream: 'orders', type: 'new', action: { kind: 'delay', ms: 20_000 } } as const);
          world.do({ do: 'fault', fault: { ...fault, count: 1 } });
          await rest(world);
          world.kill();
          await world.time.pass(MINUTE);
          world.start();
          await world.time.pass(10_000);
          check(sent(world) === (isLost ? 0 : 1), 'it is not sent again');
          const working = world.state()?.working.length;
          check(working === (isLost ? 0 : 1), 'the bot knows whether it is there');
        });
      }
      for (const what of ['units', 'cash'] as const) {
        await inCase(`while it came to hold less ${what}`, {}, async (world, check) => {
          const { quantity, price } = world.sizes;
          await world.begin();
          await buy(world);
          if (what === 'cash') {
            const units = world.units(quantity) + 1;
            world.others.quote(world.symbol, { price, units }, undefined);
            await world.act(({ order }) => {
              order({ side: 'sell', quantity });
            });
            world.others.quote(world.symbol, undefined, undefined);
          }
          world.kill();
          const before = sent(world);
          const fields = what === 'units' ? { positions: {} } : { cash: 1 };
          const action = { kind: 'patch', fields } as const;
          world.do({ do: 'fault', fault: { stream: 'orders', type: 'positions', action } });
          await world.time.pass(MINUTE);
          const back = world.venue.now;
          world.start();
          for (let i = 0; i < 3; i += 1) await rest(world, 0.5);
          check(sent(world) === before, 'nothing is sent while holdings do not agree');
          check(alertAfter(world, back, /mismatch/) !== undefined, 'people are told');
        });
      }
      await inCase('while a trade was undone', {}, async (world, check) => {
        await world.begin();
        await buy(world);
        world.kill();
        const trade = world.venueLog.findLast(
          ({ message }) => (message as { readonly exec_type?: string }).exec_type === 'trade',
        )!.message as { readonly trade_id: number };
        world.do({ do: 'bust', trade_id: trade.trade_id });
        await world.time.pass(MINUTE);
        const before = sent(world);
        world.start();
        await world.time.pass(10_000);
        check(ofKind(world, 'order.corrected').length === 1, 'it is booked');
        await world.bar();
        await rest(world, 0.5);
        check(sent(world) === before + 1, 'it trades on');
      });
      await inCase('having lost its log', {}, async (world, check) => {
        await world.begin();
        await rest(world);
        world.kill();
        world.journal.lose();
        await world.time.pass(MINUTE);
        world.start();
        await world.time.pass(30_000);
        check(world.venue.openOrders('bot').length === 0, 'an order that nobody knows is canceled');
        check(alertsLike(world, /not known/).length > 0, 'people are told');
        world.tolerate('log');
      });
    },
  },
  {
    id: 'B13',
    title: 'Bursts of market data',
    articles: [DATA, 'RTS 7 9(3)(c)', ...GENERAL],
    stimulus:
      "1 to 1000 messages per second for 1 s, to 100 for 3 s, to 20 for 5 s, while the bot's own strategy trades.",
    expectation: 'No bar is lost or wrong; the bot acts on the newest.',
    exercises: "The bot's own strategy; trading/live-feed, trading/assembler",
    async play(inCase) {
      await inCase('the own strategy in bursts', { drive: 'own' }, async (world, check) => {
        const { price, quantity } = world.sizes;
        await world.begin();
        for (let i = 0; i < 60; i += 1) {
          const at = Math.round(price * 100 * (1 + 0.01 * Math.sin(i / 4))) / 100;
          const units = world.units(quantity) * 1000;
          const [bid, ask] = [at - 0.02, at + 0.02];
          for (const symbol of world.symbols) {
            world.others.quote(symbol, { price: bid, units }, { price: ask, units });
          }
          await world.bar(at);
          for (const [when, rate, seconds] of BURSTS) {
            if (i % 20 !== when) continue;
            for (let k = 0; k < rate * seconds; k += 1) {
              world.others.print(world.symbol, at);
              await world.time.pass(1000 / rate);
            }
          }
        }
        for (const symbol of world.symbols) world.others.quote(symbol, undefined, undefined);
        check(isReference(world), 'every bar is the one that the venue made');
        check(barsOfBot(world).length >= 55, 'none is missing');
      });
    },
  },
  {
    id: 'B14',
    title: 'Times that go backward, and ahead',
    articles: [DATA, '13(7)', ...GENERAL],
    stimulus: 'Bars come with times that have passed, and with times that are yet to come.',
    expectation: 'The time of the bot only goes on; people are told.',
    exercises:
      'trading/assembler, trading/feed Intake. Days are those of UTC, without summer time.',
    async play(inCase) {
      for (const [what, ms] of [
        ['backward', -30 * MINUTE],
        ['ahead', 30 * MINUTE],
        ['between two bars', 1],
      ] as const) {
        await inCase(what, {}, async (world, check) => {
          for (let i = 0, started = false; i < 35; i += 1) {
            if (!started) await world.begin();
            started = true;
            await world.bar();
          }
          world.data.garble = (_symbol, bars) =>
            bars.map((bar, at) => (at === 0 ? { ...bar, time: bar.time + ms, volume: 7 } : bar));
          await world.bar();
          world.data.garble = undefined;
          for (let i = 0; i < 3; i += 1) await world.bar();
          await world.time.pass(2 * MINUTE);
          const times = barsOfBot(world).map(({ time }) => time);
          check(
            times.every((time, at) => at === 0 || time > times[at - 1]!),
            'the time of the bot only goes on',
          );
          check(isReference(world), 'its bars are those that the venue made');
          check(alertsLike(world, /data\.refused/).length > 0, 'people are told');
        });
      }
    },
  },
  {
    id: 'B15',
    title: 'The drop copy shows a fill that the session did not',
    articles: [DATA, '17(3)'],
    stimulus: 'A fill is told by the drop copy alone.',
    expectation: 'The break is raised at once, and resolved.',
    notApplicable: () =>
      'The bot reads no drop copy: what no message told of an order it finds out by asking; see B03.',
  },
];

/** Messages per second, for so many seconds, at this bar of every twenty. */
const BURSTS = [
  [5, 1000, 1],
  [11, 100, 3],
  [17, 20, 5],
] as const;

/** What the session was told last of what its instrument is doing. */
function phaseOf(world: World): string {
  const terms = world.journal.events.findLast(({ kind }) => kind === 'venue.terms')?.payload;
  const rules = (terms as VenueRules | undefined) ?? world.journal.rules;
  return rules?.instruments[world.symbol]?.phase ?? 'unknown';
}

/** What the session was shown. */
function barsOfBot(world: World) {
  return world.journal.events
    .filter(({ kind }) => kind === 'data.bars')
    .map(({ payload }) => stepOf(JSON.stringify(payload)));
}

/** Whether each bar that the session was shown is one that the venue made. */
function isPartOfReference(world: World): boolean {
  return barsOfBot(world).every(({ time, bars }) =>
    Object.entries(bars).every(([symbol, bar]) => {
      const made = world.data.bars(symbol).find((one) => one.time === time);
      return JSON.stringify({ time, ...bar }) === JSON.stringify(made);
    }),
  );
}

/** Whether the session was shown the venue's own bars, from its first one on, up to the open one. */
function isReference(world: World): boolean {
  const shown = barsOfBot(world);
  const first = shown[0]?.time ?? Infinity;
  return world.symbols.every((symbol) => {
    const made = world.data.bars(symbol).filter(({ time }) => time >= first);
    const seen = shown.flatMap(({ time, bars }) =>
      bars[symbol] === undefined ? [] : [{ time, ...bars[symbol] }],
    );
    const least = made.length - 1;
    return (
      seen.length >= least &&
      seen.every((bar, at) => JSON.stringify(bar) === JSON.stringify(made[at]))
    );
  });
}
