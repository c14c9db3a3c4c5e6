import type { TasksTable } from '../../storage/tables.ts';

/** `shard` for shards of searches. */
type Kind = TasksTable['kind'] | 'shard';

/** Receives what this process does with tasks and shards, for its metrics. */
export interface TaskListener {
  ended(kind: Kind, status: 'success' | 'failed' | 'canceled'): void;
  requeued(kind: Kind, reason: string): void;
  /** A batch of a paper session was recorded this time after its last step, ms. */
  recorded(ms: number): void;
}

/** Paper sessions of this process that wait for files of archived events, by task. */
export const archiveWaits = new Set<string>();

const listeners = new Set<TaskListener>();

/** @returns a function that removes the listener. */
export function watchTasks(listener: TaskListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Tells the listeners what is being recorded. A write that is repeated counts again. */
export const taskNotices: TaskListener = {
  ended(kind, status) {
    for (const listener of listeners) listener.ended(kind, status);
  },
  requeued(kind, reason) {
    for (const listener of listeners) listener.requeued(kind, reason);
  },
  recorded(ms) {
    for (const listener of listeners) listener.recorded(ms);
  },
};
