import { printableLine } from './printable.ts';

/**
 * Every failure a user can meet has one stable code. The CLI's exit code follows from it, and the
 * status of an HTTP answer; the same code appears in `--json` output, logs, metrics and
 * documentation. Codes without a status of their own never leave the CLI.
 */
const CODES = {
  failure: { exit: 1, status: 500 },
  strategy_failed: { exit: 1 },
  strategy_timeout: { exit: 1 },
  not_deterministic: { exit: 1 },
  output_not_writable: { exit: 1 },
  usage: { exit: 2 },
  unknown_setting: { exit: 2 },
  invalid_setting: { exit: 2 },
  invalid_spec: { exit: 3, status: 422 },
  invalid_data: { exit: 3 },
  file_not_found: { exit: 3 },
  invalid_strategy: { exit: 3 },
  gate_not_met: { exit: 5 },
  lock_drift: { exit: 6 },
  /** A halt failed, or not all of it is known to have ended; the message says whether it is in force. */
  halt_not_verified: { exit: 7 },
  /** The host was too slow, too busy or too small for a verdict. */
  inconclusive: { exit: 8 },
  interrupted: { exit: 130 },

  /** The signing key is missing, unreadable or of another kind. */
  invalid_signing_key: { exit: 3 },
  /** The audit log is not as it was written. */
  audit_tampered: { exit: 1, status: 500 },
  /** The events of a bot are not as they were written. */
  events_tampered: { exit: 1 },
  /** The code or the spec of a version is not as it was when the version was made. */
  bundle_tampered: { exit: 1, status: 500 },
  /** The server could not be reached, or what answered is no such server. */
  server_unreachable: { exit: 1 },

  /** Body, parameters or headers of a request are wrong; `problems` has pointers into them. */
  invalid_request: { exit: 3, status: 400 },
  /** No bearer token, or one that is unknown, expired or revoked; a wrong name or password. */
  not_authenticated: { exit: 4, status: 401 },
  /** The proof that a device sends with a request was refused; `reason` says why. */
  invalid_device_proof: { exit: 4, status: 401 },
  /** The action needs a fresh second factor for just this target. */
  step_up_required: { exit: 4, status: 401 },
  /** The token lacks the scope. */
  not_allowed: { exit: 4, status: 403 },
  /** Lease or deployment is revoked, and the registry is enforced. */
  license_revoked: { exit: 4, status: 403 },
  contract_ended: { exit: 4, status: 403 },
  /** No lease that is good for what was asked; `reason` is a `LeaseReason`. */
  license_invalid: { exit: 4, status: 403 },
  not_found: { exit: 1, status: 404 },
  method_not_allowed: { exit: 1, status: 405 },
  conflict: { exit: 6, status: 409 },
  /** The database is a copy or has moved: nothing trades with it until it is adopted. */
  database_not_adopted: { exit: 6, status: 409 },
  /** What is to be changed is not as the request says it is. */
  stale: { exit: 6, status: 412 },
  /** A change that does not say what it is to change: `If-Match` is missing. */
  precondition_required: { exit: 3, status: 428 },
  /** A lease has been renewed twice: its device was cloned, or restored from a backup. */
  credential_cloned: { exit: 6, status: 409 },
  /** A signing key under which leases are still out there. */
  key_in_use: { exit: 6, status: 409 },
  payload_too_large: { exit: 3, status: 413 },
  unsupported_media_type: { exit: 3, status: 415 },
  /** What the person typed to confirm is not the target. */
  confirmation_mismatch: { exit: 2, status: 422 },
  /** The same idempotency key with another request. */
  idempotency_mismatch: { exit: 6, status: 422 },
  rate_limited: { exit: 1, status: 429 },
  /** The server has no usable signing key; all but issuing works. */
  license_lease_unavailable: { exit: 1, status: 503 },
  /** More requests wait than the server can promise to serve. */
  overloaded: { exit: 1, status: 503 },
  /** An exchange whose market data are needed does not answer. */
  exchange_unavailable: { exit: 1, status: 503 },
  /** What a language model was asked got no answer, or not all of one; it is not asked again by itself. */
  chat_failed: { exit: 1, status: 502 },
  /** A cluster that bots are deployed to does not answer. */
  cluster_unavailable: { exit: 1, status: 503 },
  storage_unavailable: { exit: 1, status: 503 },
  /** A secret store, or what runs the services of a customer, gives no usable answer. */
  cloud_unavailable: { exit: 1 },
  /** A program that a backup of PostgreSQL needs is missing or too old. */
  backup_tool_missing: { exit: 1 },
  /** The services of a customer did not come up anew. */
  rollout_failed: { exit: 1 },
} as const satisfies Readonly<Record<string, { readonly exit: number; readonly status?: number }>>;

export type ErrorCode = keyof typeof CODES;

export const ERROR_CODES = Object.keys(CODES) as readonly ErrorCode[];

/** Codes that the same request may not meet the next time. */
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

/** One fault in a file the user wrote: where it is, what is wrong, and what was probably meant. */
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
  /** What the user can do about it, as an imperative sentence. */
  readonly remedy?: string;
  readonly problems?: readonly Problem[];
  /** Which of the causes that the code has, where it has several; stable, as the code is. */
  readonly reason?: string;
  /** After how many seconds it may be tried again. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** An expected failure, told to the user in full. Any other error is a bug and keeps its stack. */
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
    return CODES[this.code].exit;
  }

  /** Of the HTTP answer; 500 for what should not have come up in a server. */
  get status(): number {
    const row: { readonly exit: number; readonly status?: number } = CODES[this.code];
    return row.status ?? 500;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

/** Whether the operating system refused something; with codes such as `ENOENT`, for one of these reasons. */
export function isSystemError(
  error: unknown,
  ...codes: readonly string[]
): error is NodeJS.ErrnoException {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) return false;
  return codes.length === 0 || codes.includes(String(error.code));
}

export const FULL_DISK = 'The disk is full: free space, or write elsewhere.';

/** Remedy for a failed write; a full disk needs free space, not permissions. */
export function writeRemedy(error: unknown, otherwise: string): string {
  if (isSystemError(error, 'ENOSPC')) return FULL_DISK;
  if (isSystemError(error, 'EDQUOT'))
    return 'The quota is used up: free space, or write elsewhere.';
  if (isSystemError(error, 'EROFS')) return 'The file system is read-only: write elsewhere.';
  return otherwise;
}

/** `file:line:column /pointer CODE message (did you mean …)` in one line; absent parts are left out. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, pointer, code, message, suggestion } = problem;
  const place = [file, line, column].filter((part) => part !== undefined).join(':');
  const hint = suggestion === undefined ? '' : ` (did you mean ${suggestion}?)`;
  const parts = [place, pointer, code, message].filter((part) => part !== undefined && part !== '');
  return printableLine(`${parts.join(' ')}${hint}`);
}
