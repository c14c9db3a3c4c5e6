import { sha256 } from '@noble/hashes/sha2.js';
import { encodeBase64Url } from './base64.ts';
import type { LeaseClaims } from './claims.ts';
import type { LeaseReason } from './reasons.ts';
import type { Refused } from './refusal.ts';
import { encodeUtf8 } from './utf8.ts';

/** The product and machine that use a lease. */
export interface LeaseUse {
  /** Product name of the program; if absent, leases for every product are accepted. */
  readonly product?: string | undefined;
  /** Thumbprints of the device keys whose private keys are on this machine. */
  readonly device_thumbprints?: readonly string[] | undefined;
  /** `machineHash` of this machine; absent if its id cannot be read. */
  readonly machine_hash?: string | undefined;
}

/**
 * Checks that a verified lease may be used by this program on this machine. Does not check the time,
 * see `leaseStatus`. A lease without `product` is valid for every product, and one without `binding` on
 * every machine. A bound lease is refused if `use` lacks the device or machine that it is bound to.
 */
export function checkLeaseUse(claims: LeaseClaims, use: LeaseUse): { readonly ok: true } | Refused {
  const { product, binding = 'none', device_thumbprint, machine_hash } = claims;
  if (use.product !== undefined && product !== undefined && product !== use.product) {
    return refuse(
      'other_product',
      `the lease is for the product ${product}, and this program is ${use.product}`,
    );
  }
  if (binding === 'device') {
    const { device_thumbprints: held = [] } = use;
    if (held.length === 0) {
      return refuse(
        'no_device_key',
        `the private key of the device ${device_thumbprint} is missing`,
      );
    }
    if (!held.includes(device_thumbprint!)) {
      const detail = `the lease is bound to the device ${device_thumbprint}, and the key here belongs to ${held[0]}`;
      return refuse('other_device', detail);
    }
  }
  if (binding === 'machine') {
    if (use.machine_hash === undefined) {
      return refuse('no_machine_id', 'the machine id is missing or cannot be read');
    }
    if (use.machine_hash !== machine_hash) {
      const detail = `the lease is bound to the machine ${machine_hash}, and this is ${use.machine_hash}`;
      return refuse('other_machine', detail);
    }
  }
  return { ok: true };
}

function refuse(reason: LeaseReason, detail: string): Refused {
  return { ok: false, reason, detail };
}

/** Prefix of the hashed text, so that other applications cannot correlate the hash. */
const APPLICATION = 'service-local license binding v1';

/**
 * Returns the form of a machine id in leases and on servers: SHA-256, in base64url, of `APPLICATION`, a
 * line feed and the machine id. The machine id cannot be derived from it.
 *
 * @param machineId the id from the operating system; letter case and surrounding space are ignored.
 */
export function machineHash(machineId: string): string {
  const text = `${APPLICATION}\n${machineId.trim().toLowerCase()}`;
  return encodeBase64Url(sha256(encodeUtf8(text)));
}
