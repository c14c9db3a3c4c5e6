/**
 * Compares the holdings at the venue with the session, at the start and then on a schedule, to
 * detect withdrawals and manual trades.
 */
import type { SessionState } from '../events/session-state.ts';
import type { Mismatch } from './venues/reconcile.ts';

/** Share of equity; if more is missing, a person must re-enable the bot before it trades again. */
const LATCH_SHARE = 0.01;
/** Consecutive comparisons that confirm a missing holding, even if its amount differs in each. */
const CONFIRMING_COMPARISONS = 5;

export interface HoldingsCheck {
  /** Confirmed mismatches; empty before the first comparison. */
  readonly mismatches: readonly Mismatch[];
  /** Result of the last comparison, which the next one may confirm. */
  readonly suspected: readonly Mismatch[] | undefined;
  /** Consecutive comparisons that lacked a holding which the comparison before lacked, too. */
  readonly suspicions: number;
  /** Whether missing holdings were present before, so that the bot may be latched. */
  readonly mayLatch: boolean;
  /** Count of latches because the venue holds too little. */
  readonly latches: number;
  /** Whether the newest of these latches is still in force. */
  readonly isLatched: boolean;
}

export function newHoldingsCheck(latches: number): HoldingsCheck {
  const nothing = { mismatches: [], suspected: undefined, suspicions: 0, mayLatch: false };
  return { ...nothing, latches, isLatched: latches > 0 };
}

export interface Comparison {
  /** Undefined if the holdings cannot be compared at the moment. */
  readonly found: readonly Mismatch[] | undefined;
  /** Result of `missingShare`. */
  readonly share: number;
  /** Whether the session has taken bars. */
  readonly hasSteps: boolean;
  /** Whether no comparison was completed before. */
  readonly isFirst: boolean;
}

/** When to compare again: soon, to confirm; more often while holdings are missing; else rarely. */
export type NextComparison = 'confirm' | 'recheck' | 'routine';

export interface CheckedHoldings {
  readonly after: HoldingsCheck;
  /** Whether the mismatches are new and must be recorded. */
  readonly hasNews: boolean;
  readonly isLatchedNow: boolean;
  readonly next: NextComparison;
}

export function checkHoldings(
  before: HoldingsCheck,
  { found, share, hasSteps, isFirst }: Comparison,
): CheckedHoldings {
  const noNews = { hasNews: false, isLatchedNow: false, next: 'confirm' } as const;
  if (found === undefined) return { ...noNews, after: before };
  const suspicions = countSuspicions(found, before);
  const isConfirmed = isSame(found, before.suspected) || suspicions >= CONFIRMING_COMPARISONS;
  const isSuspicion = !isFirst && before.mismatches.length === 0 && found.length > 0;
  // A fill between two queries looks like a mismatch, which the next comparison no longer finds.
  if (isSuspicion && !isConfirmed) {
    return { ...noNews, after: { ...before, suspected: found, suspicions } };
  }
  // At the first comparison, the account started with too little: no holdings were lost.
  const mayLatch = found.length === 0 || (isFirst ? hasSteps : before.mayLatch);
  const isLatchedNow = isConfirmed && mayLatch && share > LATCH_SHARE;
  const known = { ...before, mismatches: found, suspected: found, suspicions, mayLatch };
  return {
    after: isLatchedNow
      ? { ...known, latches: before.latches + 1, isLatched: true, mayLatch: false }
      : known,
    hasNews: JSON.stringify(found) !== JSON.stringify(before.mismatches),
    isLatchedNow,
    next: found.length === 0 ? 'routine' : isFirst ? 'confirm' : 'recheck',
  };
}

/** Share of the equity that is missing, at the prices at which positions are valued. */
export function missingShare(
  { equity, carry }: Pick<SessionState, 'equity' | 'carry'>,
  found: readonly Mismatch[],
): number {
  const missing = found.map(({ symbol, expected, held }) => {
    const price = symbol === undefined ? 1 : (carry?.marks[symbol] ?? 0);
    return (expected - held) * price;
  });
  return missing.reduce((sum, value) => sum + value, 0) / Math.max(equity, 1e-9);
}

/** The amounts differ if another trader uses the account all the time. */
function countSuspicions(
  found: readonly Mismatch[],
  { suspected = [], suspicions }: Pick<HoldingsCheck, 'suspected' | 'suspicions'>,
): number {
  if (found.length === 0) return 0;
  const isRepeated = found.some((one) => suspected.some((other) => isSameHolding(one, other)));
  return isRepeated ? suspicions + 1 : 1;
}

function isSameHolding(a: Mismatch, b: Mismatch): boolean {
  return a.kind === b.kind && a.symbol === b.symbol;
}

/** Whether both comparisons miss the same amounts; trades change expected and held equally. */
function isSame(found: readonly Mismatch[], before: readonly Mismatch[] | undefined): boolean {
  if (before?.length !== found.length) return false;
  return found.every((mismatch) => {
    const { expected, held } = mismatch;
    const other = before.find((one) => isSameHolding(one, mismatch));
    if (other === undefined) return false;
    const least = 1e-6 * Math.max(Math.abs(expected), Math.abs(held));
    return Math.abs(expected - held - (other.expected - other.held)) <= least;
  });
}

export function formatMismatches(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ kind, symbol, expected, held }) => `${symbol ?? kind}: ${held} of ${expected}`)
    .join('; ');
}
