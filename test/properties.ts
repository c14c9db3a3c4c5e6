/** Vitest loads this file before each test file. */
import fc from 'fast-check';
import { afterAll, vi } from 'vitest';
import { runs, seed } from './length.ts';

fc.configureGlobal({ seed, numRuns: runs(100) });

// A test that timed out may have left fake timers, on which the next files of the process would wait.
afterAll(() => void vi.useRealTimers());
