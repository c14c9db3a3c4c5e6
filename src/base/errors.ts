/**
 * Every failure that a user can meet has one stable code. Exit code and HTTP status follow from it,
 * and the same code appears in `--json` output, logs, metrics and the reference. Codes without a
 * status occur only in the CLI.
 */
export const ERROR_TABLE = {
  failure: { exit: 1, status: 500, meaning: 'unexpected error' },
  strategy_failed: {
    exit: 1,
    meaning: 'the strategy failed, or used what a strategy must not use',
  },
  strategy_timeout: { exit: 1, meaning: 'a step of the strategy took too long' },
  not_deterministic: { exit: 1, meaning: 'two runs over the same inputs differ' },
  output_not_writable: { exit: 1, meaning: 'a file cannot be written' },
  usage: { exit: 2, meaning: 'wrong command, argument or option' },
  unknown_setting: { exit: 2, meaning: 'a setting does not exist' },
  invalid_setting: { exit: 2, meaning: 'a setting has an invalid value' },
  invalid_spec: {
    exit: 3,
    status: 422,
    meaning: 'the bot file is invalid; `problems` lists every fault',
  },
  invalid_data: { exit: 3, meaning: 'a data file is invalid or unreadable' },
  file_not_found: { exit: 3, meaning: 'a file does not exist' },
  invalid_strategy: { exit: 3, meaning: 'the module of a strategy cannot be loaded' },
  gate_not_met: { exit: 5, meaning: 'a result is outside of the limits that its gates set' },
  lock_drift: { exit: 6, meaning: 'something that the lock covers has changed' },
  halt_not_verified: {
    exit: 7,
    meaning: 'a halt failed or is not verified; the message states whether it is in force',
  },
  inconclusive: { exit: 8, meaning: 'the host was too slow, too busy or too small for a verdict' },
  interrupted: { exit: 130, meaning: 'ended by Ctrl-C or SIGTERM' },
  invalid_signing_key: {
    exit: 3,
    meaning: 'the signing key is missing, unreadable or of another kind',
  },
  audit_tampered: {
    exit: 1,
    status: 500,
    meaning: 'entries of the audit log are altered or missing',
  },
  trials_tampered: {
    exit: 1,
    status: 500,
    meaning: 'entries of the trial ledger are altered or missing',
  },
  events_tampered: { exit: 1, meaning: 'events of a bot are altered or missing' },
  bundle_tampered: {
    exit: 1,
    status: 500,
    meaning: 'the code or spec of a version has been altered',
  },
  server_unreachable: {
    exit: 1,
    meaning: 'the server does not answer, or is not a service-local server',
  },
  invalid_request: {
    exit: 3,
    status: 400,
    meaning: 'body, parameters or headers are invalid; `errors` has pointers into them',
  },
  not_authenticated: {
    exit: 4,
    status: 401,
    meaning: 'the token or login is missing, wrong, expired or revoked',
  },
  invalid_device_proof: {
    exit: 4,
    status: 401,
    meaning: 'the proof of a device is refused; `reason` states why',
  },
  step_up_required: {
    exit: 4,
    status: 401,
    meaning: 'the action needs a fresh second factor for its target',
  },
  not_allowed: { exit: 4, status: 403, meaning: 'the token does not allow the action' },
  license_revoked: { exit: 4, status: 403, meaning: 'the lease or installation is revoked' },
  contract_ended: { exit: 4, status: 403, meaning: 'the contract has ended' },
  license_invalid: {
    exit: 4,
    status: 403,
    meaning: 'no lease allows the action; `reason` states why',
  },
  not_found: { exit: 1, status: 404, meaning: 'the resource does not exist' },
  archived: {
    exit: 1,
    status: 410,
    meaning: 'the events are in an archive, which the message names',
  },
  method_not_allowed: { exit: 1, status: 405, meaning: 'the path does not have this method' },
  conflict: { exit: 6, status: 409, meaning: 'the current state does not allow the action' },
  database_not_adopted: {
    exit: 6,
    status: 409,
    meaning: 'the database is a copy or has moved; nothing trades until it is adopted',
  },
  incompatible_version: {
    exit: 6,
    status: 409,
    meaning: 'client and server have versions that do not work together; `reason` names the older',
  },
  stale: { exit: 6, status: 412, meaning: 'the resource has changed since it was read' },
  precondition_required: { exit: 3, status: 428, meaning: 'the header `If-Match` is missing' },
  credential_cloned: {
    exit: 6,
    status: 409,
    meaning: 'a lease was renewed twice: its device was cloned or restored from a backup',
  },
  key_in_use: { exit: 6, status: 409, meaning: 'leases under this signing key are still in use' },
  payload_too_large: { exit: 3, status: 413, meaning: 'the body is too large' },
  unsupported_media_type: {
    exit: 3,
    status: 415,
    meaning: 'the body is not of the expected media type',
  },
  confirmation_mismatch: {
    exit: 2,
    status: 422,
    meaning: 'the typed confirmation is not the id of the target',
  },
  idempotency_mismatch: {
    exit: 6,
    status: 422,
    meaning: 'the idempotency key was used for another request',
  },
  rate_limited: { exit: 1, status: 429, meaning: 'too many requests' },
  license_lease_unavailable: {
    exit: 1,
    status: 503,
    meaning: 'the server has no usable signing key; everything but issuing works',
  },
  overloaded: {
    exit: 1,
    status: 503,
    meaning: 'the server has too many requests to answer in time',
  },
  exchange_unavailable: { exit: 1, status: 503, meaning: 'an exchange does not answer' },
  chat_failed: {
    exit: 1,
    status: 502,
    meaning: 'the language model gave no complete answer; it is not asked again automatically',
  },
  cluster_unavailable: { exit: 1, status: 503, meaning: 'a Kubernetes cluster does not answer' },
  storage_unavailable: { exit: 1, status: 503, meaning: 'the database does not answer' },
  cloud_unavailable: {
    exit: 1,
    meaning: "a secret store or a customer's cloud gives no usable answer",
  },
  backup_tool_missing: { exit: 1, meaning: '`pg_dump` or `pg_restore` is missing or too old' },
  rollout_failed: { exit: 1, meaning: 'the restarted services of a customer did not become ready' },
} as const satisfies Readonly<
  Record<string, { readonly exit: number; readonly status?: number; readonly meaning: string }>
