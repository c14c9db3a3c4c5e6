import type { ErrorData } from '../../base/error-data.ts';
import type { TasksTable } from '../../storage/tables.ts';

/** `shard` for shards of searches. */
type Kind = TasksTable['kind'] | 'shard';

/** Receives what this process does with tasks and shards, for its metrics and its log. */
export interface TaskListener {
  ended(kind: Kind, status: 'success' | 'failed' | 'canceled'): void;
  /** Follows `ended` of a task, but not of a shard, whose search reports the failure. */
  failed(task: Pick<TasksTable, 'task_id' | 'bot_id'>, error: ErrorData): void;
  requeued(kind: Kind, reason: string): void;
  /** A batch of a paper session was recorded this time after its last step, ms. */
  recorded(ms: number): void;
}

/** Paper sessions of this process that wait for files of archived events, by task. */
export const archiveWaits = new Set<string>();

const listeners = new Set<Partial<TaskListener>>();

/** @returns a function that removes the listener. */
export function watchTasks(listener: Partial<TaskListener>): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Tells the listeners what is being recorded. A write that is repeated counts again. */
export const taskNotices: TaskListener = {
  ended(kind, status) {
    for (const listener of listeners) listener.ended?.(kind, status);
  },
  failed(task, error) {
    for (const listener of listeners) listener.failed?.(task, error);
  },
  requeued(kind, reason) {
    for (const listener of listeners) listener.requeued?.(kind, reason);
  },
  recorded(ms) {
    for (const listener of listeners) listener.recorded?.(ms);
  },
};
