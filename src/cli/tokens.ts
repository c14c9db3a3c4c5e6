import type { Token } from '../api/administrators.ts';
import { NO_VALUE } from '../base/format.ts';
import { formatSeconds } from '../base/seconds.ts';
import type { Columns } from './show-items.ts';

/** Empty if the token is not narrowed. */
function formatNarrowing({ deployment_ids, customer_id, max_ttl_seconds }: Token): string {
  return [
    ...(deployment_ids ?? []),
    ...(customer_id === null ? [] : [`customer ${customer_id}`]),
    ...(max_ttl_seconds === null ? [] : [`TTL ${formatSeconds(max_ttl_seconds)}`]),
  ].join(', ');
}

export const TOKEN_COLUMNS: Columns<Token> = {
  token: ({ token_id }) => token_id,
  administrator: ({ administrator }) => administrator,
  label: ({ label }) => label,
  scopes: ({ scopes }) => scopes.join(' '),
  'narrowed to': (token) => formatNarrowing(token) || NO_VALUE,
  expires: ({ expires_at }) => expires_at ?? 'never',
  revoked: ({ revoked_at }) => revoked_at ?? NO_VALUE,
};
