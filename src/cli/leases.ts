import type { LeaseAnswer, LeaseRecord } from '../api/leases.ts';
import type { License } from '../api/licenses.ts';
import { formatActor, NO_VALUE } from '../base/format.ts';
import { formatSeconds } from '../base/seconds.ts';
import type { Columns } from './show-items.ts';

export const LEASE_COLUMNS: Columns<LeaseRecord> = {
  lease: ({ lease_id }) => lease_id,
  installation: ({ deployment_id }) => deployment_id,
  state: ({ state }) => state,
  'issued by': ({ issued_by, issued_by_name }) => formatActor(issued_by, issued_by_name),
  issued: ({ issued_at }) => issued_at,
  expires: ({ expires_at }) => expires_at,
  'grace ends': ({ grace_ends_at }) => grace_ends_at,
  entitlements: ({ entitlements }) => entitlements.join(' ') || NO_VALUE,
};

export const LICENSE_COLUMNS: Columns<License> = {
  installation: ({ deployment_id }) => deployment_id,
  customer: ({ customer_id }) => customer_id,
  state: ({ state, silent }) => (silent ? `${state}, silent` : state),
  'last renewal': ({ lease }) => lease?.issued_at ?? NO_VALUE,
  expires: ({ lease }) => lease?.expires_at ?? NO_VALUE,
  'grace ends': ({ lease }) => lease?.grace_ends_at ?? NO_VALUE,
  lease: ({ lease }) => lease?.lease_id ?? NO_VALUE,
};

const LIMIT_REASONS: Readonly<Record<LeaseAnswer['limits'][number]['because'], string>> = {
  contract_end: 'the contract ends then',
  token_maximum: 'the token allows no longer',
  server_maximum: 'the server allows no longer',
};

export function formatLimits(limits: LeaseAnswer['limits']): string[] {
  return limits.map(({ field, wanted, granted, because }) => {
    const what = field === 'ttl_seconds' ? 'the lease is valid for' : 'the grace period is';
    return `${what} ${formatSeconds(granted)} instead of ${formatSeconds(wanted)}: ${LIMIT_REASONS[because]}`;
  });
}
