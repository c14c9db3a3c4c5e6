/** Vitest loads this file before each test file: it holds for every property that fast-check tests. */
import fc from 'fast-check';
import { runs, seed } from './length.ts';

fc.configureGlobal({ seed, numRuns: runs(100) });
