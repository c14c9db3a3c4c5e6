import type { Bars } from '../../market/bars.ts';
import { mergeTimes } from '../steps.ts';
import type { CoarseBars } from './coarse-bars.ts';
import type { Computation } from './computation.ts';

/**
 * Step times and indicators of earlier runs over the same bars, for later ones. Beyond a bound, the
 * computation that has not been used for the longest time is dropped; a run that needs it computes it
 * again.
 */
export class SharedComputations {
  readonly #maxBytes: number;
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, { readonly computation: Computation; readonly bytes: number }>();
  #bytes = 0;
  /** Bars of longer timeframes, which are not dropped. */
  readonly coarse = new Map<string, CoarseBars>();
  #times: Float64Array | undefined;

  /** @param maxBytes bound on the columns. */
  constructor(maxBytes = Infinity) {
    this.#maxBytes = maxBytes;
  }

  /** Size of the columns. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `mergeTimes` of the bars. All runs until `clear` must be over the same bars. */
  timesOf(histories: readonly Bars[]): Float64Array {
    return (this.#times ??= mergeTimes(histories));
  }

  find(key: string): Computation | undefined {
    const found = this.#kept.get(key);
    if (found === undefined) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found.computation;
  }

  /** @param bytes size of its columns once it is complete. */
  add(key: string, computation: Computation, bytes: number): void {
    this.#kept.set(key, { computation, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes: freed }] of this.#kept) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#kept.delete(oldest);
      this.#bytes -= freed;
    }
  }

  /** Drops everything, before runs over other bars. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
    this.coarse.clear();
    this.#times = undefined;
  }
}
