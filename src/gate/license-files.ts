import { join, resolve } from 'node:path';
import { isDigest } from '../lease/claims.ts';
import { ServiceError } from '../base/errors.ts';

/** Absolute paths of the license files of this machine. */
export interface LicenseFiles {
  readonly lease: string;
  /** The keys that verify it. */
  readonly keyset: string;
  /** The trust anchor: the keys, issuer and installation that this machine has accepted. */
  readonly root: string;
  /** Fingerprint of the root that an operator or a program requires the keys to descend from. */
  readonly pin?: string | undefined;
  /** The private key that identifies this machine to a server. */
  readonly key: string;
  /** The next device key, during a rotation. */
  readonly nextKey: string;
  /** The key before a rotation, kept until a lease is bound to the new one. */
  readonly formerKey: string;
  /** The daemon's state, see `daemon/daemon-state.ts`. */
  readonly state: string;
  /** Locked while a process changes any of these files. */
  readonly lock: string;
}

/**
 * Returns the paths in the home directory. `SERVICE_LICENSE_LEASE_PATH` and
 * `SERVICE_LICENSE_PUBLIC_KEY_PATH` override the paths of lease and keyset, for machines to which both
 * are delivered; `SERVICE_LICENSE_ROOT` pins a root.
 *
 * @throws ServiceError `invalid_setting` for a pin that is not a fingerprint.
 */
export function licenseFiles(home: string, env: NodeJS.ProcessEnv): LicenseFiles {
  const { SERVICE_LICENSE_LEASE_PATH: lease, SERVICE_LICENSE_PUBLIC_KEY_PATH: keyset } = env;
  const { SERVICE_LICENSE_ROOT: root } = env;
  return {
    lease: lease ? resolve(lease) : join(home, 'license_lease.json'),
    keyset: keyset ? resolve(keyset) : join(home, 'license_public_key.json'),
    root: join(home, 'license_root.json'),
    pin: root ? parsePin(root, 'SERVICE_LICENSE_ROOT') : undefined,
    key: join(home, 'device.key'),
    nextKey: join(home, 'device.key.next'),
    formerKey: join(home, 'device.key.former'),
    state: join(home, 'daemon_state.json'),
    lock: join(home, 'license.lock'),
  };
}

/**
 * Returns the fingerprint of the root to pin.
 *
 * @param source of the value, for the error.
 * @throws ServiceError `invalid_setting`
 */
export function parsePin(text: string, source: string): string {
  const pin = text.trim();
  if (isDigest(pin)) return pin;
  throw new ServiceError(
    'invalid_setting',
    `${source} is not the fingerprint of a root: it must be 43 characters of A-Z a-z 0-9 - _`,
    {
      remedy:
        'Ask the issuer for the fingerprint of its root, and compare it through a channel that is independent of the server.',
    },
  );
}

/** Remedy for keys that do not descend from the pinned root. */
export function pinRemedy(pin: string): string {
  return `SERVICE_LICENSE_ROOT requires the root ${pin}: compare it with the fingerprint that the issuer gives you. If it differs, correct the variable. If it is the same, this may be a different server, or someone may be impersonating it: ask the issuer.`;
}
