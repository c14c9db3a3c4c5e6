/**
 * Whether tests try every case, as in `npm run test:long`, instead of one of each kind.
 * That command runs the tests that import this file or fast-check, and those that use `mainlyOn`
 * of `storage/databases.ts`.
 */
export const isAtLength = process.env['SERVICE_LOCAL_TEST_AT_LENGTH'] === 'true';

/** Seed of all property tests: always the same in `npm test`, drawn for each `npm run test:long`. */
export const seed = Number(process.env['SERVICE_LOCAL_TEST_SEED']);

/** All cases at length, and the first `few` of them in `npm test`. */
export const some = <T>(few: number, cases: readonly T[]): readonly T[] =>
  isAtLength ? cases : cases.slice(0, few);

/** Examples of a property: `few` in `npm test`, and a hundred times as many at length. */
export const runs = (few: number): number => (isAtLength ? 100 * few : few);
