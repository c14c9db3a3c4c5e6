/**
 * Compares the holdings at the venue with the session, at the start and then on a schedule, to
 * detect withdrawals and manual trades while the deployment trades.
 */
import type { Mismatch } from '../../venues/reconcile.ts';
import { compareAgain, reconcile } from './startup.ts';
import { formatMismatches } from './permission.ts';
import { begin, type Runner } from './runner.ts';

const EVERY_MS = 60_000;
/**
 * Delay before a mismatch is confirmed, ms; a fill between two queries looks like a mismatch and
 * has resolved by then.
 */
const CONFIRM_MS = 2000;
/** Interval while a mismatch lasts, ms. */
const RECHECK_MS = 30_000;

/** Share of equity; if more is missing, a person must re-enable the bot before it trades again. */
const LATCH_SHARE = 0.01;

/** Takes the result of a comparison, which denies new orders while something is missing. */
export function takeHoldings(runner: Runner, found: readonly Mismatch[] | undefined): void {
  const { confirmMs = CONFIRM_MS, reconcileMs = EVERY_MS } = runner.parts.venueTimes ?? {};
  if (found === undefined) return again(runner, confirmMs);
  const before = runner.mismatches;
  const isConfirmed = isSame(found, runner.suspected);
  runner.suspected = found;
  if (before?.length === 0 && found.length > 0 && !isConfirmed) return again(runner, confirmMs);
  report(runner, found);
  runner.mismatches = found;
  // A mismatch at the first comparison means that the account started with too little, not that
  // holdings were lost.
  if (before === undefined) runner.mayLatch = runner.steps > 0;
  if (found.length === 0) runner.mayLatch = true;
  const share = missingShare(runner, found);
  if (isConfirmed && runner.mayLatch && share > LATCH_SHARE) latch(runner, found, share);
  if (!runner.isExchange) return;
  const wait = before === undefined ? confirmMs : Math.min(RECHECK_MS, reconcileMs);
  again(runner, found.length === 0 ? reconcileMs : wait);
}

function report(runner: Runner, found: readonly Mismatch[]): void {
  if (JSON.stringify(found) === JSON.stringify(runner.mismatches ?? [])) return;
  const { log } = runner.parts;
  if (found.length === 0) return log.info('the holdings at the venue match the session');
  log.warn(`the venue holds less than the session expects: ${formatMismatches(found)}`);
  const payload = { mismatches: found };
  runner.events.push({ kind: 'venue.mismatch', occurred_at: Date.now(), payload });
}

/** Denies every order from now on, also after a restart, until a person re-enables the bot. */
function latch(runner: Runner, mismatches: readonly Mismatch[], share: number): void {
  runner.latches += 1;
  runner.isLatched = true;
  runner.mayLatch = false;
  const payload = { control: 'reconciliation', mismatches, share_of_equity: share };
  runner.events.push({ kind: 'account.latched', occurred_at: Date.now(), payload });
  runner.parts.log.error(
    `latched: ${(100 * share).toFixed(1)} % of the equity is missing at the venue`,
  );
}

/** Share of the equity that is missing, at the prices at which positions are valued. */
function missingShare(runner: Runner, found: readonly Mismatch[]): number {
  if (runner.session === undefined || found.length === 0) return 0;
  const { equity, carry } = runner.session.state();
  const missing = found.map(({ symbol, expected, held }) => {
    const price = symbol === undefined ? 1 : (carry?.marks[symbol] ?? 0);
    return (expected - held) * price;
  });
  return missing.reduce((sum, value) => sum + value, 0) / Math.max(equity, 1e-9);
}

/**
 * Whether both comparisons miss the same amounts; trades change expected and held amounts equally.
 */
function isSame(found: readonly Mismatch[], before: readonly Mismatch[] | undefined): boolean {
  if (before?.length !== found.length) return false;
  return found.every(({ kind, symbol, expected, held }) => {
    const other = before.find((one) => one.kind === kind && one.symbol === symbol);
    if (other === undefined) return false;
    const least = 1e-6 * Math.max(Math.abs(expected), Math.abs(held));
    return Math.abs(expected - held - (other.expected - other.held)) <= least;
  });
}

function again(runner: Runner, ms: number): void {
  const check = (): void => {
    if (runner.signal.aborted || runner.ending !== undefined) return;
    const isWhole = runner.mismatches?.length === 0;
    begin(runner, () => (isWhole ? compareAgain(runner) : reconcile(runner)));
  };
  setTimeout(check, ms).unref();
}
