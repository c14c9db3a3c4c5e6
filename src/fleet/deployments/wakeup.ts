/** Lets one caller wait until something may have changed. */
export class Wakeup {
  #isDue = false;
  #resume: (() => void) | undefined;

  wake(): void {
    this.#isDue = true;
    this.#resume?.();
  }

  /** Resolves once `wake` was called since the last wait, after `ms`, or when `signal` is aborted. */
  async next(signal: AbortSignal, ms?: number): Promise<void> {
    if (!this.#isDue && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#resume = resolve;
      signal.addEventListener('abort', this.#resume);
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', this.#resume);
      this.#resume = undefined;
    }
    this.#isDue = false;
  }
}
