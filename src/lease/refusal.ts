import type { LeaseReason } from './reasons.ts';

/** A refused lease or keyset, as the parts throw it. The message says what and where. */
export class LeaseError extends Error {
  readonly reason: LeaseReason;

  constructor(reason: LeaseReason, detail: string) {
    super(detail);
    this.name = 'LeaseError';
    this.reason = reason;
  }
}

/** A refused lease or keyset, as an answer. */
export interface Refused {
  readonly ok: false;
  readonly reason: LeaseReason;
  /** What is wrong and where; for people, and not stable. */
  readonly detail: string;
}

/** The result of `read`, or the refusal that it threw. */
export function orRefused<T>(read: () => T): T | Refused {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    return { ok: false, reason: error.reason, detail: error.message };
  }
}
