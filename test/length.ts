/**
 * Whether tests run every case, as in `npm run test:long`, instead of a selection.
 * `test.runIf(isAtLength)` marks a test that only that command runs.
 * That command runs the tests that import this file or fast-check, and those that use `mainlyOn`
 * of `storage/databases.ts`.
 */
export const isAtLength = process.env['SERVICE_LOCAL_TEST_AT_LENGTH'] === 'true';

/** Seed of all property tests: 1 in `npm test`, random for each `npm run test:long`. */
export const seed = Number(process.env['SERVICE_LOCAL_TEST_SEED']);

/** Returns all cases in `npm run test:long`, and the first `few` in `npm test`. */
export const some = <T>(few: number, cases: readonly T[]): readonly T[] =>
  isAtLength ? cases : cases.slice(0, few);

/** Number of examples of a property: a quarter of `count` in `npm test`, 100 times `count` in `test:long`. */
export const runs = (count: number): number => (isAtLength ? 100 * count : Math.ceil(count / 4));
