import fc from 'fast-check';
import { expect, test } from 'vitest';
import { renewalMoment, renewalRestMs } from '../../src/lease/renewal-moment.ts';
import { parseTime } from '../../src/lease/time.ts';
import { claimsOf, testKey } from './issuer.ts';

const key = testKey(1);
const HOUR = 3_600_000;

test('a lease of a week is renewed at a fixed moment within six hours that begin a day before its end', () => {
  const claims = claimsOf(key);
  const end = parseTime(claims.expires_at)!;
  const moment = renewalMoment(claims);
  expect(moment).toBeGreaterThanOrEqual(end - 24 * HOUR);
  expect(moment).toBeLessThan(end - 18 * HOUR);
  expect(renewalMoment({ ...claims })).toBe(moment);
});

test('a short lease is not due before two thirds of it are over', () => {
  fc.assert(
    fc.property(fc.integer({ min: 60, max: 90 * 86_400 }), fc.uuid(), (ttl, lease_id) => {
      const claims = claimsOf(key, { ttl_seconds: ttl, lease_id });
      const issued = parseTime(claims.issued_at)!;
      const end = parseTime(claims.expires_at)!;
      const moment = renewalMoment(claims);
      expect(moment).toBeGreaterThanOrEqual(Math.floor(issued + ((end - issued) * 2) / 3));
      expect(end - moment).toBeGreaterThanOrEqual(Math.floor(renewalRestMs(ttl * 1000) * 0.75));
    }),
  );
});

test('leases issued in one minute spread their renewals evenly over the window', () => {
  const ids = Array.from({ length: 4000 }, (_, i) => `lease-${i}`);
  const quarters = [0, 0, 0, 0];
  for (const lease_id of ids) {
    const claims = claimsOf(key, { lease_id });
    const start = parseTime(claims.expires_at)! - 24 * HOUR;
    const share = (renewalMoment(claims) - start) / (6 * HOUR);
    quarters[Math.floor(share * 4)]! += 1;
  }
  for (const count of quarters) expect(count).toBeGreaterThan(900);
});
