import { DAY } from '../../base/durations.ts';
import { existsSync } from 'node:fs';
import { formatSpan } from '../../base/format.ts';
import type { License, RefusedFile } from '../../gate/license.ts';
import { acceptedAnchor, type MachineTrust } from '../../gate/machine-trust.ts';
import { describeTrust } from '../../gate/describe-trust.ts';
import type { LeaseReason } from '../../lease/reasons.ts';
import { parseTime } from '../../lease/time.ts';
import type { Check, Finding } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';

export const keyset: Check<Facts> = {
  code: 'keyset',
  needs: ['lease_file'],
  async run({ files, license }) {
    const judged = await license();
    const { keyset: read, trusted } = judged;
    if (read.ok) {
      const ids = [...read.keys.keys()];
      return { status: 'ok', summary: files.keyset, evidence: { public_key_ids: ids } };
    }
    const { path, reason, detail } = read;
    const isHeld = acceptedAnchor(judged) !== undefined;
    const left = trusted === undefined ? '' : '; the keys that this machine accepted still count';
    return {
      status: 'fail',
      summary: `${detail.includes(path) ? detail : `${path}: ${detail}`}${left}`,
      evidence: { path, reason },
      remedy: remedyOf(reason, { ...files, isHeld, isDevice: existsSync(files.key) }),
    };
  },
};

const TRUST_FAULTS: ReadonlySet<LeaseReason> = new Set([
  'not_vouched_for',
  'other_root',
  'other_issuer',
  'root_rollback',
  'keyset_rollback',
]);

interface Circumstances {
  readonly keyset: string;
  readonly pin?: string | undefined;
  /** Whether the trust anchor has keys to put back. */
  readonly isHeld: boolean;
  readonly isDevice: boolean;
}

function remedyOf(
  reason: LeaseReason,
  { keyset: path, pin, isHeld, isDevice }: Circumstances,
): string {
  if (reason === 'not_private' || reason === 'foreign_owner') return accessRemedy(reason, path);
  if (isHeld) {
    const changed = TRUST_FAULTS.has(reason)
      ? ' If the issuer confirms that it has other keys now, name them with `service-local license renew --now --keyset FILE`.'
      : '';
    return `Put back the keys that this machine accepted with \`service-local doctor --fix\`.${changed}`;
  }
  if (reason === 'keyset_expired') {
    return `Ask the issuer to sign its keyset again, and deliver it to ${path}.`;
  }
  if (pin !== undefined) {
    return `Put the signed keyset of the issuer there; its server publishes it at /.well-known/license-keys.json. If it is signed by another root, ask the issuer for the fingerprint and compare it with SERVICE_LICENSE_ROOT, ${pin}.`;
  }
  return isDevice
    ? 'Get the keys of the server with `service-local license renew --now`.'
    : 'Deliver the keys of the issuer again.';
}

/** Remedy for a file that is rejected for its owner or permissions. */
export function accessRemedy(reason: 'not_private' | 'foreign_owner', path: string): string {
  return reason === 'not_private'
    ? `Check who changed it, and run \`chmod go-w ${path}\`.`
    : `Check who put it there, and run \`sudo chown ${process.getuid?.()} ${path}\`.`;
}

/** Whether the file is a lease of another issuer or installation, signed by trusted keys. */
export function isForeign({ reason }: RefusedFile): boolean {
  return reason === 'other_installation' || reason === 'other_issuer';
}

export const trust: Check<Facts> = {
  code: 'trust',
  needs: ['lease_file'],
  async run(facts) {
    const license = await facts.license();
    const { trusted } = license;
    const evidence = evidenceOf(license, facts.files.pin);
    const fault = anchorFault(facts, license) ?? foreignLease(license);
    if (fault !== undefined) return { status: 'fail', evidence, ...fault };
    if (trusted === undefined) {
      return { status: 'skip', summary: 'no keys are trusted', because: 'keyset', evidence };
    }
    const expiring = expiryOf(trusted, facts.clock());
    if (expiring !== undefined) return { status: 'warn', evidence, ...expiring };
    return { status: 'ok', evidence, ...finding(trusted) };
  },
};

