/** Meanings of the phrases of a question. */
import type { Period } from './dates.ts';

/** A comparison with a value, such as `more than 5%`. */
export interface Condition {
  readonly op: '>' | '>=' | '<' | '<=' | '=' | 'between';
  readonly value: number;
  /** The upper bound of `between`. */
  readonly upTo?: number | undefined;
  readonly unit: 'percent' | 'money' | 'days' | 'months' | 'bars' | 'count' | undefined;
  /** Words of the comparison. */
  readonly said: string;
  /** The measure right before the comparison. */
  readonly measure?: string | undefined;
}

/** A change that a question assumes, such as doubled fees. */
export type Change =
  | { readonly of: 'fees' | 'slippage'; readonly factor: number }
  | { readonly of: 'fees' | 'slippage' | 'cash'; readonly value: number }
  | { readonly of: 'param'; readonly name: string; readonly value: number }
  /** Values of the numeric parameters, in their order. */
  | { readonly of: 'params'; readonly values: readonly number[] };

interface Values {
  readonly period: Period;
  readonly condition: Condition;
  readonly change: Change;
  readonly number: number;
  readonly nth: number;
  readonly version: number;
  readonly month: number;
  readonly weekday: number;
  readonly hour: number;
}

/** Kinds of meaning. `filler` means nothing. */
export type Slot =
  | keyof Values
  | 'measure'
  | 'subject'
  | 'outcome'
  | 'side'
  | 'symbol'
  | 'status'
  | 'edge'
  | 'stat'
  | 'rank'
  | 'by'
  | 'unit'
  | 'want'
  | 'per'
  | 'every'
  | 'streak'
  | 'benchmark'
  | 'compare'
  | 'run'
  | 'kind'
  | 'reason'
  | 'whatIf'
  | 'reference'
  | 'recovered'
  | 'conjunction'
  | 'filler';

export type ValueOf<S extends Slot> = S extends keyof Values ? Values[S] : string;

/** A phrase of a question, and what it means. */
export type Tag<S extends Slot = Slot> = S extends Slot
  ? { readonly slot: S; readonly value: ValueOf<S>; readonly text: string; readonly at: number }
  : never;

/** The meaning of a phrase without its place. */
export type Reading = { readonly slot: Slot; readonly value: unknown };

export interface Phrase {
  readonly pattern: RegExp;
  readonly read: (found: readonly (string | undefined)[]) => Reading;
}

/** Matches whole words. */
export function phrase(pattern: string, read: Phrase['read']): Phrase {
  return { pattern: new RegExp(`(?:${pattern})(?= |$)`, 'y'), read };
}
