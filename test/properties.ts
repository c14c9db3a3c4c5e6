/** Vitest loads this file before each test file. */
import fc from 'fast-check';
import { afterAll, vi } from 'vitest';
import { runs, seed } from './length.ts';

fc.configureGlobal({ seed, numRuns: runs(100) });

// A test that timed out may have left fake timers, on which the next files of the process would wait.
afterAll(() => void vi.useRealTimers());

/** Time limit of waits that name none. Vitest's is one second, which a busy machine exceeds. */
const PATIENCE_MS = 30_000;
/** Files of one process share `vi`. */
const IS_PATIENT = Symbol.for('service-local.patient');
const { waitFor } = vi;
if (!Object.hasOwn(waitFor, IS_PATIENT)) {
  const patient: typeof waitFor = (check, options = {}) =>
    waitFor(check, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
  vi.waitFor = Object.assign(patient, { [IS_PATIENT]: true });
}