function evidenceOf(
  { trusted, anchor, refusedAnchor }: License,
  pin: string | undefined,
): Finding['evidence'] & {} {
  return {
    by: trusted?.by ?? null,
    pin: pin ?? null,
    root: trusted?.fingerprint ?? null,
    root_version: trusted?.root?.claims.version ?? null,
    root_expires_at: trusted?.root?.claims.expires_at ?? null,
    keyset_version: trusted?.keyset?.version ?? null,
    keyset_expires_at: trusted?.keyset?.expires_at ?? null,
    anchor: anchor.kind,
    anchor_reason: refusedAnchor?.reason ?? null,
  };
}

type Fault = Required<Pick<Finding, 'summary' | 'remedy'>>;

function anchorFault(
  { files }: Pick<Facts, 'files'>,
  { anchor, refusedAnchor }: License,
): Fault | undefined {
  if (refusedAnchor === undefined) return undefined;
  const { path, reason, detail } = refusedAnchor;
  if (anchor.kind === 'damaged') {
    const isAccess = reason === 'not_private' || reason === 'foreign_owner';
    const again = existsSync(files.key)
      ? 'It is written again by the daemon and by `service-local license renew --now`.'
      : `Remove ${path}: this machine does not renew its lease.`;
    return {
      summary: `the trust anchor is damaged: ${detail}`,
      remedy: isAccess ? accessRemedy(reason, path) : again,
    };
  }
  return {
    summary: `${path} does not descend from the pinned root ${files.pin}: ${detail}`,
    remedy:
      'Compare SERVICE_LICENSE_ROOT with the fingerprint that the issuer gives you. If it is right, run `service-local license renew --now`; if the server has another root, enroll this machine again with `service-local license enroll`.',
  };
}

function foreignLease({ leases, refused }: License): Fault | undefined {
  const file = refused.find(isForeign);
  if (file === undefined) return undefined;
  const back =
    leases.length > 0
      ? 'Put the right copy back with `service-local doctor --fix`.'
      : 'Put back the lease of this machine.';
  return {
    summary: `${file.path}: ${file.detail}`,
    remedy: `${back} To move this machine there, enroll it again with \`service-local license enroll\`, or take the lease with \`service-local license import FILE --replace\`.`,
  };
}

/** Remaining time from which the expiry of a root or keyset is reported, as at the issuer. */
const EXPIRY_WARNING_MS = 60 * DAY;

function expiryOf({ root, keyset: signed }: MachineTrust, now: number): Fault | undefined {
  const documents = [
    { what: 'root', claims: root?.claims },
    { what: 'keyset', claims: signed },
  ];
  for (const { what, claims } of documents) {
    if (claims === undefined) continue;
    const left = parseTime(claims.expires_at)! - now;
    if (left >= EXPIRY_WARNING_MS) continue;
    const when =
      left > 0
        ? `expires at ${claims.expires_at} (${formatSpan(left)} left)`
        : `expired at ${claims.expires_at}`;
    return {
      summary: `the license ${what} of ${claims.issuer} ${when}; keys that this machine accepted keep working, but it accepts no new keys after that time`,
      remedy: `Ask the issuer to renew its ${what}.`,
    };
  }
  return undefined;
}

function finding(trusted: MachineTrust): Pick<Finding, 'summary' | 'remedy'> {
  const summary = describeTrust(trusted);
  if (trusted.by !== 'unpinned') return { summary };
  const remedy =
    trusted.fingerprint === undefined
      ? 'To verify the keys, ask the issuer for its signed keyset and the fingerprint of its root, and set SERVICE_LICENSE_ROOT to the fingerprint.'
      : 'To verify the keys, compare the fingerprint with that of the issuer, and set SERVICE_LICENSE_ROOT to it.';
  return { summary, remedy };
}
