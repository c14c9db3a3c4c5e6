import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyEvent, History } from './history.ts';
import { newLeaseWorld } from './lease-world.ts';
import { runs } from '../length.ts';

test('in any order of events, no lease outlives its contract, no key retires early, no revoked lease is renewed, and the log is valid', async () => {
  const property = fc.asyncProperty(
    fc.array(anyEvent, { minLength: 10, maxLength: 60 }),
    async (events) => {
      const world = await newLeaseWorld('sqlite');
      try {
        const history = new History(world);
        for (const event of events) await history.apply(event);
        await history.checkAudit();
      } finally {
        await world.close();
      }
    },
  );
  const result = await fc.check(property, { numRuns: runs(7) });
  expect(result.failed, fc.defaultReportMessage(result)).toBe(false);
});
