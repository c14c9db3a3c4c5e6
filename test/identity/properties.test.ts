import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyEvent, History } from './history.ts';
import { newLeaseWorld } from './lease-world.ts';
import { runs } from '../length.ts';

/** Raise it for a long run: `PROPERTY_RUNS=1000 vitest run --config test/vitest.config.ts properties`. */
const RUNS = Number(process.env['PROPERTY_RUNS'] ?? runs(25));

test(
  'whatever happens in whatever order: no lease outlives its contract, no key retires early, what is revoked is not renewed, and the log is whole',
  { timeout: 60_000 + RUNS * 500 },
  async () => {
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
    const result = await fc.check(property, { numRuns: RUNS });
    expect(result.failed, fc.defaultReportMessage(result)).toBe(false);
  },
);
