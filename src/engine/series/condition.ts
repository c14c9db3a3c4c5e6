import { PACKAGE_VERSION } from '../version.ts';
import { CoarseClock } from './clock.ts';
import { checkCopies, engineOf, stateOf, type Series } from './declared-series.ts';

/** Evaluates a condition; a strategy cannot reach it. */
export abstract class Test {
  /** Memory of the marks, and the same as 64-bit words of eight marks each. */
  #marks = new Uint8Array(0);
  #eights = new Float64Array(0);

  /** Whether the condition holds at the current step, which has the number `step`. */
  abstract isTrue(step: number): boolean;

  /**
   * Writes 1 or 0 for each of `count` steps from this one on. The run must have one instrument, so
   * that each step has a bar of it.
   */
  abstract mark(marks: Uint8Array, step: number, count: number): void;

  /**
   * Writes the numbers of the steps that `mark` would mark with 1 into `due`, ascending.
   *
   * @returns their count.
   */
  list(due: Int32Array, step: number, count: number): number {
    if (this.#marks.length < count) {
      this.#eights = new Float64Array(Math.ceil(count / 8));
      this.#marks = new Uint8Array(this.#eights.buffer);
    }
    const marks = this.#marks;
    const eights = this.#eights;
    this.mark(marks, step, count);
    let listed = 0;
    for (let at = 0; at < count; at += 1) {
      if ((at & 7) === 0 && eights[at >> 3] === 0) at += 7;
      else if (marks[at] === 1) {
        due[listed] = step + at;
        listed += 1;
      }
    }
    return listed;
  }
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

/** The values of a series or a constant number at a number of steps, and at the step before them. */
interface Operand {
  /** NaN if there is none. */
  readonly before: number;
  readonly values: Float64Array;
}

function operandOf(operand: Series | number, step: number, count: number): Operand {
  if (typeof operand === 'number') {
    return { before: operand, values: new Float64Array(count).fill(operand) };
  }
  const { clock, column } = stateOf(operand);
  if (!(clock instanceof CoarseClock)) {
    const from = clock.first + step;
    return { before: column[from - 1] ?? Number.NaN, values: column.subarray(from, from + count) };
  }
  const entries = clock.entriesAt(step - 1, count + 1);
  const values = Float64Array.from(entries, (entry) => (entry < 0 ? Number.NaN : column[entry]!));
  return { before: values[0]!, values: values.subarray(1) };
}

class Crossing extends Test {
  readonly #a: Series;
  readonly #b: Series | number;
  readonly #isAbove: boolean;
  readonly #isBelow: boolean;

  constructor(a: Series, b: Series | number, rule: Crossings) {
    super();
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
    const due = new Int32Array(count);
    const listed = this.list(due, step, count);
    marks.fill(0, 0, count);
    for (let place = 0; place < listed; place += 1) marks[due[place]! - step] = 1;
  }

  override list(due: Int32Array, step: number, count: number): number {
    const { before: beforeA, values: as } = operandOf(this.#a, step, count);
    const { before: beforeB, values: bs } = operandOf(this.#b, step, count);
    let side = sideOf(beforeA, beforeB);
    let listed = 0;
    for (let at = 0; at < count; at += 1) {
      // Most entries are on the same side as the one before.
      if (side === ABOVE) while (at < count && as[at]! > bs[at]!) at += 1;
      else if (side === BELOW) while (at < count && as[at]! < bs[at]!) at += 1;
      if (at === count) break;
      const last = side;
      side = sideOf(as[at]!, bs[at]!);
      const isCrossed = side === ABOVE ? this.#isAbove : side === BELOW && this.#isBelow;
      if (last !== UNKNOWN && isCrossed) due[listed++] = step + at;
    }
    return listed;
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

class Order extends Test {
  readonly #a: Series;
  readonly #b: Series | number;
  readonly #isAbove: boolean;

  constructor(a: Series, b: Series | number, direction: 'above' | 'below') {
    super();
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
    const { values: as } = operandOf(this.#a, step, count);
    const { values: bs } = operandOf(this.#b, step, count);
    const isAbove = this.#isAbove;
    for (let at = 0; at < count; at += 1) {
      marks[at] = (isAbove ? as[at]! > bs[at]! : as[at]! < bs[at]!) ? 1 : 0;
    }
  }
}

class Interval extends Test {
  readonly #steps: number;

  constructor(steps: number) {
    super();
    this.#steps = steps;
  }

  isTrue(step: number): boolean {
    return step % this.#steps === 0;
  }

  mark(marks: Uint8Array, from: number, count: number): void {
    for (let at = 0; at < count; at += 1) marks[at] = (from + at) % this.#steps === 0 ? 1 : 0;
  }
}

class Combination extends Test {
  readonly #tests: readonly Test[];
  readonly #isAny: boolean;
  #other = new Uint8Array(0);

  constructor(tests: readonly Test[], isAny: boolean) {
    super();
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
