/** A case of the catalogue as data: steps that are played, and expectations that are checked. */
import type { OrderEvent } from '../../engine/journal.ts';
import type { OrderRequest } from '../../engine/orders/order.ts';
import type { ExchangeCommand } from '../venue/exchange-command.ts';
import type { Fault } from '../venue/faults.ts';
import type { WorldOptions } from './world.ts';

export interface Case {
  readonly id: string;
  readonly title: string;
  /** Citations as `article` resolves them. */
  readonly articles: readonly string[];
  readonly stimulus: string;
  readonly expectation: string;
  /** Modules of `src` that it tests in addition to `EXERCISED`. */
  readonly exercises?: readonly string[];
  /** Behavior that the test does not cover. */
  readonly scope?: string;
  /** Why the case applies to no bot of this engine, or to no bot with one instrument. */
  readonly notApplicable?: string | { readonly oneInstrument: string };
  /** Empty for a case that applies to no bot. */
  readonly parts: readonly Part[];
}

/** Modules of `src` that every case tests. */
export const EXERCISED = [
  'engine/engine.ts',
  'trading/host/pod/trade.ts',
  'trading/live-feed.ts',
  'trading/trading-session.ts',
  'trading/venues/ccxt-client.ts',
  'trading/venues/exchange-venue.ts',
  'trading/venues/market-data.ts',
  'trading/venues/venue-reports.ts',
] as const;

/** Part of a case. Each part runs in its own `World`. */
export interface Part extends Omit<WorldOptions, 'seed'> {
  readonly name: string;
  /** How the session ends; by default it continues. */
  readonly ends?: 'halted' | 'unverified';
  /** Whether the session starts, with three bars, before the first step; true by default. */
  readonly begins?: false;
  readonly steps: readonly Step[];
}

/** A number that depends on the limits of the bot; `numbers.ts` defines each. */
export type NumberName =
  | 'price'
  | 'quantity'
  | 'half'
  | 'unit'
  | 'below'
  | 'above'
  | 'bid value'
  | 'offer value'
  | 'cash'
  | 'price units'
  | 'collar'
  | 'beyond collar'
  | 'jump'
  | 'volume'
  | 'beyond volume'
  | 'payable'
  | 'burst';

export type Num =
  | number
  | NumberName
  | { readonly of: NumberName; readonly times?: number; readonly plus?: Num };

/** An order of the bot. */
export interface Ask extends Omit<
  OrderRequest,
  'instrument' | 'quantity' | 'limit' | 'side' | 'type'
> {
  readonly side: 'buy' | 'sell';
  readonly type?: OrderRequest['type'];
  readonly quantity: Num;
  readonly limit?: Num;
  /** Index of the instrument, 0 by default; `foreign` is an instrument outside the universe. */
  readonly instrument?: number | 'foreign';
  /** Number of equal orders. */
  readonly count?: Num;
}

/** An action of the exchange on the first symbol of the bot; numbers may depend on the bot. */
export type ExchangeAction =
  | Extract<
      ExchangeCommand,
      { readonly do: 'phase' | 'cut' | 'network' | 'throttle' | 'clear_faults' }
    >
  | { readonly do: 'set_terms'; readonly terms: Readonly<Record<string, Num>> }
  | { readonly do: 'delist' }
  /** Ends all open orders of the bot. */
  | { readonly do: 'end_orders'; readonly status: 'canceled' | 'expired' }
  /** Undoes the last trade, or lowers its price by one currency unit. */
  | { readonly do: 'undo_trade' | 'correct_trade' }
  /** Withdraws all units of the first instrument, or all cash, from the account of the bot. */
  | { readonly do: 'withdraw'; readonly what: 'units' | 'cash' }
  /** Stops the bars of the first instrument. */
  | { readonly do: 'freeze' }
  /** Shifts the time of the next streamed bar by `ms`. */
  | { readonly do: 'misdate'; readonly ms: number }
  /** @param lasting duration, ms. */
  | ({ readonly do: 'fault'; readonly lasting?: number } & Fault);

