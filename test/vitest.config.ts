import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    // Most tests start processes, and the machine may be busy with others.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Many tests wait for processes of theirs: one file at a time for each processor leaves it idle.
    maxWorkers: availableParallelism() + 1,
    globalSetup: 'storage/cluster.ts',
  },
});
