import type { LeasePolicy } from '../../src/identity/context.ts';

const DAY = 86_400;

/** The default settings of a server. */
export const USUAL_POLICY: LeasePolicy = {
  issuer: 'service-local',
  product: 'service-local',
  ttl_seconds: 7 * DAY,
  ttl_max_seconds: 90 * DAY,
  grace_period_seconds: 3 * DAY,
  grace_period_max_seconds: 30 * DAY,
  registry_enforced: true,
  clone_policy: 'alert',
};
