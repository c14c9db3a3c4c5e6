/** Reasons why the halt of a deployment is not verified. */
export const HALT_FAULTS = [
  /** The deployment has not ended, or has ended in another way. */
  'deployment_not_halted',
  /** The task has not ended, or a worker still holds it. */
  'task_not_ended',
  /** The record of the session cannot be read, so its orders are unknown. */
  'orders_unknown',
  /** An order may still be working. */
  'order_not_canceled',
  /** The end is missing in the log of the bot, or its event was altered. */
  'not_in_log',
  /** The runner, which alone can cancel the orders, no longer reports. */
  'runner_silent',
  /** The cluster still had a pod when last observed. */
  'pod_left',
  /** The cluster does not answer, so a pod may be left. */
  'cluster_unreachable',
] as const;

export type HaltFault = (typeof HALT_FAULTS)[number];
