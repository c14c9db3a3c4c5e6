import { defineConfig } from 'vitest/config';
import { alias, run, test } from './vitest.config.ts';

/** `npm run test:long`: what repeats at length what `npm test` tries in short. */
export default defineConfig({
  test: { ...test, ...run, alias, name: 'long', include: ['**/*.long.test.ts'] },
});