export type Step =
  /** Plays bars that end with a trade at `price`, which changes by the share `drift` per bar. */
  | { readonly bars: number; readonly price?: Num; readonly drift?: number }
  | { readonly quietBars: number }
  /** Waits for this time, ms. */
  | { readonly wait: number }
  /** Lets the bot act at the end of a bar; `during` runs while its orders are in flight. */
  | {
      readonly act: readonly Ask[];
      /** Cancels all working orders first. */
      readonly cancel?: true;
      /** `quiet`: the bar ends without a trade. `none`: the bot acts at the next bar received. */
      readonly bar?: 'quiet' | 'none';
      readonly price?: Num;
      readonly during?: readonly Step[];
    }
  /** Lets other participants quote on one side, add a quote, or trade with the book. */
  | {
      readonly others: 'quote' | 'rest' | 'take';
      readonly side: 'buy' | 'sell';
      readonly price: Num;
      readonly quantity: Num;
      /** Additional quantity units. */
      readonly more?: number;
    }
  | { readonly others: 'none' }
  /** Plays this number of bars, some of them with many trades between participants. */
  | {
      readonly bursts: number;
      readonly rates: readonly (readonly [bar: number, perSecond: number, seconds: number])[];
    }
  | { readonly exchange: readonly ExchangeAction[] }
  | { readonly session: 'start' | 'kill' | 'terminate' | 'lose log' }
  | { readonly server: 'halt' | 'lost' | 'back' }
  /** Permits one order beyond the volume limit, for `lasting` ms. */
  | {
      readonly permit: string;
      readonly side: 'buy' | 'sell';
      readonly quantity: Num;
      readonly lasting: number;
    }
  /** Names the present moment, for `since`. */
  | { readonly mark: string }
  /** Repeats steps, at most `most` times, until a condition holds. */
  | { readonly repeat: readonly Step[]; readonly most: number; readonly until: Condition }
  /** Waits until a condition holds; fails with `expect` if it does not hold in time. */
  | { readonly await: Condition; readonly withinMs: number; readonly expect?: string }
  /** Fails and ends the part if the bot does not set a limit. */
  | { readonly requires: Limit }
  | { readonly tolerate: 'log' | 'holdings' }
  /** A series of orders that is computed from a limit; see `PROBES`. */
  | { readonly probe: Probe }
  | ({ readonly expect: string } & Condition);

export type Limit = 'volume' | 'value' | 'price' | 'messages' | 'position';
export type Probe = Limit | 'repeated execution';

export interface Condition {
  readonly that: Measure;
  readonly is: Matcher;
}

/** A measurement; see `MEASURES`. `since` names a mark. */
export type Measure =
  /** Number of requests that the exchange received from the bot. */
  | {
      readonly of: 'requests';
      readonly call: string;
      readonly since?: string;
      readonly side?: 'BUY' | 'SELL';
    }
  /** Number of requests including those that were lost. */
  | { readonly of: 'attempts'; readonly call: string; readonly since?: string }
  /** Time by which the first request of a call precedes that of another one, ms. */
  | { readonly of: 'lead'; readonly call: string; readonly before: string; readonly since?: string }
  /** Time from a mark to the last request of a call, ms. */
  | { readonly of: 'last request'; readonly call: string; readonly since: string }
  | {
      readonly of: 'order';
      readonly number: number;
      readonly field: 'status' | 'quantity' | 'price' | 'side';
    }
  /** Reasons or number of order events. */
  | {
      readonly of: 'reasons' | 'events';
      readonly kind: OrderEvent['kind'];
      readonly since?: string;
    }
  /** Time from a mark, or from the start of the alert's minute, to the first alert, ms; null without one. */
  | {
      readonly of: 'alert';
      readonly like: string;
      readonly since: string;
      readonly fromMinute?: true;
    }
  | { readonly of: 'alerts'; readonly like: string }
  | { readonly of: 'time'; readonly since: string }
  /** Whether the session and the exchange have equal bars: all of them, or the received ones. */
  | {
      readonly of: 'bars';
      readonly are: 'complete' | 'genuine' | 'ascending' | 'at price' | 'positive';
    }
  /** Number of bars that the strategy received. */
  | { readonly of: 'bar count'; readonly since?: string }
  /** Whether the orders since a mark are those that the collar over a period permits. */
  | { readonly of: 'follows market'; readonly since: string }
  | { readonly of: PlainMeasure };

export type PlainMeasure =
  | 'bars received'
  | 'cash'
  | 'client ids'
  | 'end'
  | 'equity'
  | 'fills received'
  | 'holding'
  | 'open orders'
  | 'ordered value'
  | 'orders are for second symbol'
  | 'pending cancel'
  | 'phase'
  | 'position'
  | 'refusal'
  | 'spent'
  | 'streaming'
  | 'symbol in last bar'
  | 'unplaced'
  | 'unverified orders'
  | 'working fill'
  | 'working orders'
  | 'working quantity'
  | 'worst fill';

export type Matcher =
  | string
  | boolean
  | number
  | null
  | readonly (string | number)[]
  | { readonly near: Num; readonly within?: Num }
  | { readonly least: Num }
  | { readonly most: Num }
  | { readonly like: string };
