import type { LeaseRecord } from '../api/leases.ts';
import { NO_VALUE } from '../format.ts';
import type { Columns } from './items.ts';

export const LEASE_COLUMNS: Columns<LeaseRecord> = {
  lease: ({ lease_id }) => lease_id,
  deployment: ({ deployment_id }) => deployment_id,
  state: ({ state }) => state,
  'issued by': ({ issued_by }) => issued_by,
  issued: ({ issued_at }) => issued_at,
  expires: ({ expires_at }) => expires_at,
  'grace ends': ({ grace_ends_at }) => grace_ends_at,
  entitlements: ({ entitlements }) => entitlements.join(' ') || NO_VALUE,
};
