/** What a lease can give, by the names that its entitlements have. */
export type Feature =
  /** Start a bot that trades with money. */
  | 'live_trading'
  /** Deploy to the customer's own cloud or cluster. */
  | 'byoc_deployments'
  /** Do research over federated knowledge. */
  | 'kb_federation';

/** Of every answer to what a lease in its grace period let through, with the value `grace`. */
export const LICENSE_STATUS_HEADER = 'X-Service-License-Status';
