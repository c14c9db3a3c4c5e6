import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    // Most tests start processes, and the machine may be busy with others.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Many tests wait for processes of theirs: one file at a time for each processor leaves it idle.
    maxWorkers: availableParallelism() + 1,
    // What one process of a test has compiled, the next ones do not compile again.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'service-local-compile-cache') },
    globalSetup: 'storage/cluster.ts',
  },
});
