/** Statuses of a task, in their order. The last three are final. */
export const TASK_STATUSES = ['queued', 'running', 'success', 'failed', 'canceled'] as const;
