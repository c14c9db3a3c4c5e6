import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';
import { checkPeriod } from './indicator.ts';

/** Declares `a / b`. */
export function ratio(a: Series, b: Series): Series {
  return declare(RATIO, [a, b], []).value;
}

/** Declares `a − b`. */
export function difference(a: Series, b: Series): Series {
  return declare(DIFFERENCE, [a, b], []).value;
}

/** Declares the natural logarithm of `input`. */
export function log(input: Series): Series {
  return declare(LOG, [input], []).value;
}

/** Declares `input`, delayed by `entries` entries, at least 1. */
export function lag(input: Series, entries: number): Series {
  return declare(LAG, [input], [entries]).value;
}

export const RATIO: IndicatorKind<[], void, 'value'> = {
  name: 'ratio',
  lines: ['value'],
  scale: 'own',
  start: () => {},
  warmUp: () => ofWindow(1),
  fill(_, [a, b], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = a[at]! / b[at]!;
  },
};

export const DIFFERENCE: IndicatorKind<[], void, 'value'> = {
  name: 'difference',
  lines: ['value'],
  scale: 'own',
  start: () => {},
  warmUp: () => ofWindow(1),
  fill(_, [a, b], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = a[at]! - b[at]!;
  },
};

export const LOG: IndicatorKind<[], void, 'value'> = {
  name: 'log',
  lines: ['value'],
  scale: 'own',
  start: () => {},
  warmUp: () => ofWindow(1),
  fill(_, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = Math.log(input[at]!);
  },
};

export const LAG: IndicatorKind<[entries: number], number, 'value'> = {
  name: 'lag',
  lines: ['value'],
  scale: 'input',
  start: (entries) => checkPeriod('entries', entries),
  warmUp: (entries) => ofWindow(entries + 1),
  fill(entries, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = at < entries ? NaN : input[at - entries]!;
  },
};
