import { defineConfig } from 'vitest/config';
import { alias, filesWith, LEASES, LONG, run, test } from './vitest.config.ts';

const long = { ...test, env: { ...test.env, SERVICE_LOCAL_TEST_AT_LENGTH: 'true' } };

const files = [LONG, ...filesWith("/length.ts'"), ...filesWith('mainlyOn(')];

/** `npm run test:long`: what repeats at length what `npm test` tries in short. */
export default defineConfig({
  test: {
    ...long,
    ...run,
    projects: [
      { test: { ...long, alias, name: 'long', include: files, exclude: [LEASES] } },
      {
        test: {
          ...long,
          name: 'leases',
          include: files.filter((file) => file.startsWith('lease/')),
        },
      },
    ],
  },
});
