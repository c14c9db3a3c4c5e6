/**
 * Mean block length with which a stationary bootstrap of the values estimates the variance of their mean
 * best, from 1 (no dependence) to min(3√n, n/3). D. N. Politis and H. White, "Automatic Block-Length
 * Selection for the Dependent Bootstrap", Econometric Reviews 23(1), 2004, as corrected by A. Patton,
 * D. N. Politis and H. White, Econometric Reviews 28(4), 2009.
 */
export function meanBlockLength(values: Float64Array): number {
  const n = values.length;
  const quiet = Math.max(5, Math.ceil(Math.sqrt(Math.log10(n))));
  const longestLag = Math.min(n - 1, Math.ceil(Math.sqrt(n)) + quiet);
  const covariances = autocovariances(values, longestLag);
  if (!(covariances[0]! > 0)) return 1;
  const threshold = 2 * Math.sqrt(Math.log10(n) / n) * covariances[0]!;
  const lags = Math.min(
    longestLag,
    2 * Math.max(1, lastDependentLag(covariances, quiet, threshold)),
  );
  let spectrum = covariances[0]!;
  let slope = 0;
  for (let lag = 1; lag <= lags; lag++) {
    // The trapezoidal "flat-top" window.
    const weight = Math.min(1, 2 * (1 - lag / lags));
    spectrum += 2 * weight * covariances[lag]!;
    slope += 2 * weight * lag * covariances[lag]!;
  }
  const length = ((slope * slope) / (spectrum * spectrum)) ** (1 / 3) * n ** (1 / 3);
  const longest = Math.ceil(Math.min(3 * Math.sqrt(n), n / 3));
  return Math.min(longest, Math.max(1, length));
}

/** The lag after which `quiet` consecutive autocovariances are within the threshold. */
function lastDependentLag(covariances: Float64Array, quiet: number, threshold: number): number {
  let within = 0;
  for (let lag = 1; lag < covariances.length; lag++) {
    within = Math.abs(covariances[lag]!) < threshold ? within + 1 : 0;
    if (within === quiet) return lag - quiet;
  }
  return covariances.length - 1;
}

function autocovariances(values: Float64Array, longestLag: number): Float64Array {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const centered = values.map((value) => value - mean);
  const covariances = new Float64Array(longestLag + 1);
  for (let lag = 0; lag <= longestLag; lag++) {
    let sum = 0;
    for (let i = lag; i < n; i++) sum += centered[i]! * centered[i - lag]!;
    covariances[lag] = sum / n;
  }
  return covariances;
}
