/**
 * What models say of the bars of a run: one value for each bar, name and instrument, made before the
 * engine takes the step of that bar, and of bars up to it alone. The engine only reads them.
 */
export interface Signals {
  /** In the order of the spec. */
  readonly names: readonly string[];
  /**
   * By instrument and then by name: a value for each of its bars, at the place of the bar; NaN where
   * the model had none. They may be longer than `counts` says, and others take their place as they grow.
   */
  readonly columns: readonly (readonly Float64Array[])[];
  /** Values that there are, by instrument. */
  readonly counts: Uint32Array;
}

export interface GrowingSignals {
  /** Plain data, so that other threads can have them. */
  readonly signals: Signals;
  /** The values of the next bar of an instrument, in the order of the names. */
  readonly append: (instrument: number, values: readonly number[]) => void;
}

const FIRST_ROOM = 64;

/** In shared memory, so that worker threads read them without a copy. */
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
