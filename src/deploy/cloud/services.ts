export type Role = 'api' | 'worker' | 'scheduler';

export interface RunningTask {
  readonly id: string;
  /** Earliest time at which the task read its secrets, ms since the epoch. */
  readonly created_at: number;
  /** Latest time at which the task read its secrets, ms since the epoch; null before its start. */
  readonly started_at: number | null;
}

export interface ServiceState {
  readonly role: Role;
  readonly name: string;
  /** The latest rollout. */
  readonly rollout: Rollout & {
    readonly state: 'done' | 'in_progress' | 'failed';
    /** Why the rollout failed. */
    readonly detail: string | null;
  };
  /** IDs of abandoned rollouts. The cloud may have rolled back to the deployment before them. */
  readonly failed_rollouts: readonly string[];
  /** Configured number of tasks. */
  readonly wanted: number;
  /** Excludes tasks that are stopping. */
  readonly tasks: readonly RunningTask[];
}

/** One replacement of all tasks of a service. */
export interface Rollout {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly began_at: number;
}

/**
 * The services of a customer that have the lease in their environment. Every method throws the
 * errors of `SecretStore`, and `not_found` if a service does not exist.
 */
export interface Services {
  /** Explains to the user how the lease of a task is determined. */
  readonly inferred_from: string;
  states(): Promise<readonly ServiceState[]>;
  /** Starts a rolling replacement of all tasks; the new tasks read the current secrets. */
  restart(service: Pick<ServiceState, 'role' | 'name'>): Promise<Rollout>;
  close(): void;
}
