import { readFileSync } from 'node:fs';

/** Milliseconds that the same work takes on both sides, measured one right after the other. */
export interface Pair {
  readonly floor: number;
  readonly ours: number;
}

export interface Measurement {
  readonly pairs: readonly Pair[];
  /** Peak memory of the process that does the work. */
  readonly peakBytes: number;
}

type Sides = Readonly<Record<keyof Pair, () => number | Promise<number>>>;

/**
 * Measures both sides in turn, with each of them first in every other round, so that other load on the
 * machine slows both down alike.
 */
export async function alternate(rounds: number, sides: Sides): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const pair = { floor: 0, ours: 0 };
    const order = round % 2 === 0 ? (['floor', 'ours'] as const) : (['ours', 'floor'] as const);
    for (const side of order) pair[side] = await sides[side]();
    pairs.push(pair);
  }
  return pairs;
}

export async function timeOf(work: () => unknown): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/**
 * Peak resident memory of a process, in bytes; Linux only. `process.resourceUsage()` would count the
 * memory of the process that started it as well.
 */
export function peakMemory(pid: number | 'self' = 'self'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) * 1024;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

/** Result of the script of a row, on its standard output. */
export function printMeasurement(measurement: Measurement): void {
  console.log(JSON.stringify(measurement));
}
