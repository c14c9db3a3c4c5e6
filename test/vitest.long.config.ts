import { randomInt } from 'node:crypto';
import { defineConfig } from 'vitest/config';
import { alias, filesWith, LEASES, LONG, run, test } from './vitest.config.ts';

/** Set `SERVICE_LOCAL_TEST_SEED` to repeat a run. */
const seed = process.env['SERVICE_LOCAL_TEST_SEED'] ?? String(randomInt(2 ** 31));
console.error(
  `Property tests use the seed ${seed}. Repeat this run with SERVICE_LOCAL_TEST_SEED=${seed}.`,
);

const long = {
  ...test,
  // A property may take as long as a hundred times its time in `npm test`.
  testTimeout: 3_600_000,
  env: { ...test.env, SERVICE_LOCAL_TEST_AT_LENGTH: 'true', SERVICE_LOCAL_TEST_SEED: seed },
};

const files = [
  LONG,
  ...filesWith("/length.ts'"),
  ...filesWith("from 'fast-check'"),
  ...filesWith('mainlyOn('),
];

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
