/** Features that require a license, by their names in entitlements. */
export type Feature =
  /** Start a bot that trades real money. */
  | 'live_trading'
  /** Deploy to the customer's own cloud or cluster. */
  | 'byoc_deployments'
  /** Search federated knowledge in research. */
  | 'kb_federation';

/** Response header of requests that were allowed by a lease in its grace period; its value is `grace`. */
export const LICENSE_STATUS_HEADER = 'X-Service-License-Status';
