import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    // Most tests start processes, and the machine may be busy with others.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    globalSetup: 'storage/cluster.ts',
  },
});
