import { PACKAGE_VERSION } from '../version.ts';
import { CoarseClock } from './clock.ts';
import { checkCopies, engineOf, stateOf, type Series } from './declared-series.ts';

/** Evaluates a condition; a strategy cannot reach it. */
export interface Test {
  /** Whether the condition holds at the current step, which has the number `step`. */
  isTrue(step: number): boolean;
  /**
   * Writes 1 or 0 for each of `count` steps from this one on. The run must have one instrument, so
   * that each step has a bar of it.
   */
  mark(marks: Uint8Array, step: number, count: number): void;
}

/** Key of the version of the package that made a condition; registered, so that all copies share it. */
const VERSION: unique symbol = Symbol.for('service-local.condition') as never;

type Crossings = 'crossing' | 'crossingAbove' | 'crossingBelow';
type Comparison = Crossings | 'above' | 'below';

/**
 * A condition on the steps at which a strategy is called; see `Strategy.wakeOn`. It is data, because
 * the engine that evaluates it may be another copy of the package.
 */
export type Condition = Readonly<{ [VERSION]: string }> &
  (
    | { readonly rule: Comparison; readonly a: Series; readonly b: Series | number }
    | { readonly rule: 'every'; readonly steps: number }
    | { readonly rule: 'any' | 'all'; readonly conditions: readonly Condition[] }
  );

/**
 * Returns the test that evaluates a condition.
 *
 * @throws TypeError if it is not a condition; Error if another version of the package made it.
 */
export function testOf(condition: Condition): Test {
  const version = (condition as Partial<Condition> | null)?.[VERSION];
  if (version === undefined) {
    throw new TypeError('wakeOn must return a condition, such as crossing(a, b)');
  }
  checkCopies(version, PACKAGE_VERSION);
  switch (condition.rule) {
    case 'every':
      return new Interval(condition.steps);
    case 'any':
    case 'all':
      return new Combination(condition.conditions.map(testOf), condition.rule === 'any');
    case 'above':
    case 'below':
      return new Order(condition.a, condition.b, condition.rule);
    case 'crossing':
    case 'crossingAbove':
    case 'crossingBelow':
    default:
      return new Crossing(condition.a, condition.b, condition.rule);
  }
}

/** True at a step at which `a` crosses `b` in either direction; see {@link crossedAbove}. */
export function crossing(a: Series, b: Series | number): Condition {
  return compare('crossing', a, b);
}

/** True at a step at which `a` crosses above `b`; see {@link crossedAbove}. */
export function crossingAbove(a: Series, b: Series | number): Condition {
  return compare('crossingAbove', a, b);
}

/** True at a step at which `a` crosses below `b`; see {@link crossedBelow}. */
export function crossingBelow(a: Series, b: Series | number): Condition {
  return compare('crossingBelow', a, b);
}

/** True while `a` is above `b`; false while either is NaN. */
export function above(a: Series, b: Series | number): Condition {
  return compare('above', a, b);
}

/** True while `a` is below `b`; false while either is NaN. */
export function below(a: Series, b: Series | number): Condition {
  return compare('below', a, b);
}

/**
 * True at the first step of the run and at every `steps`-th step after it.
 *
 * @throws RangeError unless `steps` is a whole number of at least 1.
 */
export function every(steps: number): Condition {
  if (!Number.isSafeInteger(steps) || steps < 1) {
    throw new RangeError(`every: steps must be a whole number of at least 1, not ${steps}`);
  }
  return Object.freeze({ [VERSION]: PACKAGE_VERSION, rule: 'every', steps });
}

/** True while at least one of the conditions is true. */
export function any(...conditions: readonly [Condition, ...Condition[]]): Condition {
  return Object.freeze({
    [VERSION]: PACKAGE_VERSION,
    rule: 'any',
    conditions: Object.freeze(conditions),
  });
}

/** True while all conditions are true. */
export function all(...conditions: readonly [Condition, ...Condition[]]): Condition {
  return Object.freeze({
    [VERSION]: PACKAGE_VERSION,
    rule: 'all',
    conditions: Object.freeze(conditions),
  });
}

/** A condition object is always true, so one in `onBar` would be a mistake. */
function compare(rule: Comparison, a: Series, b: Series | number): Condition {
  if (engineOf(a).isClosed()) {
    throw new Error(
      'conditions belong in wakeOn(); in the run, compare values or use crossedAbove()',
    );
  }
  if (typeof b !== 'number') engineOf(b);
  return Object.freeze({ [VERSION]: PACKAGE_VERSION, rule, a, b });
}

/** Whether the current step took `a` above `b`: it is above, and was not at the step before. */
export function crossedAbove(a: Series, b: Series | number): boolean {
  return typeof b === 'number'
    ? a.value > b && a.previous <= b
    : a.value > b.value && a.previous <= b.previous;
}

/** Whether the current step took `a` below `b`: it is below, and was not at the step before. */
export function crossedBelow(a: Series, b: Series | number): boolean {
  return typeof b === 'number'
    ? a.value < b && a.previous >= b
    : a.value < b.value && a.previous >= b.previous;
}

