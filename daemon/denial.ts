import type { ErrorCode } from '../src/base/errors.ts';
import type { DaemonState } from './daemon-state.ts';

const DENIALS: ReadonlySet<string> = new Set<ErrorCode>([
  'license_revoked',
  'contract_ended',
  'credential_cloned',
  'not_allowed',
]);

/** Reasons of `not_allowed` about the machine id, which this machine may be able to send later. */
const CURABLE: ReadonlySet<string> = new Set(['machine_id_required', 'no_machine_id']);

/** Whether an error means that the server refuses leases to this device. */
export function isDenial({
  code,
  reason,
}: {
  readonly code: string;
  readonly reason?: string | null | undefined;
}): boolean {
  if (code === 'invalid_device_proof') {
    return reason === 'unknown_device' || reason === 'revoked_device';
  }
  return DENIALS.has(code) && !CURABLE.has(reason ?? '');
}

/** Returns since when the server has denied renewal; undefined unless the last attempt was denied. */
export function deniedSince({
  last_error,
  denied_since,
}: Pick<DaemonState, 'last_error' | 'denied_since'>): string | undefined {
  if (last_error === null || !isDenial(last_error)) return undefined;
  return denied_since ?? last_error.at;
}
