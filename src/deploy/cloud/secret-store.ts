export interface SecretVersion {
  readonly value: string;
  readonly version_id: string;
  /** Latest possible creation time by the clock of the store, ms since the epoch. */
  readonly created_at: number;
}

/**
 * The place from which the services of a customer read their secrets. Every method throws
 * ServiceError: `cloud_unavailable` (`cluster_unavailable` for Kubernetes) without a usable response
 * after several attempts, `not_allowed` if the store denies access, and `conflict` if it rejects the
 * request otherwise. Neither errors nor their causes contain a secret value.
 */
export interface SecretStore {
  /** Human-readable location, such as `AWS Secrets Manager in eu-west-1`. */
  readonly place: string;
  /**
   * Makes the value current, creating the secret if necessary. Requires no permission to read.
   * Idempotent: writing the current value again changes nothing.
   *
   * @param token Identifies the value, 32 to 64 characters; must differ for different values.
   * @returns the ID of the current version.
   */
  put(name: string, value: string, token: string): Promise<string>;
  /** Undefined if the secret does not exist or has no value. */
  current(name: string): Promise<SecretVersion | undefined>;
  /** The version before the current one; always undefined if the store does not keep it. */
  previous(name: string): Promise<SecretVersion | undefined>;
  close(): void;
}
