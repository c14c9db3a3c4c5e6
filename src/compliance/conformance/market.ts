import { MINUTE } from '../../market/bar-time.ts';
import type { Exchange, ExchangeBar } from '../../trading/venues/market-data.ts';
import type { SimulatedVenue } from '../venue/session/simulated-venue.ts';

/** How the venue's instruments are traded in a case, unless it says otherwise. */
export const PRICE_UNIT = 0.01;
export const TICK = 1;

/** The other participants of the venue: they quote, and they trade with each other and with the bot. */
export interface Others {
  /** Replaces what they quoted before; a side without quantity has nothing. @param price currency */
  quote(symbol: string, bid: Quote | undefined, ask: Quote | undefined): void;
  /** Adds an order to what they quote. */
  rest(symbol: string, side: 'buy' | 'sell', quote: Quote): void;
  /** They trade a little with each other, at this price if nobody else is better. */
  print(symbol: string, price: number): void;
  /** One of them takes so many quantity units from the book, as far as they are there. */
  take(symbol: string, side: 'buy' | 'sell', price: number, units: number): void;
}

export interface Quote {
  readonly price: number;
  /** Quantity units of the venue. */
  readonly units: number;
}

export const OTHERS = ['maker', 'taker'] as const;

export function othersAt(venue: SimulatedVenue): Others {
  let count = 0;
  const quoted = new Map<string, string[]>();
  const place = (
    as: (typeof OTHERS)[number],
    symbol: string,
    side: 'buy' | 'sell',
    { price, units }: Quote,
    isAtOnce: boolean,
  ): string => {
    count += 1;
    const id = `${as}-${count}`;
    venue.at(venue.now, {
      do: 'place',
      as,
      client_order_id: id,
      instrument: symbol,
      side,
      order_type: 'limit',
      time_in_force: isAtOnce ? 'ioc' : 'gtc',
      quantity: units,
      price: Math.round(price / PRICE_UNIT),
    });
    return id;
  };
  return {
    quote(symbol, bid, ask) {
      for (const id of quoted.get(symbol) ?? []) {
        count += 1;
        venue.at(venue.now, {
          do: 'cancel',
          as: 'maker',
          client_order_id: `cancel-${count}`,
          orig_client_order_id: id,
        });
      }
      quoted.set(symbol, [
        ...(bid === undefined ? [] : [place('maker', symbol, 'buy', bid, false)]),
        ...(ask === undefined ? [] : [place('maker', symbol, 'sell', ask, false)]),
      ]);
    },
    rest(symbol, side, quote) {
      const ids = quoted.get(symbol) ?? [];
      quoted.set(symbol, [...ids, place('maker', symbol, side, quote, false)]);
    },
    print(symbol, price) {
      const one = { price, units: 1 };
      const id = place('taker', symbol, 'sell', one, false);
      place('maker', symbol, 'buy', one, true);
      count += 1;
      venue.at(venue.now, {
        do: 'cancel',
        as: 'taker',
        client_order_id: `cancel-${count}`,
        orig_client_order_id: id,
      });
    },
    take: (symbol, side, price, units) => void place('taker', symbol, side, { price, units }, true),
  };
}

/** The venue's service of bars, and what may go wrong with it. */
export interface BarService {
  readonly exchange: Exchange;
  /** What it streams now goes nowhere; what it is asked, it answers. */
  isMute: boolean;
  /** Nor does it answer. */
  isAway: boolean;
  /** Changes what the stream shows of an instrument's bars. */
  garble: ((symbol: string, bars: readonly ExchangeBar[]) => readonly ExchangeBar[]) | undefined;
  /** Whose bars are neither streamed nor told. */
  readonly frozen: Set<string>;
  /** The bars as they are. */
  bars(symbol: string): readonly ExchangeBar[];
  /** Begins the next bar without a trade, as exchanges do that nobody trades at. */
  tick(symbol: string): void;
  /** Shows what there is, once more. */
  show(symbol: string): void;
}

/** So many of the newest are streamed. */
const STREAMED = 3;

/** Bars of a minute, made of the trades that the venue publishes, as exchanges make them. */
export function barsOf(venue: SimulatedVenue, quantityUnit: number): BarService {
  const all = new Map<string, ExchangeBar[]>();
  const watching = new Map<string, PromiseWithResolvers<readonly ExchangeBar[]>>();
  const of = (symbol: string): ExchangeBar[] => {
    if (!all.has(symbol)) all.set(symbol, []);
    return all.get(symbol)!;
  };
  const show = (symbol: string): void => {
    if (service.isMute || service.isAway || service.frozen.has(symbol)) return;
    const watcher = watching.get(symbol);
    if (watcher === undefined) return;
    watching.delete(symbol);
    const newest = of(symbol).slice(-STREAMED);
    watcher.resolve(service.garble?.(symbol, newest) ?? newest);
  };
  const away = (): void => {
    if (service.isAway) throw new Error('no market data are to be had');
  };
  venue.subscribe('a', (message) => {
    if (message.type !== 'trade') return;
    const { instrument, time, price: units, quantity } = message;
    const bars = of(instrument);
    const begun = Math.floor(time / MINUTE) * MINUTE;
    const price = units * PRICE_UNIT;
    const volume = quantity * quantityUnit;
    const last = bars.at(-1);
    if (last?.time === begun) {
      bars[bars.length - 1] = {
        ...last,
        high: Math.max(last.high, price),
        low: Math.min(last.low, price),
        close: price,
        volume: last.volume + volume,
      };
    } else bars.push({ time: begun, open: price, high: price, low: price, close: price, volume });
    show(instrument);
  });
  const service: BarService = {
    isMute: false,
    isAway: false,
    garble: undefined,
    frozen: new Set(),
    bars: of,
    show,
    tick(symbol) {
      const bars = of(symbol);
      const last = bars.at(-1);
      if (last === undefined) return;
      const { close } = last;
      const time = Math.floor(venue.now / MINUTE) * MINUTE;
      bars.push({ time, open: close, high: close, low: close, close, volume: 0 });
      show(symbol);
    },
    exchange: {
      check: async () => {},
      watch(symbol) {
        const watcher = watching.get(symbol) ?? Promise.withResolvers();
        watching.set(symbol, watcher);
        return watcher.promise;
      },
      history: async (symbol, _timeframe, since) => {
        away();
        return service.frozen.has(symbol) ? [] : of(symbol).filter(({ time }) => time >= since);
      },
      time: async () => {
        away();
        return venue.now;
      },
      drop() {
        for (const watcher of watching.values()) watcher.reject(new Error('cut off'));
        watching.clear();
      },
      close: async () => {},
    },
  };
  return service;
}
