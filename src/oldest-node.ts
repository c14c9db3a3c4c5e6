// Like bin/service-local.ts, this must run on Node 18.

/** Oldest Node that runs this package; `engines` of package.json names the same. */
export const OLDEST_NODE = '24.15';

/** Whether the running Node is older than that. */
export function isNodeTooOld(version = process.versions.node): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}
