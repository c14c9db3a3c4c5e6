import type { KeyState } from '../api/keys.ts';
import { NO_VALUE } from '../base/format.ts';
import type { Columns } from './show-items.ts';

export const KEY_COLUMNS: Columns<KeyState> = {
  key: ({ public_key_id }) => public_key_id,
  status: ({ status }) => status,
  activated: ({ activated_at }) => activated_at,
  'in keyset': ({ in_keyset }) => (in_keyset === null ? NO_VALUE : in_keyset ? 'yes' : 'no'),
  leases: ({ outstanding_leases }) => String(outstanding_leases),
  'can be retired': ({ retirable_at }) => retirable_at ?? NO_VALUE,
};