>;

export type ErrorCode = keyof typeof ERROR_TABLE;

export const ERROR_CODES = Object.keys(ERROR_TABLE) as readonly ErrorCode[];

/** Codes after which the same request may succeed later. */
const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'rate_limited',
  'license_lease_unavailable',
  'overloaded',
  'exchange_unavailable',
  'cluster_unavailable',
  'storage_unavailable',
  'cloud_unavailable',
  'server_unreachable',
]);

/** One fault in a file that the user wrote. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly file?: string;
  /** 1-based. */
  readonly line?: number;
  /** 1-based. */
  readonly column?: number;
  /** RFC 6901 JSON pointer into the document. */
  readonly pointer?: string;
  readonly suggestion?: string;
}

export interface ServiceErrorOptions {
  /** What the user can do, as an imperative sentence. */
  readonly remedy?: string;
  readonly problems?: readonly Problem[];
  /** Distinguishes the causes of a code that has several; as stable as the code. */
  readonly reason?: string;
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** An expected failure, shown to the user in full. Any other error is a bug and keeps its stack. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly remedy: string | undefined;
  readonly problems: readonly Problem[];
  readonly reason: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.remedy = options.remedy;
    this.problems = options.problems ?? [];
    this.reason = options.reason;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get exitCode(): number {
    return ERROR_TABLE[this.code].exit;
  }

  /** HTTP status; 500 for codes that should not occur in a server. */
  get status(): number {
    const row: { readonly exit: number; readonly status?: number } = ERROR_TABLE[this.code];
    return row.status ?? 500;
  }

  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}
