/**
 * The largest of the last `size` values, in constant amortized time per value. A queue in two rings
 * holds the values that can still become the largest. Each is smaller and later than the one before
 * it, so the first is the largest. For the smallest value, negate inputs and outputs.
 */
export class RollingMaximum {
  private readonly size: number;
  private readonly values: Float64Array;
  private readonly steps: Float64Array;
  private head = 0;
  private length = 0;
  private step = 0;

  constructor(size: number) {
    this.size = size;
    this.values = new Float64Array(size);
    this.steps = new Float64Array(size);
  }

  get ready(): boolean {
    return this.step >= this.size;
  }

  get value(): number {
    return this.ready ? this.values[this.head]! : NaN;
  }

  /** Number of values after the largest; of equal ones, after the last. */
  get age(): number {
    return this.step - 1 - this.steps[this.head]!;
  }

  next(x: number): number {
    const { values, steps, size } = this;
    if (this.length > 0 && steps[this.head]! <= this.step - size) {
      this.head = this.head + 1 < size ? this.head + 1 : 0;
      this.length--;
    }
    while (this.length > 0 && values[this.slot(this.length - 1)]! <= x) this.length--;
    const tail = this.slot(this.length);
    values[tail] = x;
    steps[tail] = this.step;
    this.length++;
    this.step++;
    return this.value;
  }

  private slot(position: number): number {
    const slot = this.head + position;
    return slot < this.size ? slot : slot - this.size;
  }
}
