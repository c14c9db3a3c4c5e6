/**
 * Outputs of models: one value for each bar, name and instrument, computed from bars up to that one
 * before the engine takes its step. The engine only reads them.
 */
export interface Signals {
  /** In the order of the spec. */
  readonly names: readonly string[];
  /**
   * By instrument, then by name: a value at the index of each bar, NaN if the model had none. Columns
   * may be longer than `counts`, and are replaced when they grow.
   */
  readonly columns: readonly (readonly Float64Array[])[];
  /** Number of values, by instrument. */
  readonly counts: Uint32Array;
}

export interface GrowingSignals {
  /** Plain data, for other threads. */
  readonly signals: Signals;
  /** Adds the values of an instrument's next bar, in the order of the names. */
  readonly append: (instrument: number, values: readonly number[]) => void;
}

const FIRST_ROOM = 64;

/** Signals in shared memory, which worker threads read without a copy. */
export function growingSignals(names: readonly string[], instruments: number): GrowingSignals {
  const columns = Array.from({ length: instruments }, () => names.map(() => room(FIRST_ROOM)));
  const counts = new Uint32Array(
    new SharedArrayBuffer(instruments * Uint32Array.BYTES_PER_ELEMENT),
  );
  return {
    signals: { names, columns, counts },
    append(instrument, values) {
      const own = columns[instrument]!;
      const at = counts[instrument]!;
      for (const [place, value] of values.entries()) {
        if (own[place]!.length === at) {
          const longer = room(2 * at);
          longer.set(own[place]!);
          own[place] = longer;
        }
        own[place]![at] = value;
      }
      counts[instrument] = at + 1;
    },
  };
}

function room(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * Float64Array.BYTES_PER_ELEMENT));
}
