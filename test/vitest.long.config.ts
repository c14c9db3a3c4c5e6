import { randomInt } from 'node:crypto';
import { globSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import {
  filesWith,
  LONG,
  REAL_CRYPTOGRAPHY,
  run,
  test,
  withCheapCryptography,
} from './vitest.config.ts';

/** Set this variable to repeat the property tests of a run. */
const SEED = 'SERVICE_LOCAL_TEST_SEED';

// Vitest loads this file once for each project: all of them use the seed that the first one draws.
if (process.env[SEED] === undefined) {
  process.env[SEED] = String(randomInt(2 ** 31));
  console.error(`Property tests use a random seed. To repeat them: ${SEED}=${process.env[SEED]}`);
}

const long = {
  ...test,
  // A property may take as long as a hundred times its time in `npm test`.
  testTimeout: 3_600_000,
  env: { ...test.env, SERVICE_LOCAL_TEST_AT_LENGTH: 'true', [SEED]: process.env[SEED] },
};

const files = [
  ...globSync(LONG, { cwd: test.root }),
  ...filesWith("/length.ts'"),
  ...filesWith("from 'fast-check'"),
  ...filesWith('mainlyOn('),
];

/** Configuration of `npm run test:long`. */
export default defineConfig({
  test: {
    ...long,
    ...run,
    projects: [
      {
        test: {
          ...long,
          setupFiles: withCheapCryptography.setupFiles,
          name: 'long',
          include: files,
          exclude: REAL_CRYPTOGRAPHY,
        },
      },
      {
        test: {
          ...long,
          name: 'cryptography',
          include: files.filter((file) => REAL_CRYPTOGRAPHY.includes(file)),
        },
      },
    ],
  },
});
