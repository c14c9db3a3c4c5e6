import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leaseStatus, type LeaseStatus } from '../../src/lease/status.ts';
import { formatTime } from '../../src/lease/time.ts';
import { runs } from '../length.ts';
import { claimsOf, testKey } from './issuer.ts';

const key = testKey(1);
/** Valid from 5 to 12 January 2026, 09:30, in grace to 15 January. */
const lease = claimsOf(key);

type Row = readonly [
  now: string,
  signed: string | undefined,
  state: LeaseStatus['state'],
  reason: LeaseStatus['reason'],
  next: string | null,
];

describe('the state of a lease of seven days and three of grace', () => {
  test.each<Row>([
    // The clock alone.
    ['2026-01-05T09:30:00Z', undefined, 'valid', null, '2026-01-12T09:30:00Z'],
    ['2026-01-12T09:29:59.999Z', undefined, 'valid', null, '2026-01-12T09:30:00Z'],
    ['2026-01-12T09:30:00Z', undefined, 'grace', 'in_grace', '2026-01-15T09:30:00Z'],
    ['2026-01-15T09:29:59.999Z', undefined, 'grace', 'in_grace', '2026-01-15T09:30:00Z'],
    ['2026-01-15T09:30:00Z', undefined, 'expired', 'expired', null],
    ['2036-01-15T09:30:00Z', undefined, 'expired', 'expired', null],
    // A clock behind the issue: tolerated for 300 s.
    ['2026-01-05T09:25:00Z', undefined, 'valid', null, '2026-01-12T09:30:00Z'],
    ['2026-01-05T09:24:59.999Z', undefined, 'grace', 'not_yet_valid', '2026-01-05T09:25:00Z'],
    ['1970-01-01T00:00:00Z', undefined, 'grace', 'not_yet_valid', '2026-01-05T09:25:00Z'],
    // A signed time before the issue says nothing more.
    ['2026-01-05T09:25:00Z', '2026-01-01T00:00:00Z', 'valid', null, '2026-01-12T09:30:00Z'],
    // A clock behind a signed time after the issue.
    ['2026-01-08T08:55:00Z', '2026-01-08T09:00:00Z', 'valid', null, '2026-01-12T09:30:00Z'],
    [
      '2026-01-08T08:54:59.999Z',
      '2026-01-08T09:00:00Z',
      'grace',
      'clock_rollback',
      '2026-01-08T08:55:00Z',
    ],
    // Behind both: the issue of this lease is the nearer fault.
    [
      '2026-01-04T00:00:00Z',
      '2026-01-08T09:00:00Z',
      'grace',
      'not_yet_valid',
      '2026-01-05T09:25:00Z',
    ],
    // A signed time past the ends counts as the time.
    ['2026-01-12T09:29:00Z', '2026-01-12T09:30:00Z', 'grace', 'in_grace', '2026-01-15T09:30:00Z'],
    [
      '2026-01-06T00:00:00Z',
      '2026-01-13T00:00:00Z',
      'grace',
      'clock_rollback',
      '2026-01-12T23:55:00Z',
    ],
    ['2026-01-06T00:00:00Z', '2026-01-15T09:30:00Z', 'expired', 'expired', null],
    // A clock ahead of the signed time is the time.
    ['2026-01-13T00:00:00Z', '2026-01-08T09:00:00Z', 'grace', 'in_grace', '2026-01-15T09:30:00Z'],
  ])('at %s, having seen %s signed: %s, %s, next %s', (now, signed, state, reason, next) => {
    expect(leaseStatus(lease, Date.parse(now), signed)).toEqual({
      state,
      entitlements: state === 'expired' ? [] : ['live_trading', 'kb_federation'],
      reason,
      next_change_at: next,
    });
  });
});

test('a lease without grace expires at once', () => {
  const claims = claimsOf(key, { grace_period_seconds: 0 });
  const end = Date.parse(claims.expires_at);
  expect(leaseStatus(claims, end - 1).state).toBe('valid');
  expect(leaseStatus(claims, end).state).toBe('expired');
});

