/** One version of a secret. */
export interface SecretVersion {
  readonly value: string;
  readonly version_id: string;
  /** By the clock of the store, at the latest: ms since the epoch. */
  readonly created_at: number;
}

/**
 * Where a customer's services get their secrets from. Every method throws ServiceError
 * `cloud_unavailable` (of Kubernetes `cluster_unavailable`) when there is no usable answer after
 * several attempts, `not_allowed` when the store refuses who asks, and `conflict` for what it
 * refuses otherwise. No error, nor its cause, has a value in it.
 */
export interface SecretStore {
  /** Where it is, for people: `AWS Secrets Manager in eu-west-1`. */
  readonly place: string;
  /**
   * Makes the value the current one, and the secret if there is none. Needs no right to read. What
   * is current already stays as it is, so that it may be called again when an answer was lost.
   *
   * @param token stands for the value, 32 to 64 characters: never the same with another.
   * @returns the id of the current version.
   */
  put(name: string, value: string, token: string): Promise<string>;
  /** Undefined when there is no such secret, or none with a value. */
  current(name: string): Promise<SecretVersion | undefined>;
  /** The one before; undefined also where the store keeps none. */
  previous(name: string): Promise<SecretVersion | undefined>;
  close(): void;
}
