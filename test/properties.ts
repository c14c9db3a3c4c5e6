/** Vitest loads this file before each test file. */
import fc from 'fast-check';
import { runs, seed } from './length.ts';

fc.configureGlobal({ seed, numRuns: runs(100) });
