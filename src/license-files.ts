import { join, resolve } from 'node:path';

/** The files that make and keep this machine licensed; absolute paths. */
export interface LicenseFiles {
  readonly lease: string;
  /** The keys that verify it. */
  readonly keyset: string;
  /** The private key by which a server knows this machine. */
  readonly key: string;
  /** While that is being rotated. */
  readonly nextKey: string;
  /** What the daemon keeps; see `daemon/state.ts`. */
  readonly state: string;
  /** Held by whoever changes any of these, for as long as it takes. */
  readonly lock: string;
}

/**
 * Where they are: in the home directory, but for lease and keyset where these variables say so, as
 * in installs to which both are delivered.
 */
export function licenseFiles(home: string, env: NodeJS.ProcessEnv): LicenseFiles {
  const { SERVICE_LICENSE_LEASE_PATH: lease, SERVICE_LICENSE_PUBLIC_KEY_PATH: keyset } = env;
  return {
    lease: lease ? resolve(lease) : join(home, 'license_lease.json'),
    keyset: keyset ? resolve(keyset) : join(home, 'license_public_key.json'),
    key: join(home, 'device.key'),
    nextKey: join(home, 'device.key.next'),
    state: join(home, 'daemon_state.json'),
    lock: join(home, 'license.lock'),
  };
}
