/** Typed queries, which are all that the analyst computes from the files of a run. */
import type { Change, Condition } from './tags.ts';
import type { Period } from './dates.ts';

export type SpanUnit = 'day' | 'week' | 'month' | 'quarter' | 'year';
export type ItemKind = 'trade' | SpanUnit | 'drawdown' | 'streak';

/** A figure of an item. `profit` is money; the return of a drawdown is its depth. */
export type Attribute =
  | 'profit'
  | 'return'
  | 'duration'
  | 'months'
  | 'bars'
  | 'fees'
  | 'quantity'
  | 'entry_price'
  | 'exit_price'
  | 'entry'
  | 'exit'
  | 'count';

/** The items that a question selects. */
export interface Selection {
  readonly of: ItemKind;
  /** The items of a streak. */
  readonly in?: 'trade' | SpanUnit | undefined;
  readonly outcome?: string | undefined;
  readonly side?: string | undefined;
  readonly symbol?: string | undefined;
  /** A key of `EXITS`: how the trades ended. */
  readonly reason?: string | undefined;
  readonly status: 'closed' | 'open';
  /** The time of a trade by which `period`, `weekday`, `month` and `hour` select. */
  readonly edge?: 'entry' | 'exit' | undefined;
  readonly period?: Period | undefined;
  readonly weekday?: number | undefined;
  readonly month?: number | undefined;
  readonly hour?: number | undefined;
  readonly conditions: readonly { readonly by: Attribute; readonly is: Condition }[];
  readonly sort?: { readonly by: Attribute; readonly descending: boolean } | undefined;
  readonly take?: { readonly from: number; readonly count: number } | undefined;
}

export type Stat = 'mean' | 'median' | 'sum';
export type GroupUnit = SpanUnit | 'weekday' | 'hour' | 'reason' | 'symbol' | 'side';

/** The part of an answer that a question asks for. */
export type Show =
  | { readonly as: 'list' | 'count' | 'share' }
  | { readonly as: 'stat'; readonly stat: Stat; readonly by?: Attribute | undefined }
  /** An attribute of the one item. */
  | { readonly as: 'value'; readonly by: Attribute }
  /** A figure of a set of trades, such as `win_rate`. */
  | { readonly as: 'figure'; readonly name: string };

/** The run that a question names; by default, the session that runs, or the newest run. */
export interface RunWanted {
  readonly id?: string | undefined;
  readonly version?: number | undefined;
  readonly kind?: 'backtest' | 'session' | undefined;
}

export type Query = { readonly run: RunWanted } & (
  | {
      readonly kind: 'figure';
      readonly measure: string;
      readonly period?: Period | undefined;
      /** Spans of which each has its own figure. */
      readonly by?: SpanUnit | undefined;
      readonly of: 'run' | 'benchmark' | 'both';
      /** Whether the question names the benchmark, or buying and holding. */
      readonly benchmark?: string | undefined;
      /** A threshold that the question asks about. */
      readonly than?: Condition | undefined;
    }
  | {
      readonly kind: 'items';
      readonly selection: Selection;
      readonly show: Show;
      readonly group?: GroupUnit | undefined;
      /** Whether a question asks for the mean per group, too. */
      readonly isMeanOfGroups?: boolean;
    }
  /** The results of each weekday or hour. */
  | {
      readonly kind: 'clock';
      readonly unit: 'weekday' | 'hour';
      readonly period?: Period | undefined;
    }
  | { readonly kind: 'compare'; readonly versions: readonly number[] }
  | {
      readonly kind: 'what if';
      readonly changes: readonly Change[];
      readonly measure?: string | undefined;
      readonly period?: Period | undefined;
    }
);
