import type { getOwnToken, listTokens, Token } from '../../api/administrators.ts';
import { formatCountOf } from '../../base/format.ts';
import { remedyWithout } from '../../base/scopes.ts';
import type { Check } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';

/** Reports tokens with which a thief could issue leases for any installation without a time limit. */
export const TOKENS_CHECK: Check<Facts> = {
  code: 'tokens',
  async run({ administrator }) {
    const server = await administrator!();
    const { scopes } = await server.call<typeof getOwnToken>('get', '/identity/token', {});
    if (!scopes.includes('admin')) {
      return {
        status: 'skip',
        summary: 'not checked, because the login lacks the scope admin, which shows every token',
        evidence: { scopes },
        remedy: remedyWithout('admin', scopes),
      };
    }
    const wide = (
      await Array.fromAsync(server.items<typeof listTokens>('get', '/identity/tokens', {}))
    ).filter(isWide);
    const tokens = wide.map(({ token_id, label, administrator: owner }) => ({
      token_id,
      label,
      administrator: owner,
    }));
    const evidence = { tokens };
    if (wide.length === 0) {
      const summary = 'each token that can issue leases expires or is restricted';
      return { status: 'ok', summary, evidence };
    }
    const names = tokens.map(
      ({ token_id, label, administrator: owner }) => `${token_id} (${label}, of ${owner})`,
    );
    return {
      status: 'warn',
      summary: `${formatCountOf(wide.length, 'token')} can issue leases for every installation and never expire: ${names.join('; ')}`,
      evidence,
      remedy:
        'Create tokens that expire or are restricted with `service-local identity tokens create`, then revoke these with `service-local identity tokens revoke ID`.',
    };
  },
};

function isWide(token: Token): boolean {
  const { scopes, expires_at, revoked_at, deployment_ids, customer_id, max_ttl_seconds } = token;
  const isRestricted = deployment_ids !== null || customer_id !== null || max_ttl_seconds !== null;
  return scopes.includes('license') && revoked_at === null && expires_at === null && !isRestricted;
}
