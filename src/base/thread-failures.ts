import type { ErrorData } from './error-data.ts';

/** A failure of work in a thread that is reported to the caller. */
export class TaskFailure extends Error {
  readonly error: ErrorData;

  constructor(error: ErrorData, cause?: unknown) {
    super(error.message, { cause });
    this.error = error;
  }
}

/** A shared thread ended, which says nothing about the work. */
export class ThreadDied extends Error {}
