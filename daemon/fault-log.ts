import { isSystemError } from '../src/base/system-errors.ts';
import type { Log } from '../src/base/log.ts';
import { asServiceError } from './renewal.ts';

/** Logs each fault once, until its kind changes or it ends. */
export class FaultLog {
  readonly #log: Log;
  /** The logged kind of fault, by topic. */
  readonly #faults = new Map<string, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  report(topic: string, kind: string, text: string, data: object = {}): void {
    if (this.#faults.get(topic) === kind) return;
    this.#faults.set(topic, kind);
    this.#log.warn(data, text);
  }

  /** Reports an error. Ignores a lock that another process holds, because that process does the work. */
  reportError(topic: string, what: string, thrown: unknown): void {
    const { code, reason, message, cause } = asServiceError(thrown);
    if (reason === 'locked') return;
    const kind = `${code} ${reason} ${isSystemError(cause) ? cause.code : message}`;
    this.report(topic, kind, `${what}: ${message}`, { code, reason });
  }

  /** Logs `text` if the fault was logged before. */
  resolve(topic: string, text: string): void {
    if (this.#faults.delete(topic)) this.#log.info(text);
  }

  note(topic: string, kind: string): void {
    this.#faults.set(topic, kind);
  }

  /** Lets the next report be logged, even of the same kind. */
  forget(topic: string): void {
    this.#faults.delete(topic);
  }
}
