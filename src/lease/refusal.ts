import type { LeaseReason } from './reasons.ts';

/** Thrown for a refused lease or keyset; the message says what is wrong and where. */
export class LeaseError extends Error {
  readonly reason: LeaseReason;

  constructor(reason: LeaseReason, detail: string) {
    super(detail);
    this.name = 'LeaseError';
    this.reason = reason;
  }
}

/** A refused lease or keyset, as a return value. */
export interface Refused {
  readonly ok: false;
  readonly reason: LeaseReason;
  /** Describes the fault and its place to users. The text may change between versions. */
  readonly detail: string;
}

/** Converts a LeaseError that `read` throws to a return value. */
export function orRefused<T>(read: () => T): T | Refused {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    return { ok: false, reason: error.reason, detail: error.message };
  }
}
