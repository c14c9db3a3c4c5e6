import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** Returns the SHA-256, in hex, of the canonical JSON (RFC 8785) of a value. */
export function digest(value: unknown): string {
  return createHash('sha256').update(canonicalize(value)!).digest('hex');
}
