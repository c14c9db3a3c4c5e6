const DENSITY_AT_ZERO = 1 / Math.sqrt(2 * Math.PI);
const density = (x: number): number => DENSITY_AT_ZERO * Math.exp((-x * x) / 2);

/**
 * Probability that a standard normal variable is at most `x`; relative error below 1e-13 down to
 * x = −37. Uses Marsaglia's series near zero ("Evaluating the Normal Distribution", J. Statistical
 * Software 11(4), 2004) and Laplace's continued fraction for Mills' ratio in the tails.
 */
export function normalCdf(x: number): number {
  if (x > 2.5) return 1 - lowerTail(-x);
  if (x < -2.5) return lowerTail(x);
  let term = x;
  let sum = x;
  for (let i = 3; Math.abs(term) > Number.EPSILON * Math.abs(sum); i += 2) {
    term *= (x * x) / i;
    sum += term;
  }
  return 0.5 + sum * density(x);
}

function lowerTail(x: number): number {
  let fraction = -x;
  for (let i = 100; i > 0; i--) fraction = i / fraction - x;
  return density(x) / fraction;
}

/**
 * Inverse of `normalCdf`, with the same precision: ±Infinity at 0 and 1, NaN outside. Starts with
 * Abramowitz & Stegun 26.2.23 (error below 4.5e-4) and refines it with Halley's method, which cubes
 * the error in each step.
 */
export function normalQuantile(p: number): number {
  if (p > 0.5) return -normalQuantile(1 - p);
  if (p === 0) return -Infinity;
  const t = Math.sqrt(-2 * Math.log(p));
  const numerator = 2.515517 + t * (0.802853 + t * 0.010328);
  const denominator = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
  let x = numerator / denominator - t;
  for (let step = 0; step < 3; step++) {
    const newton = (normalCdf(x) - p) / density(x);
    x -= newton / (1 + (x * newton) / 2);
  }
  return x;
}
