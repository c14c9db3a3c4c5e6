import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MOST_REQUESTS_PER_HOUR } from '../../daemon/retry-schedule.ts';
import { isAtLength } from '../length.ts';
import { simulateFleet } from './fleet.ts';

const DAY = 86_400;

describe('a fleet that loses its server', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'service-local-fleet-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const simulate = (devices: number, outageHours: number) => {
    const plan = { devices, days: 14, outageHours, seed: 1 };
    return simulateFleet(plan, join(directory, 'server.sqlite'));
  };

  it('keeps every lease through an outage of 12 hours, when most renewals are due', async () => {
    const devices = isAtLength ? 200 : 3;
    const report = await simulate(devices, 12);
    const { first, afterOutage, calm } = report.traffic;
    expect(report).toMatchObject({ lapsed: { pastExpiry: 0, pastGrace: 0 }, refusals: [] });
    expect(report.mostRequestsInAnHour).toBeLessThanOrEqual(MOST_REQUESTS_PER_HOUR);
    expect(report.outage.from).toBeGreaterThanOrEqual(6 * DAY);
    expect(report.unanswered).toBeGreaterThan(devices * 12);
    expect([first, afterOutage, calm].map(({ leases }) => leases)).toEqual([
      devices,
      devices,
      devices,
    ]);
    expect(report.registered).toBe(3 * devices);
  });

  it.runIf(isAtLength)(
    'lets leases expire, but stay in their grace period, when the outage is longer than renewals can wait',
    async () => {
      const { lapsed } = await simulate(8, 30);
      expect(lapsed).toEqual({ pastExpiry: 8, pastGrace: 0 });
    },
  );

  it.runIf(isAtLength)(
    'loses no lease in a year of rotations, with an expired keyset for a month',
    async () => {
      const plan = { devices: 20, days: 365, outageHours: 12, seed: 1, rotations: true };
      const report = await simulateFleet(plan, join(directory, 'server.sqlite'));
      expect(report).toMatchObject({ lapsed: { pastExpiry: 0, pastGrace: 0 }, refusals: [] });
      expect(report.rotations).toHaveLength(12);
      expect(report.underLastKey).toBe(20);
      expect(report.mostRequestsInAnHour).toBeLessThanOrEqual(MOST_REQUESTS_PER_HOUR);
    },
  );
});
