/**
 * Whether tests try each and every case, as in `npm run test:long`, and not one of each kind only.
 * That runs the tests that import this.
 */
export const isAtLength = process.env['SERVICE_LOCAL_TEST_AT_LENGTH'] === 'true';
