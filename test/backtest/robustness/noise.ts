import { seededRandom } from '../../../src/engine/random.ts';

/** Standard normal numbers (Box and Muller). */
export function normals(seed: number): () => number {
  const random = seededRandom(seed);
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/**
 * p-value of the Kolmogorov–Smirnov test that the values are uniform in (0, 1): the asymptotic
 * distribution with the correction of M. A. Stephens, J. of the Royal Statistical Society B 32(1), 1970.
 */
export function uniformityP(values: readonly number[]): number {
  const n = values.length;
  const distance = values
    .toSorted((a, b) => a - b)
    .reduce((most, value, i) => Math.max(most, value - i / n, (i + 1) / n - value), 0);
  const x = distance * (Math.sqrt(n) + 0.12 + 0.11 / Math.sqrt(n));
  let p = 0;
  for (let k = 1; k <= 100; k++) p += 2 * (-1) ** (k - 1) * Math.exp(-2 * k * k * x * x);
  return Math.min(1, p);
}
