/** A column of numbers as text that is about a fifth as long as JSON; `unpackColumn` decodes it. */
export interface PackedColumn {
  /** Decimals of the values; negative if their last digits before the point are left out. */
  readonly digits: number;
  readonly length: number;
  /** Base64 of LEB128 numbers, see `packColumn`. */
  readonly text: string;
}

/** Decimals up to which a column is tested for being exact. */
const MOST_EXACT = 5;

/** Differences of numbers with more significant digits would exceed 2^53. */
const MOST_SIGNIFICANT = 15;

/** Powers of ten beyond 10^308 are not numbers. Smaller values become 0. */
const MOST_DECIMALS = 300;

/**
 * Packs a column. Each value is rounded to a number of decimals that is exact or keeps six significant
 * digits, but at most fifteen of the largest value, and is stored as its difference from the one
 * before. 0 stands for a missing value; a difference of zero is stored as 1 and the number of further
 * zeros.
 */
export function packColumn(values: ArrayLike<number | null>): PackedColumn {
  const digits = digitsOf(values);
  const scale = 10 ** digits;
  const bytes = new Bytes(values.length * 4);
  let before = 0;
  let zeros = -1;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    const isMissing = !Number.isFinite(value);
    const whole = isMissing ? before : toWhole(value, scale);
    const change = whole - before;
    before = whole;
    if (change === 0 && !isMissing) {
      zeros += 1;
      continue;
    }
    if (zeros >= 0) bytes.addZeros(zeros);
    zeros = -1;
    bytes.add(isMissing ? 0 : (change > 0 ? 2 * change : -2 * change - 1) + 1);
  }
  if (zeros >= 0) bytes.addZeros(zeros);
  return { digits, length: values.length, text: bytes.toText() };
}

/** Values near the largest float64 are truncated, because rounded up they would unpack as Infinity. */
function toWhole(value: number, scale: number): number {
  return Math.abs(value) > 1e308 ? Math.trunc(value * scale) : Math.floor(value * scale + 0.5);
}

function digitsOf(values: ArrayLike<number | null>): number {
  let least = Infinity;
  let most = 0;
  let exact = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (!Number.isFinite(value) || value === 0) continue;
    const size = Math.abs(value);
    if (size > most) most = size;
    if (value < least) least = value;
    while (exact <= MOST_EXACT && !isExact(size, exact)) exact += 1;
  }
  if (most === 0) return 0;
  const six = least > 0 ? 5 - Math.floor(Math.log10(least)) : 6 - Math.floor(Math.log10(most));
  const needed = exact <= MOST_EXACT ? exact : Math.max(0, six);
  return Math.min(needed, MOST_SIGNIFICANT - Math.ceil(Math.log10(most)), MOST_DECIMALS);
}

const SCALES = Array.from({ length: MOST_EXACT + 1 }, (_, digits) => 10 ** digits);

function isExact(size: number, digits: number): boolean {
  const scaled = size * SCALES[digits]!;
  // Allows for rounding errors of sums, but not for a millisecond of seconds since the epoch.
  return Math.abs(scaled - Math.round(scaled)) <= 1e-13 * scaled;
}

class Bytes {
  #bytes: Uint8Array;
  #length = 0;

  constructor(size: number) {
    this.#bytes = new Uint8Array(size + 16);
  }

  add(number: number): void {
    if (this.#length + 16 > this.#bytes.length) {
      const longer = new Uint8Array(2 * this.#bytes.length);
      longer.set(this.#bytes);
      this.#bytes = longer;
    }
    let rest = number;
    for (; rest >= 2 ** 31; rest = Math.floor(rest / 128)) {
      this.#bytes[this.#length++] = (rest % 128) + 128;
    }
    for (; rest >= 128; rest >>= 7) this.#bytes[this.#length++] = (rest & 127) + 128;
    this.#bytes[this.#length++] = rest;
  }

  addZeros(further: number): void {
    this.add(1);
    this.add(further);
  }

  toText(): string {
    return Buffer.from(this.#bytes.buffer, 0, this.#length).toString('base64');
  }
}
