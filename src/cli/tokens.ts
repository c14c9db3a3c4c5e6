import type { Token } from '../api/administrators.ts';
import { NO_VALUE } from '../format.ts';
import type { Columns } from './items.ts';

export const TOKEN_COLUMNS: Columns<Token> = {
  token: ({ token_id }) => token_id,
  administrator: ({ administrator }) => administrator,
  label: ({ label }) => label,
  scopes: ({ scopes }) => scopes.join(' '),
  expires: ({ expires_at }) => expires_at,
  revoked: ({ revoked_at }) => revoked_at ?? NO_VALUE,
};
