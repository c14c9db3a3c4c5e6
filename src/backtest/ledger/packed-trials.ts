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
  for (const { bytes, at } of trialsIn(packed)) {
    yield { key: keyAt(bytes, at), sharpe: sharpeAt(bytes, at) };
  }
}

/** Finds keys in packed trials without converting each packed key to hex, which is slow. */
export class TrialKeys {
  readonly #keys: ReadonlySet<string>;
  /** First four bytes of each key. */
  readonly #starts: ReadonlySet<number>;

  constructor(keys: Iterable<string>) {
    this.#keys = new Set(keys);
    this.#starts = new Set(Array.from(this.#keys, (key) => Number.parseInt(key.slice(0, 8), 16)));
  }

  /** Yields the keys that are among packed trials. */
  *foundIn(packed: PackedTrials): Generator<string> {
    for (const { bytes, at } of trialsIn(packed)) {
      if (this.#isAt(bytes, at)) yield keyAt(bytes, at);
    }
  }

  /** Yields the Sharpe ratios of the packed trials with other keys. */
  *otherSharpes(packed: PackedTrials): Generator<number | null> {
    for (const { bytes, at } of trialsIn(packed)) {
      if (!this.#isAt(bytes, at)) yield sharpeAt(bytes, at);
    }
  }

  #isAt(bytes: Buffer, at: number): boolean {
    return this.#starts.has(bytes.readUInt32BE(at)) && this.#keys.has(keyAt(bytes, at));
  }
}

export const NO_KEYS = new TrialKeys([]);

function* trialsIn(
  packed: PackedTrials,
): Generator<{ readonly bytes: Buffer; readonly at: number }> {
  const bytes = Buffer.from(packed, 'base64');
  for (let at = 0; at + TRIAL_BYTES <= bytes.length; at += TRIAL_BYTES) yield { bytes, at };
}

function keyAt(bytes: Buffer, at: number): string {
  return bytes.toString('hex', at, at + KEY_BYTES);
}

function sharpeAt(bytes: Buffer, at: number): number | null {
  const sharpe = bytes.readDoubleLE(at + KEY_BYTES);
  return Number.isNaN(sharpe) ? null : sharpe;
}
