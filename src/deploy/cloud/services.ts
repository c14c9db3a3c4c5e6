export type Role = 'api' | 'worker' | 'scheduler';

/** A process that runs, or is about to. */
export interface RunningTask {
  readonly id: string;
  /**
   * Its secrets are read between these two, the first at the earliest and the second at the latest:
   * ms since the epoch; null while it has not started.
   */
  readonly created_at: number;
  readonly started_at: number | null;
}

export interface ServiceState {
  readonly role: Role;
  /** Where it runs. */
  readonly name: string;
  /** How far what was last deployed is. */
  readonly rollout: Rollout & {
    readonly state: 'done' | 'in_progress' | 'failed';
    /** Why it failed, for people. */
    readonly detail: string | null;
  };
  /** Those that were given up, which may be followed by what was deployed before. */
  readonly failed_rollouts: readonly string[];
  readonly wanted: number;
  /** Without those that are being stopped. */
  readonly tasks: readonly RunningTask[];
}

/** One replacement of all tasks of a service. */
export interface Rollout {
  readonly id: string;
  /** ms since the epoch */
  readonly began_at: number;
}

/**
 * What a customer runs with the lease in its environment. Every method throws ServiceError
 * `cloud_unavailable` or `cluster_unavailable`, `not_allowed` and `conflict` as `SecretStore` does,
 * and `not_found` where there is no such service.
 */
export interface Services {
  /** How it is known what a task holds, as a sentence. */
  readonly inferred_from: string;
  states(): Promise<readonly ServiceState[]>;
  /** Has all its tasks replaced, one after the other, by such as read what was written before. */
  restart(service: Pick<ServiceState, 'role' | 'name'>): Promise<Rollout>;
  close(): void;
}
