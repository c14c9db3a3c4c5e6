import type { OrderReason } from '../orders/order.ts';

/** Counts orders and cancels per second of bar time against a limit. */
export class MessageRate {
  readonly #limit: number;
  readonly #kept: number;
  #second = Number.NaN;
  #count = 0;

  /** @param kept messages per second of the limit that only cancels may use. */
  constructor(limit: number, kept = 0) {
    this.#limit = limit;
    this.#kept = kept;
  }

  /** The reason for which no order may be placed at `time`, ms. Cancels count, but are never denied. */
  denial(time: number): OrderReason | undefined {
    this.#roll(time);
    if (this.#count < this.#limit - this.#kept) return undefined;
    return this.#count < this.#limit ? 'messages_kept_for_cancels' : 'max_messages_per_second';
  }

  count(time: number): void {
    this.#roll(time);
    this.#count += 1;
  }

  /** Returns the messages in the second of `time`, ms; 0 for any second but the last counted one. */
  countedAt(time: number): number {
    return Math.floor(time / 1000) === this.#second ? this.#count : 0;
  }

  #roll(time: number): void {
    const second = Math.floor(time / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#count = 0;
    }
  }
}
