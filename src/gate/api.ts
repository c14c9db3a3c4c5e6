/**
 * Checks in a program whether a feature is licensed. The gate keeps the verified lease of this machine
 * in memory and follows changes of its files.
 *
 * ```ts
 * const gate = await openLicenseGate({ enforced: true });
 * app.post('/orders', gate.requireFeature('live_trading'), placeOrder);
 * ```
 */
export { LEASE_REASONS, type LeaseReason } from '../lease/reasons.ts';
export type { LeaseClaims } from '../lease/claims.ts';
export { LICENSE_STATUS_HEADER } from '../lease/license-features.ts';
export { licenseFiles, type LicenseFiles } from './license-files.ts';
export type { Decision, GateStatus, Refusal } from './decide.ts';
export { openLicenseGate, type GateOptions, type LicenseGate } from './gate.ts';
export type { RefusedFile } from './license.ts';
