import type { Progress } from './output.ts';
import type { Context } from './verb.ts';

/** Progress bars of work in several phases, one after another. */
export class PhaseProgress {
  readonly #context: Context;
  #phase: string | undefined;
  #progress: Progress | undefined;

  constructor(context: Context) {
    this.#context = context;
  }

  update(phase: string, done: number, total: number): void {
    if (phase !== this.#phase) {
      this.stop();
      this.#phase = phase;
      if (done > 0) this.#context.message(`resuming: ${done} of ${total} ${phase} are done`);
      this.#progress = this.#context.progress(phase, total, done);
    }
    this.#progress?.update(done);
  }

  /** Returns a function that reports the progress of a phase from its beginning; undefined without a terminal. */
  of(phase: string): ((done: number, total: number) => void) | undefined {
    if (!this.#context.io.stderr.isTTY) return undefined;
    return (done, total) => {
      if (phase !== this.#phase) this.update(phase, 0, total);
      this.update(phase, done, total);
    };
  }

  stop(): void {
    this.#progress?.stop();
  }
}
