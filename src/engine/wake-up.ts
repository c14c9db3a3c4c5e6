import { testOf, type Condition, type Test } from './series/condition.ts';

/** The part of a run that decides when its strategy is called. */
interface Progress {
  readonly step: number;
  readonly instruments: readonly unknown[];
  /** Its events so far. */
  readonly journal: { readonly count: number };
  readAhead(steps: Int32Array, count: number): void;
}

/**
 * Decides at which steps a strategy with `wakeOn` is called: where its condition holds, and after
 * every event of its account that it has not caused itself in the call before.
 */
export class WakeUp {
  readonly #run: Progress;
  readonly #test: Test;
  /** Number of events at the end of the last call. */
  #seen = 0;
  /**
   * Steps at which the condition holds, ascending, then the end of the
   * evaluated steps; only with a single instrument.
   */
  #due = new Int32Array(1);
  /** Place in `#due` of the first step that has not passed. */
  #at = 0;

  constructor(run: Progress, condition: Condition) {
    this.#run = run;
    this.#test = testOf(condition);
  }

  /** Evaluates the condition for steps before `end`, if each of them has an entry of every series. */
  prepare(end: number): void {
    const { step, instruments } = this.#run;
    if (instruments.length > 1) return;
    const count = end - step;
    if (this.#due.length <= count) this.#due = new Int32Array(count + 1);
    const listed = this.#test.list(this.#due, step, count);
    this.#due[listed] = end;
    this.#run.readAhead(this.#due, listed);
    this.#at = 0;
  }

  /** Whether the strategy is called in this step. */
  isDue(): boolean {
    const { journal, step, instruments } = this.#run;
    if (journal.count !== this.#seen) return true;
    return instruments.length > 1 ? this.#test.isTrue(step) : this.next() === step;
  }

  /** The first step from this one on in which the strategy is called if no event occurs before. */
  next(): number {
    const { step, journal } = this.#run;
    if (journal.count !== this.#seen) return step;
    const due = this.#due;
    while (due[this.#at]! < step) this.#at += 1;
    return due[this.#at]!;
  }

  /** Records that the strategy was called. */
  called(): void {
    this.#seen = this.#run.journal.count;
  }
}
