import { expect, test } from 'vitest';
import { tortureLeaseFile } from './torture.ts';

/** `npm run torture` has more rounds. */
test('processes that store leases and are killed leave whole files, and the last they told of', async () => {
  const { stored, reads } = await tortureLeaseFile({ rounds: 5, seed: 5 });
  expect(stored).toBeGreaterThan(0);
  expect(reads).toBeGreaterThan(0);
});
