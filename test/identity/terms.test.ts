import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leaseTerms, type InstallationTerms } from '../../src/identity/terms.ts';
import { USUAL_POLICY } from './policy.ts';

const DAY = 86_400;
const NOW = Date.UTC(2026, 0, 5, 9, 30, 0, 500);

function grounds(change: Partial<InstallationTerms> = {}): InstallationTerms {
  return {
    deployment_id: 'site',
    customer_id: 'acme',
    contract_id: 'acme-2026',
    contract_ends_at: Date.UTC(2027, 0, 1),
    entitlements: ['kb_federation', 'live_trading'],
    plan_id: 'pro',
    product: null,
    binding: 'none',
    ttl_seconds: null,
    grace_period_seconds: null,
    ...change,
  };
}

describe('the TTL and the grace period', () => {
  test('the periods are those of the server by default', () => {
    expect(leaseTerms(USUAL_POLICY, grounds(), {}, NOW)).toEqual({
      entitlements: ['kb_federation', 'live_trading'],
      issued_at: Date.UTC(2026, 0, 5, 9, 30),
      expires_at: Date.UTC(2026, 0, 12, 9, 30),
      grace_ends_at: Date.UTC(2026, 0, 15, 9, 30),
      ttl_seconds: 7 * DAY,
      grace_period_seconds: 3 * DAY,
      limits: [],
    });
  });

  test('the periods of the request precede those of the contract', () => {
    const contract = grounds({ ttl_seconds: 2 * DAY, grace_period_seconds: 0 });
    expect(leaseTerms(USUAL_POLICY, contract, {}, NOW)).toMatchObject({
      ttl_seconds: 2 * DAY,
      grace_period_seconds: 0,
    });
    expect(leaseTerms(USUAL_POLICY, contract, { ttl_seconds: DAY }, NOW)).toMatchObject({
      ttl_seconds: DAY,
      grace_period_seconds: 0,
    });
  });

  test('the periods end with the contract, which the limits report', () => {
    const contract_ends_at = Date.UTC(2026, 0, 14, 9, 30);
    expect(leaseTerms(USUAL_POLICY, grounds({ contract_ends_at }), {}, NOW)).toMatchObject({
      ttl_seconds: 7 * DAY,
      grace_ends_at: contract_ends_at,
      limits: [
        {
          field: 'grace_period_seconds',
          wanted: 3 * DAY,
          granted: 2 * DAY,
          because: 'contract_end',
        },
      ],
    });
    const soon = Date.UTC(2026, 0, 6);
    expect(leaseTerms(USUAL_POLICY, grounds({ contract_ends_at: soon }), {}, NOW)).toMatchObject({
      expires_at: soon,
      grace_ends_at: soon,
      limits: [
        { field: 'ttl_seconds', granted: 52_200, because: 'contract_end' },
        { field: 'grace_period_seconds', granted: 0, because: 'contract_end' },
      ],
    });
  });

  test('the periods of an older plan are cut to the maximum of the server', () => {
    const low = { ...USUAL_POLICY, ttl_max_seconds: DAY };
    expect(leaseTerms(low, grounds({ ttl_seconds: 30 * DAY }), {}, NOW)).toMatchObject({
      ttl_seconds: DAY,
      limits: [{ field: 'ttl_seconds', wanted: 30 * DAY, because: 'server_maximum' }],
    });
  });

  test('no requested period outlives the contract', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 400 * DAY * 1000 }),
        fc.record(
          {
            ttl_seconds: fc.integer({ min: 60, max: 90 * DAY }),
            grace_period_seconds: fc.integer({ min: 0, max: 30 * DAY }),
          },
          { requiredKeys: [] },
        ),
        (left, wishes) => {
          const contract_ends_at = NOW + 1000 + left;
          const terms = leaseTerms(USUAL_POLICY, grounds({ contract_ends_at }), wishes, NOW);
          expect(terms.grace_ends_at).toBeLessThanOrEqual(contract_ends_at);
          expect(terms.expires_at).toBeGreaterThan(terms.issued_at);
          expect(terms.grace_ends_at).toBeGreaterThanOrEqual(terms.expires_at);
        },
      ),
    );
  });
});

test('no lease is issued under a contract that has ended', () => {
  for (const contract_ends_at of [NOW, NOW - 1, NOW + 1]) {
    expect(() => leaseTerms(USUAL_POLICY, grounds({ contract_ends_at }), {}, NOW)).toThrow(
      expect.objectContaining({ code: 'contract_ended' }),
    );
  }
});

test('an administrator can grant fewer entitlements than the contract, but not more', () => {
  const some = leaseTerms(USUAL_POLICY, grounds(), { entitlements: ['live_trading'] }, NOW);
  expect(some.entitlements).toEqual(['live_trading']);
  expect(() =>
    leaseTerms(
      USUAL_POLICY,
      grounds(),
      { entitlements: ['live_trading', 'byoc_deployments'] },
      NOW,
    ),
  ).toThrow(
    expect.objectContaining({
      code: 'not_allowed',
      reason: 'entitlement_not_in_contract',
      message:
        'the contract acme-2026 does not include byoc_deployments; it includes kb_federation, live_trading',
    }),
  );
});
