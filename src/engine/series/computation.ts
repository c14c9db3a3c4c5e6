import type { WarmUp } from './warm-up.ts';

/**
 * An indicator that strategies can declare. `P` are its parameters, `M` the state machine that computes
 * it, `L` its lines.
 */
export interface IndicatorKind<P extends readonly unknown[], M, L extends string> {
  readonly name: string;
  readonly lines: readonly L[];
  /** The scale of a chart on which all lines, or each of them, are drawn. */
  readonly scale: Scale | Readonly<Record<L, Scale>>;
  /** @throws RangeError for parameters out of range. */
  readonly start: (...params: P) => M;
  /** In entries of the inputs, for valid parameters. */
  readonly warmUp: (...params: P) => WarmUp;
  /**
   * Writes the entries `from ≤ index < to` of all lines, in order of `lines`. Each kind has its own
   * loop, because V8 inlines the steps of a machine only into a loop that always runs that machine.
   */
  readonly fill: (machine: M, inputs: Columns, lines: Columns, from: number, to: number) => void;
}

/**
 * A scale of a chart: that of the prices, that of the first input, one of its own below the prices, or
 * none for a line that is not drawn.
 */
export type Scale = 'price' | 'input' | 'own' | 'none';

/** Columns by place. The number of places is that of the inputs or lines of a kind. */
export type Columns = readonly [
  Float64Array,
  Float64Array,
  Float64Array,
  Float64Array,
  Float64Array,
];

type Fill = (inputs: Columns, lines: Columns, from: number, to: number) => void;

/** @throws RangeError for parameters out of range. */
export function startComputation<P extends readonly unknown[], M>(
  { start, fill, lines }: IndicatorKind<P, M, string>,
  params: P,
): Computation {
  const machine = start(...params);
  return new Computation(lines.length, (inputs, columns, from, to) => {
    fill(machine, inputs, columns, from, to);
  });
}

/** The values of an indicator so far, and the machine that computes the next ones. */
export class Computation {
  readonly columns: Float64Array[];
  readonly #fill: Fill;
  #filled = 0;

  constructor(lineCount: number, fill: Fill) {
    this.columns = Array.from({ length: lineCount }, () => new Float64Array(0));
    this.#fill = fill;
  }

  /**
   * Computes the values up to `length`, from inputs that have as many.
   *
   * @param capacity values for which room is made at once.
   */
  extend(inputs: readonly Float64Array[], length: number, capacity: number): void {
    if (length <= this.#filled) return;
    if (length > this.columns[0]!.length) this.#grow(Math.max(capacity, 2 * this.#filled));
    this.#fill(
      inputs as unknown as Columns,
      this.columns as unknown as Columns,
      this.#filled,
      length,
    );
    this.#filled = length;
  }

  #grow(capacity: number): void {
    for (const [place, column] of this.columns.entries()) {
      this.columns[place] = new Float64Array(capacity);
      this.columns[place].set(column);
    }
  }
}