test('an invalid time throws', () => {
  const now = Date.parse(lease.issued_at);
  for (const none of [Number.NaN, Infinity, -Infinity]) {
    expect(() => leaseStatus(lease, none)).toThrow(RangeError);
  }
  expect(() => leaseStatus(lease, now, 'yesterday')).toThrow(RangeError);
  expect(() => leaseStatus({ ...lease, grace_ends_at: '' }, now)).toThrow(RangeError);
});

const ISSUED = Date.UTC(2026, 0, 5);
const span = fc.integer({ min: 1, max: 3000 });
/** Leases of minutes, so that chance brings the times near each other. */
const situation = fc
  .record({
    ttl: span,
    grace: fc.nat({ max: 3000 }),
    signed: fc.option(fc.integer({ min: -1000, max: 9000 }), { nil: undefined }),
    now: fc.integer({ min: -2_000_000, max: 9_000_000 }),
  })
  .map(({ ttl, grace, signed, now }) => ({
    claims: claimsOf(key, {
      issued_at: formatTime(ISSUED),
      ttl_seconds: ttl,
      grace_period_seconds: grace,
    }),
    signed: signed === undefined ? undefined : formatTime(ISSUED + signed * 1000),
    now: ISSUED + now,
  }));

const rank = ({ state }: LeaseStatus): number => ['valid', 'grace', 'expired'].indexOf(state);
const condition = (status: LeaseStatus): unknown => [status.state, status.reason];

test('the status changes exactly at next_change_at', () => {
  fc.assert(
    fc.property(situation, fc.double({ min: 0, max: 1, noNaN: true }), (given, fraction) => {
      const { claims, signed, now } = given;
      const status = leaseStatus(claims, now, signed);
      const next = status.next_change_at === null ? now + 1e10 : Date.parse(status.next_change_at);
      expect(next).toBeGreaterThan(now);
      const between = Math.min(next - 1, Math.floor(now + (next - now) * fraction));
      expect(leaseStatus(claims, between, signed)).toEqual(status);
      expect(leaseStatus(claims, next - 1, signed)).toEqual(status);
      if (status.next_change_at !== null) {
        expect(condition(leaseStatus(claims, next, signed))).not.toEqual(condition(status));
      }
    }),
    { numRuns: runs(500) },
  );
});

test('once the clock is right, the state only ever worsens', () => {
  fc.assert(
    fc.property(situation, fc.nat({ max: 9_000_000 }), ({ claims, signed, now }, later) => {
      const first = leaseStatus(claims, now, signed);
      fc.pre(first.reason !== 'not_yet_valid' && first.reason !== 'clock_rollback');
      const second = leaseStatus(claims, now + later, signed);
      expect(rank(second)).toBeGreaterThanOrEqual(rank(first));
    }),
    { numRuns: runs(500) },
  );
});

test('no wrong clock makes the time earlier than the latest signed time', () => {
  fc.assert(
    fc.property(situation, ({ claims, signed, now }) => {
      const seen = Math.max(ISSUED, signed === undefined ? ISSUED : Date.parse(signed));
      expect(rank(leaseStatus(claims, now, signed))).toBeGreaterThanOrEqual(
        rank(leaseStatus(claims, seen)),
      );
    }),
    { numRuns: runs(500) },
  );
});

test('a clock that is behind never ends a lease', () => {
  fc.assert(
    fc.property(situation, ({ claims, signed, now }) => {
      const seen = Math.max(ISSUED, signed === undefined ? ISSUED : Date.parse(signed));
      fc.pre(now < seen && seen < Date.parse(claims.grace_ends_at));
      expect(leaseStatus(claims, now, signed)).toMatchObject({
        state: expect.not.stringMatching('expired'),
        entitlements: claims.entitlements,
      });
    }),
    { numRuns: runs(500) },
  );
});
