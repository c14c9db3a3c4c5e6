/** Interprets the steps of a case. */
import type { OrderRequest } from '../../engine/orders/order.ts';
import { Instrument } from '../../engine/instrument.ts';
import { allocateBars } from '../../market/bars.ts';
import { MINUTE } from '../../base/durations.ts';
import type { ExchangeCommand } from '../venue/exchange-command.ts';
import { idOf } from '../venue/listing.ts';
import type { Ask, ExchangeAction, Part, Step } from './case.ts';
import type { Check } from './expectations.ts';
import type { ActContext } from './exerciser.ts';
import { holds, markOf, measure, type Notes } from './measures.ts';
import { numberOf, quantityOf } from './numbers.ts';
import { isSet, PROBES } from './probes.ts';
import { ACCOUNT, type World } from './world.ts';

/** Ends a part early, after a check that has failed. */
class PartOver extends Error {}

export async function playPart(world: World, { begins, steps }: Part, check: Check): Promise<void> {
  const player = new Player(world, check);
  try {
    if (begins !== false) await world.begin();
    await player.play(steps);
  } catch (error) {
    if (!(error instanceof PartOver)) throw error;
  }
}

class Player {
  readonly #world: World;
  readonly #check: Check;
  readonly #notes: Notes = { marks: new Map(), denial: null, isRefused: false };

  constructor(world: World, check: Check) {
    this.#world = world;
    this.#check = check;
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#step(step);
  }

