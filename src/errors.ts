import { printableLine } from './printable.ts';

/**
 * Every failure a user can meet has one stable code. The CLI's exit code follows from it,
 * and the same code appears in `--json` output, logs and documentation.
 */
const EXIT_CODES = {
  failure: 1,
  strategy_failed: 1,
  strategy_timeout: 1,
  not_deterministic: 1,
  output_not_writable: 1,
  usage: 2,
  unknown_setting: 2,
  invalid_setting: 2,
  invalid_spec: 3,
  invalid_data: 3,
  file_not_found: 3,
  invalid_strategy: 3,
  gate_not_met: 5,
  conflict: 6,
  lock_drift: 6,
  interrupted: 130,
} as const;

export type ErrorCode = keyof typeof EXIT_CODES;

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
  readonly cause?: unknown;
}

/** An expected failure, told to the user in full. Any other error is a bug and keeps its stack. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly remedy: string | undefined;
  readonly problems: readonly Problem[];

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.remedy = options.remedy;
    this.problems = options.problems ?? [];
  }

  get exitCode(): number {
    return EXIT_CODES[this.code];
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

/** `file:line:column /pointer CODE message (did you mean …)` in one line; absent parts are left out. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, pointer, code, message, suggestion } = problem;
  const place = [file, line, column].filter((part) => part !== undefined).join(':');
  const hint = suggestion === undefined ? '' : ` (did you mean ${suggestion}?)`;
  const parts = [place, pointer, code, message].filter((part) => part !== undefined && part !== '');
  return printableLine(`${parts.join(' ')}${hint}`);
}
