import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { deniedSince } from '../../daemon/denial.ts';
import type { ImportedFiles } from '../../daemon/offline.ts';
import type { DaemonState } from '../../daemon/daemon-state.ts';
import { ServiceError } from '../base/errors.ts';
import type { HeldLease, License, RefusedFile } from '../gate/license.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { LeaseStatus } from '../lease/status.ts';
import { formatTime } from '../lease/time.ts';
import { licenseFiles, pinRemedy, type LicenseFiles } from '../gate/license-files.ts';
import type { Settings } from '../base/settings.ts';
import type { Output } from './output.ts';
import { readNamedFile } from './read-named-file.ts';
import type { Context } from './verb.ts';

export const INSECURE = {
  description:
    'allow plain http:// to another host, although anyone on the path can read and change the traffic',
} as const;

export function withInsecure(settings: Settings, insecure: boolean): Settings {
  return insecure ? { ...settings, server_insecure: true } : settings;
}

export interface LicenseView {
  readonly files: LicenseFiles;
  readonly license: License;
  /** Files that are not accepted, and leases that cannot be used on this machine. */
  readonly refused: readonly RefusedFile[];
  /** The current lease; undefined if none verifies. */
  readonly held: ViewedLease | undefined;
  readonly renewedBy: RenewedBy;
  readonly state: DaemonState;
}

/**
 * How the next lease reaches this machine: from a server; by files that people carry; only after the
 * machine is enrolled (`nobody`); or not at all, because the device key of the lease is missing.
 */
export type RenewedBy = 'server' | 'files' | 'nobody' | 'lost_key';

interface ViewedLease extends HeldLease {
  /** Why the lease cannot be used on this machine; undefined if it can. */
  readonly unusable: RefusedFile | undefined;
  readonly status: LeaseStatus;
  readonly isDue: boolean;
  readonly due_at: string;
}

export async function viewLicense(
  { settings, io }: Pick<Context, 'settings' | 'io'>,
  now: number,
): Promise<LicenseView> {
  const { passedTime } = await import('../../daemon/plan-attempt.ts');
  const { systemBoot } = await import('../gate/boot.ts');
  const { readLicense, refusedFiles, statusOf } = await import('../gate/license.ts');
  const { leasesHere } = await import('../gate/lease-use.ts');
  const { readState } = await import('../../daemon/daemon-state.ts');
  const { runningTime } = await import('../lease/known-time.ts');
  const { renewalMoment } = await import('../lease/renewal-moment.ts');
  const files = licenseFiles(settings.home, io.env);
  const license = await readLicense(files, now);
  const state = await readState(files.state);
  const [best] = license.leases;
  const renewedBy = findRenewal(files, state, best?.claims);
  const here = await leasesHere(files, license.leases, {});
  const refused = [...here.refused, ...refusedFiles(license)];
  if (best === undefined) return { files, license, refused, held: undefined, renewedBy, state };
  const { claims } = best;
  const boot = systemBoot();
  const status = statusOf(best, now, runningTime(license.running, claims.lease_id, boot));
  const moment = renewalMoment(claims);
  const isDue = passedTime(claims, license.running ?? null, now, boot) >= moment;
  const due_at = formatTime(Math.ceil(moment / 1000) * 1000);
  const unusable = here.leases.includes(best)
    ? undefined
    : here.refused.find(({ path }) => path === best.path);
  const held = { ...best, unusable, status, isDue, due_at };
  return { files, license, refused, held, renewedBy, state };
}

function findRenewal(
  { key }: LicenseFiles,
  { imported_lease_id, last_success_at, pending, requests }: DaemonState,
  held: LeaseClaims | undefined,
): RenewedBy {
  if (!existsSync(key)) return held?.device_thumbprint === undefined ? 'nobody' : 'lost_key';
  const isWaiting = pending !== null && last_success_at === null && requests.length === 0;
  const isBrought =
    imported_lease_id !== null && (held === undefined || held.lease_id === imported_lease_id);
  return isWaiting || isBrought ? 'files' : 'server';
}

/** Whether the lease grants anything on this machine now. */
export function isWorking(held: LicenseView['held']): boolean {
  return held !== undefined && held.unusable === undefined && held.status.state !== 'expired';
}

/** Error for a machine without a working lease; undefined if the lease works. */
export function findLicenseFailure(
  view: LicenseView,
  remedy = suggestRemedy(view),
): ServiceError | undefined {
  const { held, license } = view;
  if (isWorking(held)) return undefined;
  const { reason, detail } =
    held === undefined
      ? license.refused[0]!
      : (held.unusable ?? {
          reason: 'expired',
          detail: `the lease ended on ${held.claims.grace_ends_at}`,
        });
  const message = `no valid license: ${detail}`;
  const { pin } = view.files;
  const isPinned = pin !== undefined && (reason === 'other_root' || reason === 'not_vouched_for');
  const usual = held?.unusable === undefined ? remedy : 'See `service-local doctor`.';
  const advice = isPinned ? pinRemedy(pin) : usual;
  return new ServiceError('license_invalid', message, { reason, remedy: advice });
}

/** Error code of a server that does not know the key of this machine, among other causes. */
const PROOF_REFUSED = 'invalid_device_proof';

export function suggestRemedy({ renewedBy, files, license, held, state }: LicenseView): string {
  const isMissing = held === undefined && license.refused[0]?.reason === 'missing';
  const { last_error } = state;
  const mayBeNew = isMissing && [undefined, PROOF_REFUSED].includes(last_error?.code);
  const remedies: Readonly<Record<RenewedBy, string>> = {
    server: mayBeNew
      ? 'Enroll this machine with `service-local license enroll`; if it is enrolled already, run `service-local license renew --now`.'
      : deniedSince(state)
        ? 'Ask the issuer why its server denies renewal; then run `service-local license renew --now`.'
        : 'Get a lease with `service-local license renew --now`, or see `service-local doctor`.',
    files:
      'Write a request with `service-local license export-request --out FILE`, send it to the issuer, and install the answer with `service-local license import`.',
    nobody:
      'Enroll this machine with `service-local license enroll`, or install a lease file with `service-local license import`.',
    lost_key: `Restore ${files.key} from a backup; or enroll this machine again with \`service-local license enroll\` and a new code or, without a network, with \`service-local license export-request\`.`,
  };
  return remedies[renewedBy];
}

/** Predicate of a sentence about a lease: `is valid until …`. */
export function formatValidity({ expires_at, grace_ends_at }: LeaseClaims): string {
  const until = `is valid until ${expires_at}`;
  return grace_ends_at === expires_at ? until : `${until}, with grace until ${grace_ends_at}`;
}

/**
 * Reads the files of `license import`: a lease, or a document of `identity leases issue --request`
 * with a lease and a keyset.
 *
 * @param keyset a file with keys, or such a document.
 * @throws ServiceError `file_not_found`
 */
export async function readImport(
  cwd: string,
  lease: string,
  keyset: string | undefined,
): Promise<ImportedFiles> {
  const { splitLeaseFile } = await import('../../daemon/offline.ts');
  const text = await readNamedFile(resolve(cwd, lease));
  const parts = splitLeaseFile(text);
  const keys = keyset === undefined ? undefined : await readNamedFile(resolve(cwd, keyset));
  const named = keys === undefined ? undefined : (splitLeaseFile(keys)?.enclosed ?? keys);
  return { lease: parts?.lease ?? text, enclosed: parts?.enclosed, named };
}

export function showClaims(out: Output, claims: LeaseClaims): void {
  const rows = Object.entries(claims).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(' ') : String(value),
  ]);
  out.table([{ title: '' }, { title: '' }], rows);
}
