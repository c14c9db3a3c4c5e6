import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import type { EngineInstrument } from '../../engine/engine-setup.ts';
import { seededRandom } from '../../engine/random.ts';
import { allocateBars, BAR_COLUMNS, sliceBars, type Bars } from '../../market/bars.ts';

/**
 * Shuffles the price changes of bars. This removes any order that a strategy could exploit, but keeps
 * their distribution and the change over the whole history: T. Masters, "Permutation and Randomization
 * Tests for Trading System Development", 2020, bar permutation. The gap from the last close to the open
 * is permuted separately from the changes within a bar (high, low and close relative to the open, with
 * the volume). The times, the first bar and the bars before the run stay.
 *
 * Several instruments share the permutation, so that their changes at one time stay together. Where one
 * has no bar, a time is exchanged only with times at which the same instruments have bars.
 */
export class PermutedBars {
  readonly #given: readonly EngineInstrument[];
  readonly #seed: number;
  readonly #changes: readonly BarChanges[];
  /** Bars that exchange their changes with each other, one group per set of instruments. */
  readonly #groups: readonly (readonly Member[])[];
  readonly #memory: readonly Memory[];

  /** @throws ServiceError `invalid_data` for a price that is not positive */
  constructor(instruments: readonly EngineInstrument[], seed: number) {
    this.#given = instruments;
    this.#seed = seed;
    this.#changes = instruments.map(changesOf);
    this.#groups = groupsOf(instruments.map(({ bars }) => bars));
    this.#memory = instruments.map(memoryOf);
  }

  /**
   * Returns the instruments with the bars of a permutation, which depend on the seed and its number
   * alone. The next call overwrites them.
   */
  permute(permutation: number): readonly EngineInstrument[] {
    const random = seededRandom(seedOf(this.#seed, permutation));
    for (const group of this.#groups) {
      const { length } = group[0]!.at;
      const gaps = shuffledIndices(length, random);
      const bodies = shuffledIndices(length, random);
      for (const { instrument, at } of group) {
        const { gapFrom, bodyFrom } = this.#memory[instrument]!;
        for (let i = 0; i < length; i++) {
          gapFrom[at[i]!] = at[gaps[i]!]!;
          bodyFrom[at[i]!] = at[bodies[i]!]!;
        }
      }
    }
    return this.#given.map((given, instrument) => {
      const memory = this.#memory[instrument]!;
      rebuild(given.bars, this.#changes[instrument]!, memory);
      return { ...given, bars: memory.bars, warmUp: memory.warmUp };
    });
  }
}

/** Ratios of prices; index 0 is unused. */
interface BarChanges {
  /** Open over the close before. */
  readonly gap: Float64Array;
  /** High, low and close over the open of the bar. */
  readonly high: Float64Array;
  readonly low: Float64Array;
  readonly close: Float64Array;
}

/** The bars of an instrument whose changes are exchanged with each other. */
interface Member {
  readonly instrument: number;
  readonly at: Uint32Array;
}

interface Memory {
  readonly bars: Bars;
  /** Directly before `bars` in memory, so that indicators read both as one column. */
  readonly warmUp: Bars | undefined;
  /** For each bar, the index of the bar whose gap it receives. */
  readonly gapFrom: Uint32Array;
  /** The same for the changes within a bar. */
  readonly bodyFrom: Uint32Array;
}

function changesOf({ symbol, bars }: EngineInstrument): BarChanges {
  const { length, open, high, low, close } = bars;
  if (low.subarray(0, length).some((price) => !(price > 0))) {
    throw new ServiceError('invalid_data', `${symbol} has prices that are not positive`, {
      remedy: 'Omit the permutation test: run 0 permutations.',
    });
  }
  return {
    gap: Float64Array.from({ length }, (_, i) => (i === 0 ? 1 : open[i]! / close[i - 1]!)),
    high: Float64Array.from({ length }, (_, i) => high[i]! / open[i]!),
    low: Float64Array.from({ length }, (_, i) => low[i]! / open[i]!),
    close: Float64Array.from({ length }, (_, i) => close[i]! / open[i]!),
  };
}

/** Groups the bars after the first one by the instruments that have such a bar at the same time. */
function groupsOf(all: readonly Bars[]): Member[][] {
  const instrumentsAt = new Map<number, number[]>();
  all.forEach(({ time, length }, instrument) => {
    for (let i = 1; i < length; i++) {
      const present = instrumentsAt.get(time[i]!);
      if (present === undefined) instrumentsAt.set(time[i]!, [instrument]);
      else present.push(instrument);
    }
  });
  const keys = new Map([...instrumentsAt].map(([time, present]) => [time, present.join()]));
  const groups = new Map<string, Map<number, number[]>>();
  all.forEach(({ time, length }, instrument) => {
    for (let i = 1; i < length; i++) {
      const members = getOrAdd(groups, keys.get(time[i]!)!, () => new Map<number, number[]>());
      getOrAdd(members, instrument, () => []).push(i);
    }
  });
  return [...groups.values()].map((members) =>
    [...members].map(([instrument, at]) => ({ instrument, at: Uint32Array.from(at) })),
  );
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function memoryOf({ bars, warmUp }: EngineInstrument): Memory {
  const before = warmUp?.length ?? 0;
  const all = allocateBars(before + bars.length);
  for (const part of [warmUp, bars]) {
    if (part === undefined) continue;
    const at = part === bars ? before : 0;
    for (const name of BAR_COLUMNS) {
      all[name].set(part[name].subarray(0, part.length), at);
    }
  }
  return {
    bars: sliceBars(all, before, all.length),
    warmUp: warmUp && sliceBars(all, 0, before),
    gapFrom: new Uint32Array(bars.length),
    bodyFrom: new Uint32Array(bars.length),
  };
}

function rebuild(given: Bars, changes: BarChanges, { bars, gapFrom, bodyFrom }: Memory): void {
  const { gap, high, low, close } = changes;
  let last = given.close[0]!;
  for (let i = 1; i < given.length; i++) {
    const body = bodyFrom[i]!;
    const start = last * gap[gapFrom[i]!]!;
    last = start * close[body]!;
    bars.open[i] = start;
    bars.high[i] = start * high[body]!;
    bars.low[i] = start * low[body]!;
    bars.close[i] = last;
    bars.volume[i] = given.volume[body]!;
  }
}

/** A hash, because seeds that differ by a constant can give the same numbers, shifted. */
function seedOf(seed: number, permutation: number): number {
  return createHash('sha256').update(`${seed}:${permutation}`).digest().readUInt32LE();
}

/** Fisher–Yates. */
function shuffledIndices(count: number, random: () => number): Uint32Array {
  const indices = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    const kept = indices[i]!;
    indices[i] = indices[other]!;
    indices[other] = kept;
  }
  return indices;
}
