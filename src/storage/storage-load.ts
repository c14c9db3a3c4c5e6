/** Load of the database, for the metrics of the process. */
export interface StorageListener {
  /** A write left the queue after this time, ms. */
  waited(ms: number): void;
  /** An attempt failed because the database was unreachable or busy; it may be repeated. */
  failed(): void;
}

const listeners = new Set<StorageListener>();

/** @returns a function that removes the listener. */
export function watchStorageLoad(listener: StorageListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function notifyWait(ms: number): void {
  for (const listener of listeners) listener.waited(ms);
}

export function notifyFailure(): void {
  for (const listener of listeners) listener.failed();
}