/** Values at the indices `from + step × stride`, so that one loop reads all series and constant numbers. */
interface Operand {
  readonly column: Float64Array;
  readonly from: number;
  readonly stride: 0 | 1;
}

/** The values at the step before `step`, at index `from`, and at `count` steps from `step` on. */
function operandOf(operand: Series | number, step: number, count: number): Operand {
  if (typeof operand === 'number') {
    return { column: new Float64Array([operand]), from: 0, stride: 0 };
  }
  const { clock, column } = stateOf(operand);
  if (!(clock instanceof CoarseClock)) return { column, from: clock.first + step - 1, stride: 1 };
  const entries = clock.entriesAt(step - 1, count + 1);
  const values = Float64Array.from(entries, (entry) => (entry < 0 ? Number.NaN : column[entry]!));
  return { column: values, from: 0, stride: 1 };
}

class Crossing implements Test {
  readonly #a: Series;
  readonly #b: Series | number;
  readonly #isAbove: boolean;
  readonly #isBelow: boolean;

  constructor(a: Series, b: Series | number, rule: Crossings) {
    this.#a = a;
    this.#b = b;
    this.#isAbove = rule !== 'crossingBelow';
    this.#isBelow = rule !== 'crossingAbove';
  }

  isTrue(): boolean {
    return (
      (this.#isAbove && crossedAbove(this.#a, this.#b)) ||
      (this.#isBelow && crossedBelow(this.#a, this.#b))
    );
  }

  mark(marks: Uint8Array, step: number, count: number): void {
    const { column: as, from: fromA } = operandOf(this.#a, step, count);
    const { column: bs, from: fromB, stride } = operandOf(this.#b, step, count);
    const isAbove = this.#isAbove;
    const isBelow = this.#isBelow;
    marks.fill(0, 0, count);
    // Most entries are on the same side as the one before; for these, two comparisons suffice.
    let side = fromA < 0 ? UNKNOWN : sideOf(as[fromA]!, bs[fromB]!);
    for (let at = 1; at <= count; at += 1) {
      const a = as[fromA + at]!;
      const b = bs[fromB + at * stride]!;
      if (a > b) {
        if (side === ABOVE) continue;
        if (isAbove && side !== UNKNOWN) marks[at - 1] = 1;
        side = ABOVE;
      } else if (a < b) {
        if (side === BELOW) continue;
        if (isBelow && side !== UNKNOWN) marks[at - 1] = 1;
        side = BELOW;
      } else side = sideOf(a, b);
    }
  }
}

/** Position of a value relative to another one; unknown if either is missing. */
const UNKNOWN = 0;
const ABOVE = 1;
const BELOW = 2;
const LEVEL = 3;

function sideOf(a: number, b: number): number {
  if (a > b) return ABOVE;
  if (a < b) return BELOW;
  return a === b ? LEVEL : UNKNOWN;
}

class Order implements Test {
  readonly #a: Series;
  readonly #b: Series | number;
  readonly #isAbove: boolean;

  constructor(a: Series, b: Series | number, direction: 'above' | 'below') {
    this.#a = a;
    this.#b = b;
    this.#isAbove = direction === 'above';
  }

  isTrue(): boolean {
    const a = this.#a.value;
    const b = typeof this.#b === 'number' ? this.#b : this.#b.value;
    return this.#isAbove ? a > b : a < b;
  }

  mark(marks: Uint8Array, step: number, count: number): void {
    const { column: as, from: fromA } = operandOf(this.#a, step, count);
    const { column: bs, from: fromB, stride } = operandOf(this.#b, step, count);
    const isAbove = this.#isAbove;
    for (let at = 1; at <= count; at += 1) {
      const a = as[fromA + at]!;
      const b = bs[fromB + at * stride]!;
      marks[at - 1] = (isAbove ? a > b : a < b) ? 1 : 0;
    }
  }
}

class Interval implements Test {
  readonly #steps: number;

  constructor(steps: number) {
    this.#steps = steps;
  }

  isTrue(step: number): boolean {
    return step % this.#steps === 0;
  }

  mark(marks: Uint8Array, from: number, count: number): void {
    for (let at = 0; at < count; at += 1) marks[at] = (from + at) % this.#steps === 0 ? 1 : 0;
  }
}

class Combination implements Test {
  readonly #tests: readonly Test[];
  readonly #isAny: boolean;
  #other = new Uint8Array(0);

  constructor(tests: readonly Test[], isAny: boolean) {
    this.#tests = tests;
    this.#isAny = isAny;
  }

  isTrue(step: number): boolean {
    const tests = this.#tests;
    return this.#isAny
      ? tests.some((test) => test.isTrue(step))
      : tests.every((test) => test.isTrue(step));
  }

  mark(marks: Uint8Array, from: number, count: number): void {
    const [first, ...others] = this.#tests;
    first!.mark(marks, from, count);
    if (this.#other.length < count) this.#other = new Uint8Array(count);
    const other = this.#other;
    for (const test of others) {
      test.mark(other, from, count);
      if (this.#isAny) for (let at = 0; at < count; at += 1) marks[at]! |= other[at]!;
      else for (let at = 0; at < count; at += 1) marks[at]! &= other[at]!;
    }
  }
}
