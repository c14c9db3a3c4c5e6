import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Params, ParamValues } from '../../engine/params.ts';

/** An executed trial. */
export interface ExecutedTrial {
  readonly params: ParamValues<Params>;
  /** Annualized; null if it is undefined or the trial failed. */
  readonly sharpe: number | null;
}

/**
 * Trials in base64, 16 bytes each: the first 8 bytes of the SHA-256 of the parameters as canonical JSON
 * (RFC 8785), then the Sharpe ratio as little-endian float64, NaN if it is undefined. A million trials
 * take 21 MB.
 */
export type PackedTrials = string;

const KEY_BYTES = 8;
const TRIAL_BYTES = 16;

/** Two of a million trials of a lock have the same key with a probability of 3 × 10⁻⁸. */
export function trialKey(params: ParamValues<Params>): string {
  return hash('sha256', canonicalize(params)!, 'hex').slice(0, 2 * KEY_BYTES);
}

/** @param trials Sharpe ratios by key */
export function packTrials(trials: ReadonlyMap<string, number | null>): PackedTrials {
  const bytes = Buffer.alloc(trials.size * TRIAL_BYTES);
  let at = 0;
  for (const [key, sharpe] of trials) {
    bytes.write(key, at, 'hex');
    // Databases differ in whether they keep the sign of −0, so −0 becomes 0.
    bytes.writeDoubleLE(sharpe === null ? Number.NaN : sharpe + 0, at + KEY_BYTES);
    at += TRIAL_BYTES;
  }
  return bytes.toString('base64');
}

export function countPacked(packed: PackedTrials): number {
  return Buffer.byteLength(packed, 'base64') / TRIAL_BYTES;
}

export function* unpackTrials(packed: PackedTrials): Generator<{
  readonly key: string;
  readonly sharpe: number | null;
}> {
  const bytes = Buffer.from(packed, 'base64');
  for (let at = 0; at + TRIAL_BYTES <= bytes.length; at += TRIAL_BYTES) {
    const sharpe = bytes.readDoubleLE(at + KEY_BYTES);
    yield {
      key: bytes.toString('hex', at, at + KEY_BYTES),
      sharpe: Number.isNaN(sharpe) ? null : sharpe,
    };
  }
}
