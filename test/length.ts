/**
 * Whether tests try each and every case, as in `npm run test:long`, and not one of each kind only.
 * That runs the tests that import this, and those that use `mainlyOn` of `storage/databases.ts`.
 */
export const isAtLength = process.env['SERVICE_LOCAL_TEST_AT_LENGTH'] === 'true';

/** How often a property is tried: so often at length, and for a quarter of that in `npm test`. */
export const runs = (most: number): number => (isAtLength ? most : Math.ceil(most / 4));
