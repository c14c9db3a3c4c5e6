/**
 * Names the rules by which the engine fills orders and keeps accounts. It changes whenever a run
 * over the same inputs could give another event hash, so that a lock notices.
 */
export const ENGINE_VERSION = '2';

/** Equals `version` in package.json, which the engine cannot read. */
export const PACKAGE_VERSION = '0.1.0';
