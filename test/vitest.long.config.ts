import { defineConfig } from 'vitest/config';
import { alias, filesWith, run, test } from './vitest.config.ts';

/** `npm run test:long`: what repeats at length what `npm test` tries in short. */
export default defineConfig({
  test: {
    ...test,
    ...run,
    alias,
    name: 'long',
    env: { ...test.env, SERVICE_LOCAL_TEST_AT_LENGTH: 'true' },
    include: ['**/*.long.test.ts', ...filesWith("/length.ts'")],
  },
});
