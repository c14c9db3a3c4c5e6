/**
 * Checks of Ed25519 that tweetnacl leaves to its caller: it compares the point of a signature byte by
 * byte, but accepts any scalar and any 32 bytes as a key. The rules follow RFC 8032 §5.1.3 and §5.1.7,
 * and for keys of small order Chalkias, Garillot, Nikolaenko, "Taming the Many EdDSAs" (SSR 2020).
 */
import nacl from 'tweetnacl';
import type { LeaseReason } from './reasons.ts';

/** Order of the field. */
const P = 2n ** 255n - 19n;
/** Order of the base point. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
/** The curve is −x² + y² = 1 + D·x²·y² mod P. */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/** Returns why 32 bytes must not be used as a public key; undefined for a good key. */
export function keyFault(key: Uint8Array): LeaseReason | undefined {
  if (!isCanonical(key)) return 'key_not_canonical';
  const y2 = yOf(key) ** 2n % P;
  const x2Numerator = y2 - 1n;
  const x2Denominator = D * y2 + 1n;
  if (!isSquare(x2Numerator * x2Denominator)) return 'key_not_on_curve';
  // The order is 1 or 2 where x = 0, 4 where y = 0, and 8 where doubling gives y = 0: x² = −y².
  const isSmallOrder = (y2 * x2Numerator * (x2Numerator + y2 * x2Denominator)) % P === 0n;
  return isSmallOrder ? 'key_small_order' : undefined;
}

/**
 * Returns why a signature is invalid; undefined if it is valid.
 *
 * @param key one for which `keyFault` is undefined.
 */
export function signatureFault(
  message: Uint8Array,
  signature: Uint8Array,
  key: Uint8Array,
): LeaseReason | undefined {
  if (signature.length !== 64) return 'signature_length';
  // A scalar of L or more would allow a second signature of the same message.
  if (littleEndian(signature.subarray(32)) >= L) return 'signature_scalar';
  if (!isCanonical(signature.subarray(0, 32))) return 'signature_point';
  return nacl.sign.detached.verify(message, signature, key) ? undefined : 'bad_signature';
}

/** Whether a point is encoded as in RFC 8032 §5.1.2: y is reduced, and a zero x is not negative. */
function isCanonical(point: Uint8Array): boolean {
  const y = yOf(point);
  const isNegative = point[31]! >= 0x80;
  const isZeroX = y === 1n || y === P - 1n;
  return y < P && !(isZeroX && isNegative);
}

function yOf(point: Uint8Array): bigint {
  return BigInt.asUintN(255, littleEndian(point));
}

/** Whether the field has a square root of `value`, by Euler's criterion. */
function isSquare(value: bigint): boolean {
  let power = 1n;
  let square = ((value % P) + P) % P;
  for (let exponent = (P - 1n) / 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) power = (power * square) % P;
    square = (square * square) % P;
  }
  return power <= 1n;
}

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
