/** Statuses of a task, in their order. The last three are final. */
export const TASK_STATUSES = ['queued', 'running', 'success', 'failed', 'canceled'] as const;

/** Statuses that a list of tasks can select. `halted` selects the canceled tasks that a halt ended. */
export const LISTED_STATUSES = [...TASK_STATUSES, 'halted'] as const;

export type ListedStatus = (typeof LISTED_STATUSES)[number];
