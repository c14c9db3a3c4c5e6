import { expect, test } from 'vitest';
import { tortureLeaseFile } from './torture.ts';

/** `npm run torture` has more rounds. */
test('killed processes leave complete files with the last reported lease', async () => {
  const { stored, reads } = await tortureLeaseFile({ rounds: 5, seed: 5 });
  expect(stored).toBeGreaterThan(0);
  expect(reads).toBeGreaterThan(0);
});
