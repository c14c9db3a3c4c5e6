import { ServiceError } from '../base/errors.ts';
import { type Binding, isDigest, isId, type LeaseClaims } from '../lease/claims.ts';
import type { Problem } from '../base/errors.ts';
import { problemUnless } from './request-problems.ts';
import type { LeasePolicy } from './context.ts';

export interface LeasePurpose {
  readonly plan_id: string;
  /** Null for the product in the server's settings. */
  readonly product: string | null;
  readonly binding: Binding;
}

export interface Holder {
  /** Null for an administrator. */
  readonly device_id: string | null;
  readonly machine_hash: string | null;
}

export function productProblems(product: string | null | undefined): Problem[] {
  return problemUnless(
    product === null || product === undefined || isId(product),
    '/product',
    'a product has 1 to 128 visible ASCII characters',
  );
}

export function machineHashProblems(hash: string | undefined, pointer: string): Problem[] {
  return problemUnless(
    hash === undefined || isDigest(hash),
    pointer,
    'a machine hash has 43 base64url characters',
  );
}

/**
 * Claims of a lease about product and binding.
 *
 * @throws ServiceError `not_allowed` with the reason `device_required` or `machine_id_required` for
 * a holder to which the lease cannot be bound.
 */
export function purposeClaims(
  policy: LeasePolicy,
  { plan_id, product, binding }: LeasePurpose,
  { device_id, machine_hash }: Holder,
): Pick<LeaseClaims, 'product' | 'binding' | 'machine_hash'> {
  const named = { product: product ?? policy.product };
  if (binding === 'none') return named;
  if (device_id === null) throw deviceRequired(plan_id, binding);
  if (binding === 'device') return { ...named, binding };
  if (machine_hash === null) throw machineIdRequired(plan_id);
  return { ...named, binding, machine_hash };
}

function deviceRequired(planId: string, binding: Binding): ServiceError {
  return new ServiceError(
    'not_allowed',
    `the plan ${planId} binds leases to a ${binding}, and this request names no device`,
    {
      reason: 'device_required',
      remedy:
        'Enroll the machine with a code; without a network, run `service-local license export-request` on it and issue with --request FILE. Containers need a plan with the binding none.',
    },
  );
}

/** The error after which a client that can read its machine id repeats the request with the hash. */
export function machineIdRequired(planId: string): ServiceError {
  return new ServiceError(
    'not_allowed',
    `the plan ${planId} binds leases to a machine, and the device sent no machine_hash`,
    {
      reason: 'machine_id_required',
      remedy:
        'Update service-local on the machine and try again. Containers need a plan with the binding none.',
    },
  );
}

/**
 * Returns the machine to which leases of a device are bound: the recorded one, or the stated one if
 * none is recorded yet.
 *
 * @throws ServiceError `not_allowed`, reason `other_machine`, for a device that states another one.
 */
export function machineOf(
  { binding }: LeasePurpose,
  device: { readonly device_id: string; readonly machine_hash: string | null },
  stated: string | undefined,
): string | null {
  const { device_id, machine_hash: recorded } = device;
  if (binding !== 'machine') return recorded;
  if (recorded !== null && stated !== undefined && stated !== recorded) {
    throw new ServiceError(
      'not_allowed',
      `the device ${device_id} is bound to the machine ${recorded}, and the request comes from ${stated}`,
      {
        reason: 'other_machine',
        remedy:
          'Enroll this machine with a new code. Without a network, move its device.key away and export a new request: that makes it another device.',
      },
    );
  }
  return recorded ?? stated ?? null;
}
