import { isJsonObject, parseStrictJson } from './json.ts';
import type { LeaseReason } from './reasons.ts';
import { LeaseError } from './refusal.ts';
import { isTime } from './time.ts';
import { decodeUtf8 } from './utf8.ts';

/**
 * The signed content of a lease. Ids are 1 to 128 visible ASCII characters; times are RFC 3339 in UTC
 * and whole seconds.
 */
export interface LeaseClaims {
  readonly lease_id: string;
  readonly deployment_id: string;
  readonly customer_id?: string;
  /** Distinct feature names: lower-case letters, digits and `_ . : -`. */
  readonly entitlements: readonly string[];
  readonly issued_at: string;
  /** `issued_at` + `ttl_seconds`; the grace period begins here. */
  readonly expires_at: string;
  /** `expires_at` + `grace_period_seconds`; the lease grants nothing from here on. */
  readonly grace_ends_at: string;
  readonly ttl_seconds: number;
  readonly grace_period_seconds: number;
  /** `publicKeyId` of the signing key. */
  readonly public_key_id: string;
  readonly issuer: string;
  /** Id of the device's request for this lease. */
  readonly renewal_id?: string;
  readonly previous_lease_id?: string;
  /** RFC 7638 thumbprint of the device key. */
  readonly device_thumbprint?: string;
  /** The licensed product; absent in leases of version 0.1.0. */
  readonly product?: string;
  /** Checked by `checkLeaseUse`; `none` by default. */
  readonly binding?: Binding;
  /** `machineHash` of the machine to which `binding` binds the lease. */
  readonly machine_hash?: string;
}

/** A lease is bound to nothing, to the key in `device_thumbprint`, or to the id in `machine_hash`. */
export type Binding = (typeof BINDINGS)[number];

export const BINDINGS = ['none', 'device', 'machine'] as const;

/** Limit of TTL plus grace period, so that a mistyped TTL cannot license anyone for a century. */
export const MAX_LIFETIME_SECONDS = 5 * 366 * 86_400;
/** Largest number of entitlements of a lease. */
export const MAX_ENTITLEMENTS = 64;

interface Rule {
  readonly accepts: (value: unknown) => boolean;
  readonly form: string;
  readonly reason?: LeaseReason;
  readonly optional?: true;
}

const matching =
  (pattern: RegExp) =>
  (value: unknown): boolean =>
    typeof value === 'string' && pattern.test(value);
const seconds =
  (least: number) =>
  (value: unknown): boolean =>
    Number.isSafeInteger(value) && (value as number) >= least;

/** Whether a value is 1 to 128 visible ASCII characters, as ids in leases are. */
export const isId = matching(/^[!-~]{1,128}$/);

const ID: Rule = {
  accepts: isId,
  form: '1 to 128 visible ASCII characters',
};
/** Whether a value has the form of a SHA-256 digest in base64url: a key id or a root fingerprint. */
export const isDigest = matching(/^[\w-]{43}$/);

const DIGEST: Rule = {
  accepts: isDigest,
  form: 'a digest of 43 base64url characters',
};
const TIME: Rule = {
  accepts: isTime,
  form: 'a UTC time in whole seconds, such as 2026-01-02T03:04:05Z',
  reason: 'invalid_time',
};
/** Whether a value can be the name of a feature. */
export const isEntitlement = matching(/^[a-z][a-z0-9_.:-]{0,63}$/);

const RULES: { readonly [Name in keyof Required<LeaseClaims>]: Rule } = {
  lease_id: ID,
  deployment_id: ID,
  customer_id: { ...ID, optional: true },
  entitlements: {
    accepts: (value) =>
      Array.isArray(value) &&
      value.length <= MAX_ENTITLEMENTS &&
      value.every(isEntitlement) &&
      new Set(value).size === value.length,
    form: `a list of at most ${MAX_ENTITLEMENTS} different names such as live_trading`,
  },
  issued_at: TIME,
  expires_at: TIME,
  grace_ends_at: TIME,
  ttl_seconds: { accepts: seconds(1), form: 'a whole number from 1' },
  grace_period_seconds: { accepts: seconds(0), form: 'a whole number from 0' },
  public_key_id: DIGEST,
  issuer: ID,
  renewal_id: { ...ID, optional: true },
  previous_lease_id: { ...ID, optional: true },
  device_thumbprint: { ...DIGEST, optional: true },
  product: { ...ID, optional: true },
  binding: {
    accepts: (value) => (BINDINGS as readonly unknown[]).includes(value),
    form: `one of ${BINDINGS.join(', ')}`,
    optional: true,
  },
  machine_hash: { ...DIGEST, optional: true },
};

const RULE_ENTRIES = Object.entries<Rule>(RULES);

/**
 * Parses the payload of a lease.
 *
 * @throws LeaseError `not_utf8`, and as `parseStrictJson` and `checkClaims`.
 */
export function readClaims(payload: Uint8Array): LeaseClaims {
  const text = decodeUtf8(payload);
  if (text === undefined) throw new LeaseError('not_utf8', 'the payload is not UTF-8');
  return checkClaims(parseStrictJson(text, 'the payload'));
}

/**
 * Checks a parsed payload and returns its known members. Unknown members are ignored, so that issuers
 * can add members; one that old readers must not ignore needs a new payload type. An unknown `binding`
 * is refused, because it could not be checked.
 *
 * @throws LeaseError `invalid_claims`, `invalid_time`, `inconsistent_claims`.
 */
export function checkClaims(payload: unknown): LeaseClaims {
  if (!isJsonObject(payload)) {
    throw new LeaseError('invalid_claims', 'the payload is not a JSON object');
  }
  const known: Record<string, unknown> = {};
  for (const [name, { accepts, form, reason, optional }] of RULE_ENTRIES) {
    const value = payload[name];
    if (value === undefined && optional) continue;
    if (value === undefined) throw new LeaseError('invalid_claims', `${name} is missing`);
    if (!accepts(value)) {
      throw new LeaseError(reason ?? 'invalid_claims', `${name} is not ${form}`);
    }
    known[name] = value;
  }
  const claims = known as unknown as LeaseClaims;
  checkTimes(claims);
  checkBinding(claims);
  return claims;
}

/** The claim that each binding requires. */
const BOUND_TO = { none: undefined, device: 'device_thumbprint', machine: 'machine_hash' } as const;

function checkBinding(claims: LeaseClaims): void {
  const { binding = 'none' } = claims;
  const name = BOUND_TO[binding];
  if (name === undefined || claims[name] !== undefined) return;
  throw new LeaseError('invalid_claims', `binding is ${binding} and ${name} is missing`);
}

function checkTimes(claims: LeaseClaims): void {
  const { ttl_seconds: ttl, grace_period_seconds: grace } = claims;
  // `isTime` has accepted each of them.
  const issued = Date.parse(claims.issued_at);
  const expires = Date.parse(claims.expires_at);
  const graceEnds = Date.parse(claims.grace_ends_at);
  if (expires - issued !== ttl * 1000) {
    throw new LeaseError('inconsistent_claims', 'expires_at is not issued_at + ttl_seconds');
  }
  if (graceEnds - expires !== grace * 1000) {
    throw new LeaseError(
      'inconsistent_claims',
      'grace_ends_at is not expires_at + grace_period_seconds',
    );
  }
  if (ttl + grace > MAX_LIFETIME_SECONDS) {
    throw new LeaseError(
      'invalid_claims',
      `ttl_seconds + grace_period_seconds is over ${MAX_LIFETIME_SECONDS}`,
    );
  }
}
