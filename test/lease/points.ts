/**
 * Encodings of points of edwards25519 that only an attacker makes, after Chalkias, Garillot,
 * Nikolaenko, "Taming the Many EdDSAs" (SSR 2020), tables 1 and 2.
 */
export const fromHex = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));

/** The number as 32 bytes, least significant first. */
export function littleEndian(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0')).toReversed();
}

export const P = 2n ** 255n - 19n;
export const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const SIGN = 2n ** 255n;

const ORDER_8 = '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05';
const ORDER_8_TOO = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a';

/** All eight points of small order, by their order. */
export const SMALL_ORDER: readonly (readonly [order: number, encoding: Uint8Array])[] = [
  [1, littleEndian(1n)],
  [2, littleEndian(P - 1n)],
  [4, littleEndian(0n)],
  [4, littleEndian(SIGN)],
  [8, fromHex(ORDER_8)],
  [8, fromHex(ORDER_8.replace(/05$/, '85'))],
  [8, fromHex(ORDER_8_TOO)],
  [8, fromHex(ORDER_8_TOO.replace(/7a$/, 'fa'))],
];

/** All encodings of a point other than its own: y not reduced, or the sign of an x that is zero. */
export const NOT_CANONICAL: readonly Uint8Array[] = [
  littleEndian(1n + SIGN),
  littleEndian(P - 1n + SIGN),
  ...Array.from({ length: 19 }, (_, excess) => P + BigInt(excess)).flatMap((y) => [
    littleEndian(y),
    littleEndian(y + SIGN),
  ]),
];
