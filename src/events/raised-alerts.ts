/** An alert, for the metrics of the process that records it. */
export interface RaisedAlert {
  /** Name of the limit in `risk` that caused it, or of another cause. */
  readonly control: string;
  readonly severity: 'warning' | 'critical';
  /** Time from its cause to its record, ms; null if the time of the cause is unknown. */
  readonly latency_ms: number | null;
}

const listeners = new Set<(alert: RaisedAlert) => void>();

/**
 * Calls `listener` with each alert that this process records.
 * @returns a function that removes the listener.
 */
export function onAlert(listener: (alert: RaisedAlert) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Counts an alert that is being recorded. */
export function notifyAlert(alert: RaisedAlert): void {
  for (const listener of listeners) listener(alert);
}
