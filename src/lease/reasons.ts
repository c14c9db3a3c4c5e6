/**
 * Every reason why a lease does not grant everything, with a sentence for users. The codes are stable:
 * the API, the CLI, logs and metrics use them.
 */
export const LEASE_REASONS = {
  missing: 'There is no lease file.',
  unreadable: 'The file cannot be read.',
  too_large: 'The file is longer than 64 KiB.',
  foreign_owner: 'The file belongs to another user.',
  not_private: 'Other users can change the file.',
  not_json: 'The text is not JSON.',
  nested_too_deep: 'The JSON has more than 16 levels.',
  duplicate_member: 'A JSON object names the same member twice.',
  forbidden_member: 'A JSON object has a member named __proto__.',
  not_utf8: 'The payload is not UTF-8.',

  not_an_envelope: 'The JSON is not a signed envelope of the expected form.',
  wrong_payload_type: 'The envelope holds something other than a license lease of this version.',
  bad_base64: 'A value is not canonical base64.',

  unknown_key: 'No key of the keyset made any of the signatures.',
  signature_length: 'A signature is not 64 bytes long.',
  signature_scalar: 'The number in a signature is out of range.',
  signature_point: 'The point in a signature is not in canonical form.',
  bad_signature: 'The lease was changed after it was signed, or another key signed it.',

  invalid_claims: 'A claim of the lease is missing or has a wrong form.',
  invalid_time: 'A time of the lease is not in UTC and whole seconds.',
  inconsistent_claims: 'The times of the lease do not add up.',
  key_mismatch: 'The lease names another key than the one that signed it.',

  invalid_keyset: 'The keyset has an unknown form, or no usable key.',
  private_key: 'The keyset contains a private key, which must be replaced at once.',
  key_id_mismatch: 'The id of a key is not the thumbprint of that key.',
  key_not_canonical: 'A public key is not in canonical form.',
  key_not_on_curve: 'A public key is not a point of the curve.',
  key_small_order: 'A public key is so weak that almost any text verifies with it.',

  invalid_root: 'A root or a signed keyset does not have the expected form.',
  not_vouched_for: 'The keys are not signed by the trusted root or by a trusted key.',
  other_root: 'The keys are signed by a root other than the trusted one.',
  root_rollback: 'The root is older than the trusted one.',
  keyset_rollback: 'The keyset is older than the trusted one.',
  keyset_expired: 'The signed keyset has expired and adds keys that are not trusted yet.',
  other_issuer: 'The document belongs to another issuer.',
  other_installation: 'The lease belongs to an installation other than that of this machine.',

  other_product: 'The lease is for another product.',
  no_device_key: 'The lease is bound to a device whose private key is not on this machine.',
  other_device: 'The lease is bound to another device.',
  no_machine_id: 'The lease is bound to a machine, and the id of this machine cannot be read.',
  other_machine: 'The lease is bound to another machine.',

  in_grace: 'The lease was not renewed in time and is in its grace period.',
  not_yet_valid: 'The clock of this machine is more than 5 minutes behind the issue of the lease.',
  clock_rollback: 'The clock of this machine is more than 5 minutes behind an earlier signed time.',
  expired: 'The lease was not renewed, and its grace period is over.',

  entitlement_missing: 'The lease does not include this feature.',
} as const;

/** Code of the reason for which a lease, key or document is refused; a key of `LEASE_REASONS`. */
export type LeaseReason = keyof typeof LEASE_REASONS;
