import { keysetText } from '../src/client/keyset.ts';
import { namedTrust, requireTrusted } from '../src/client/lease-server.ts';
import { ServiceError } from '../src/base/errors.ts';
import { readLicenseTexts, verifyLicense, type License } from '../src/gate/license.ts';
import type { LicenseFiles } from '../src/gate/license-files.ts';
import type { HeldTrust } from '../src/lease/trust.ts';
import type { Machine } from './machine.ts';

/** The keys that verify a renewed lease. */
export interface RenewalKeys {
  readonly trust: HeldTrust;
  /** Content for the keyset file; has the held keys if the published ones were refused. */
  readonly text: string;
  /** Why the published keys were refused; the held ones verify instead. */
  readonly refused?: ServiceError;
  /** Whether nothing vouched for the published keys. */
  readonly isFirstContact?: boolean;
}

/** Whether a lease on this machine verifies by the keys of this keyset. */
export async function verifiesLease(
  files: LicenseFiles,
  text: string,
  now: number,
): Promise<boolean> {
  const texts = await readLicenseTexts(files);
  const keyset = { path: files.keyset, read: { ok: true, text } } as const;
  return verifyLicense({ ...texts, keyset }, now).leases.length > 0;
}

export function warnOfFirstContact(
  { url, warn }: Pick<Machine, 'url' | 'warn'>,
  { trust, isFirstContact = false }: RenewalKeys,
): void {
  if (!isFirstContact) return;
  const ids = [...trust.keys.keys()].join(', ');
  warn(`first contact: nothing vouched for the keys of ${url}; this machine now trusts ${ids}`);
}

/**
 * Decides whether published keys may verify the lease that came with them. If they are refused, the
 * held keys verify it: a genuine lease is not lost because an issuer published an expired or older
 * keyset, or replaced its root.
 *
 * @param named keys that a person named, which replace the held ones.
 * @throws ServiceError `invalid_data` with a `LeaseReason` if no keys are held
 */
export function judgePublishedKeys(
  { files, clock }: Machine,
  document: unknown,
  { trusted }: License,
  named: string | undefined,
): RenewalKeys {
  const { pin } = files;
  const now = clock();
  const held = named === undefined ? trusted : namedTrust(named, pin, now);
  try {
    const { trust, text } = requireTrusted(document, { pin, held, now });
    return { trust, text, isFirstContact: trust.by === 'first_contact' };
  } catch (error) {
    if (!(error instanceof ServiceError) || held === undefined || named !== undefined) throw error;
    return { trust: held, text: keysetText(held.keys), refused: error };
  }
}
