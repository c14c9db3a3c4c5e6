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

  stop(): void {
    this.#progress?.stop();
  }
}