  async #step(step: Step): Promise<void> {
    const world = this.#world;
    if ('expect' in step && !('await' in step)) {
      this.#expect(step);
    } else if ('bars' in step) {
      for (let i = 0; i < step.bars; i += 1) {
        await world.bar(numberOf(world, step.price ?? 'price') * (1 + (step.drift ?? 0) * i));
      }
    } else if ('quietBars' in step) {
      for (let i = 0; i < step.quietBars; i += 1) await world.quietBar();
    } else if ('wait' in step) {
      await world.time.pass(step.wait);
    } else if ('act' in step) {
      await this.#act(step);
    } else if ('others' in step) {
      this.#others(step);
    } else if ('bursts' in step) {
      await this.#burst(step);
    } else if ('exchange' in step) {
      for (const action of step.exchange) this.#do(action);
    } else if ('session' in step) {
      this.#session(step.session);
    } else if ('server' in step) {
      this.#server(step.server);
    } else if ('permit' in step) {
      this.#permit(step);
    } else if ('mark' in step) {
      this.#notes.marks.set(step.mark, markOf(world));
    } else if ('repeat' in step) {
      for (let i = 0; i < step.most && !holds(world, step.until, this.#notes); i += 1) {
        await this.play(step.repeat);
      }
    } else if ('await' in step) {
      const isSo = (): boolean => holds(world, step.await, this.#notes);
      const isInTime = await world.time.until(isSo, step.withinMs);
      if (step.expect !== undefined) this.#check(isInTime, step.expect);
    } else if ('requires' in step) {
      if (!isSet(world, step.requires, this.#check)) throw new PartOver();
    } else if ('tolerate' in step) {
      world.tolerated.add(step.tolerate);
    } else if (!(await PROBES[step.probe](world, this.#check))) {
      throw new PartOver();
    }
  }

  #expect(step: Extract<Step, { readonly expect: string; readonly that: unknown }>): void {
    const value = measure(this.#world, step.that, this.#notes);
    const isSo = holds(this.#world, step, this.#notes);
    this.#check(isSo, step.expect, isSo ? undefined : (JSON.stringify(value) ?? 'nothing'));
  }

  async #act(step: Extract<Step, { readonly act: unknown }>): Promise<void> {
    const world = this.#world;
    const what = (context: ActContext): void => {
      for (const one of step.during ?? []) void this.#step(one);
      if (step.cancel === true) {
        for (const order of context.broker.working()) context.broker.cancel(order);
      }
      for (const ask of step.act) this.#ask(ask, context);
    };
    if (step.bar === undefined) {
      await world.act(what, step.price && numberOf(world, step.price));
    } else {
      world.exerciser.schedule(what);
      if (step.bar === 'quiet') await world.quietBar();
    }
  }

  #ask(ask: Ask, { broker, instruments }: ActContext): void {
    const world = this.#world;
    const { instrument = 0, quantity, limit, count = 1, ...request } = ask;
    const foreign = instrument === 'foreign';
    const of = foreign ? new Instrument('FOREIGN', 0, allocateBars(0)) : instruments[instrument]!;
    const wanted: OrderRequest = {
      ...(request as Omit<OrderRequest, 'instrument' | 'quantity'>),
      instrument: of,
      quantity: numberOf(world, quantity),
      ...(limit !== undefined && { limit: numberOf(world, limit) }),
    };
    const times = Math.min(60, Math.floor(numberOf(world, count)));
    try {
      for (let i = 0; i < times; i += 1) {
        this.#notes.denial = broker.order(wanted).reason ?? null;
      }
    } catch (error) {
      if (!foreign) throw error;
      this.#notes.isRefused = true;
    }
  }

  #others(step: Extract<Step, { readonly others: unknown }>): void {
    const world = this.#world;
    const { others, symbol } = world;
    if (step.others === 'none') return others.quote(symbol, undefined, undefined);
    const price = numberOf(world, step.price);
    const units = world.units(numberOf(world, step.quantity)) + (step.more ?? 0);
    if (step.others === 'rest') return others.rest(symbol, step.side, { price, units });
    if (step.others === 'take') return others.take(symbol, step.side, { price, units });
    const quote = { price, units };
    if (step.side === 'buy') others.quote(symbol, quote, undefined);
    else others.quote(symbol, undefined, quote);
  }

  /** Plays bars at a price that moves in waves, with many trades at some of them. */
  async #burst({ bursts, rates }: Extract<Step, { readonly bursts: number }>): Promise<void> {
    const { sizes, symbols, others, time } = this.#world;
    const world = this.#world;
    for (let i = 0; i < bursts; i += 1) {
      const at = Math.round(sizes.price * 100 * (1 + 0.01 * Math.sin(i / 4))) / 100;
      const units = world.units(sizes.quantity) * 1000;
      for (const symbol of symbols) {
        const [bid, ask] = [at - 0.02, at + 0.02].map((price) => ({ price, units }));
        others.quote(symbol, bid, ask);
      }
      await world.bar(at);
      for (const [bar, perSecond, seconds] of rates) {
        if (i % 20 !== bar) continue;
        for (let k = 0; k < perSecond * seconds; k += 1) {
          others.print(world.symbol, at);
          await time.pass(1000 / perSecond);
        }
      }
    }
    for (const symbol of symbols) others.quote(symbol, undefined, undefined);
  }

  #do(action: ExchangeAction): void {
    const { exchange, now } = this.#world;
    for (const one of this.#commandsOf(action, now)) exchange.do(one);
  }

  #commandsOf(action: ExchangeAction, now: number): readonly ExchangeCommand[] {
    const world = this.#world;
    const { exchange } = world;
    const symbol = world.listed();
    switch (action.do) {
      case 'set_terms': {
        const terms = Object.entries(action.terms).map(([name, num]) => [
          name,
          numberOf(world, num),
        ]);
        return [{ do: 'set_terms', symbol, terms: Object.fromEntries(terms) }];
      }
      case 'delist':
        return [{ do: 'delist', symbol }];
      case 'end_orders':
        return exchange.openOrders(ACCOUNT).map(({ clientOrderId: client_order_id }) => {
          return { do: 'end_order', as: ACCOUNT, client_order_id, status: action.status };
        });
      case 'undo_trade':
      case 'correct_trade': {
        const { id: trade_id, price, quantity } = exchange.lastTradeOf(ACCOUNT)!;
        const isUndone = action.do === 'undo_trade';
        const revised = isUndone ? { price, quantity: 0 } : { price: price - 100, quantity };
        return [{ do: 'revise_trade', trade_id, ...revised }];
      }
      case 'withdraw': {
        const [base, quote] = symbol.split('/') as [string, string];
        const asset = action.what === 'units' ? base : quote;
        return [
          { do: 'withdraw', as: ACCOUNT, asset, amount: exchange.balances(ACCOUNT).get(asset)! },
        ];
      }
      case 'freeze': {
        const id = idOf(symbol);
        const kline = { on: 'kline', action: { kind: 'drop' }, where: { s: id } } as const;
        const empty = { kind: 'status', status: 200, body: [] } as const;
        const query = { on: 'GET /klines', action: empty, where: { symbol: id } } as const;
        return [kline, query].map((fault) => ({ do: 'fault', fault }));
      }
      case 'misdate': {
        const next = (Math.floor(now / MINUTE) + 1) * MINUTE;
        const fields = { k: { t: next + action.ms, v: '7' } };
        const patch = { kind: 'patch', fields } as const;
        return [{ do: 'fault', fault: { on: 'kline', count: 1, action: patch } }];
      }
      case 'fault': {
        const { do: _, lasting, ...fault } = action;
        const time = lasting === undefined ? {} : { time: [now, now + lasting] as const };
        return [{ do: 'fault', fault: { ...fault, ...time } }];
      }
      case 'clear_faults':
      case 'cut':
      case 'network':
      case 'phase':
      case 'throttle':
        return [action];
      default:
        return action satisfies never;
    }
  }

  #session(what: Extract<Step, { readonly session: unknown }>['session']): void {
    if (what === 'start') this.#world.start();
    else if (what === 'kill') this.#world.kill();
    else if (what === 'terminate') this.#world.terminate();
    else this.#world.journal.lose();
  }

  #server(what: 'halt' | 'lost' | 'back'): void {
    const { server } = this.#world;
    if (what === 'halt') server.command('halt');
    else server.isReachable = what === 'back';
  }

  #permit(step: Extract<Step, { readonly permit: string }>): void {
    const world = this.#world;
    world.server.permit({
      override_id: step.permit,
      symbol: world.symbol,
      side: step.side,
      max_quantity: quantityOf(world, step.quantity),
      worst_price: world.sizes.below,
      controls: ['max_order_qty', 'max_order_value', 'max_position_pct'],
      expires_at: world.now + step.lasting,
    });
  }
}
