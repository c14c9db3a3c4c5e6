import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Lock } from './summary.ts';

/** Creates a lock with the digest of its parts, except `trials`, which decides no event. */
export function lockOf(parts: Omit<Lock, 'digest'>): Lock {
  const { spec, engine, seed, strategy, data, warm_up = {}, benchmark } = parts;
  const { models, outside = [], trials } = parts;
  const rest = {
    spec,
    engine,
    seed,
    strategy,
    data,
    // Set only if not empty, so that locks from earlier versions keep their digests.
    ...(Object.keys(warm_up).length > 0 && { warm_up }),
    ...(benchmark !== undefined && { benchmark }),
    ...(models && { models }),
    ...(outside.length > 0 && { outside }),
  };
  return { digest: canonicalDigest(rest), ...rest, ...(trials && { trials }) };
}

/** sha256 (hex) of a value in canonical JSON (RFC 8785). */
export function canonicalDigest(value: unknown): string {
  const canonical = canonicalize(value);
  if (canonical === undefined) throw new TypeError('not a JSON value');
  return createHash('sha256').update(canonical).digest('hex');
}

/**
 * Adds the file, network and process APIs that a run used to its lock.
 * @param outside see `StrategyTraces`.
 */
export function withOutside(lock: Lock, outside: readonly string[] = []): Lock {
  const all = [...new Set([...(lock.outside ?? []), ...outside])].toSorted();
  return lockOf({ ...lock, outside: all });
}
