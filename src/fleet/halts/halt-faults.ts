import type { BotDeploymentsTable } from '../../storage/tables.ts';
import type { HaltedOrder } from './end-sessions.ts';

/** Why a deployment cannot be said to have been halted. */
export const HALT_FAULTS = [
  /** It has not ended, or otherwise. */
  'deployment_not_halted',
  /** Its task has not ended, or a worker still holds it. */
  'task_not_ended',
  /** The record of its session cannot be read: its orders are not known. */
  'orders_unknown',
  /** One of its orders may still be working. */
  'order_not_canceled',
  /** The log of the bot does not tell of its end, or not as it was written. */
  'not_in_log',
  /** Its runner, which alone can cancel its orders, is not heard of any more. */
  'runner_silent',
  /** The cluster has a pod of it still, as far as is known. */
  'pod_left',
  /** The cluster does not answer: it is not known whether a pod is left. */
  'cluster_unreachable',
] as const;

export type HaltFault = (typeof HALT_FAULTS)[number];

export interface VerifiedOrder extends HaltedOrder {
  /**
   * Whether it works no more, and its cancellation is in the log of the bot; of one at a venue,
   * whether the venue has told that it has ended.
   */
  readonly verified: boolean;
}

export interface VerifiedDeployment extends Readonly<
  Pick<BotDeploymentsTable, 'deployment_id' | 'bot_id' | 'target' | 'task_id' | 'status'>
> {
  readonly verified: boolean;
  /** Empty when it is verified. */
  readonly faults: readonly HaltFault[];
  /** Those that were working when it was halted. */
  readonly orders: readonly VerifiedOrder[];
}
