/** A failed attempt to send, whose message contains no secrets and is shown to people. */
export class SendFailure extends Error {
  /** Minimum wait that the receiver asks for, ms. */
  readonly retryAfterMs: number;
  /**
   * HTTP status with which the receiver refused the notification; null if the message states the cause.
   */
  readonly refusedStatus: number | null;

  constructor(
    message: string,
    refusal: { readonly retryAfterMs: number; readonly refusedStatus: number } | null = null,
  ) {
    super(message);
    this.retryAfterMs = refusal?.retryAfterMs ?? 0;
    this.refusedStatus = refusal?.refusedStatus ?? null;
  }
}

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host name not found',
  EDNS: 'host name not found',
  EAI_AGAIN: 'the host name could not be looked up',
  ECONNRESET: 'the connection broke',
  ECONNECTION: 'the connection broke',
  ESOCKET: 'the connection failed',
  UND_ERR_SOCKET: 'the connection broke',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the receiver does not use TLS',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'this machine does not trust the certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'this machine does not trust the certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'this machine does not trust the certificate',
};

/**
 * Describes why an attempt failed. Texts of other errors are not repeated, because they may contain
 * secrets, such as the URL of a Telegram bot.
 */
export function describeFailure(error: unknown): string {
  if (error instanceof AggregateError) return describeFailure(error.errors[0]);
  if (!(error instanceof Error)) return 'unexpected error';
  if (error instanceof SendFailure) return error.message;
  if (error.cause instanceof Error) return describeFailure(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  if (/Timeout|TIMEOUT|ETIMEDOUT/.test(code)) return 'no answer in time';
  return FAULTS[code] ?? `unexpected error (${code})`;
}
