import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { deniedSince } from '../../daemon/denial.ts';
import type { Brought } from '../../daemon/offline.ts';
import type { DaemonState } from '../../daemon/state.ts';
import { isSystemError, ServiceError } from '../base/errors.ts';
import type { HeldLease, License, RefusedFile } from '../gate/license.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { LeaseStatus } from '../lease/status.ts';
import { formatTime } from '../lease/time.ts';
import { licenseFiles, pinRemedy, type LicenseFiles } from '../gate/license-files.ts';
import type { Settings } from '../base/settings.ts';
import type { Output } from './output.ts';
import type { Context } from './verb.ts';

/** The option of verbs that send the device's credential or fetch keys. */
export const INSECURE = {
  description:
    'allow plain http:// to another host, where anyone on the way can read and change what is sent',
} as const;

/** The settings, with what `--insecure` allows. */
export function withInsecure(settings: Settings, insecure: boolean): Settings {
  return insecure ? { ...settings, server_insecure: true } : settings;
}

/** The license of this machine as it is now. */
export interface LicenseView {
  readonly files: LicenseFiles;
  readonly license: License;
  /** Files that are not accepted, and leases that cannot be used on this machine. */
  readonly refused: readonly RefusedFile[];
  /** The lease that counts; undefined when none verifies. */
  readonly held: ViewedLease | undefined;
  readonly renewedBy: RenewedBy;
  readonly state: DaemonState;
}

/**
 * How the next lease comes to this machine: by its key from a server; by a request with its key that
 * people carry; only by enrolling first; or not at all, because the key that the lease is for is gone.
 */
export type RenewedBy = 'server' | 'files' | 'nobody' | 'lost_key';

interface ViewedLease extends HeldLease {
  /** Why it cannot be used on this machine; undefined if it can. */
  readonly unusable: RefusedFile | undefined;
  readonly status: LeaseStatus;
  readonly isDue: boolean;
  /** When it is to be renewed. */
  readonly due_at: string;
}

export async function viewLicense(
  { settings, io }: Pick<Context, 'settings' | 'io'>,
  now: number,
): Promise<LicenseView> {
  const { passedTime } = await import('../../daemon/plan.ts');
  const { systemBoot } = await import('../gate/boot.ts');
  const { readLicense, refusedFiles, statusOf } = await import('../gate/license.ts');
  const { leasesHere } = await import('../gate/lease-use.ts');
  const { readState } = await import('../../daemon/state.ts');
  const { runningTime } = await import('../lease/known-time.ts');
  const { renewalMoment } = await import('../lease/schedule.ts');
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

/** Whether what is licensed works on this machine now. */
export function isWorking(held: LicenseView['held']): boolean {
  return held !== undefined && held.unusable === undefined && held.status.state !== 'expired';
}

/** Why nothing licensed works, and what to do about it; undefined while it works. */
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
  const message = `nothing licensed works: ${detail}`;
  const { pin } = view.files;
  const isPinned = pin !== undefined && (reason === 'other_root' || reason === 'not_vouched_for');
  const usual = held?.unusable === undefined ? remedy : 'See `service-local doctor`.';
  const advice = isPinned ? pinRemedy(pin) : usual;
  return new ServiceError('license_invalid', message, { reason, remedy: advice });
}

/** Error code of a server that does not know the key of this machine, among other reasons. */
const PROOF_REFUSED = 'invalid_device_proof';

/** How to get a lease. */
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
      'Ask for a lease with `service-local license export-request --out FILE`, and put what comes back into its place with `service-local license import`.',
    nobody:
      'Enroll this machine with `service-local license enroll`, or bring a lease to it with `service-local license import`.',
    lost_key: `Put ${files.key} back from a backup; or enroll this machine again with \`service-local license enroll\` and a new code, or, without a network, with \`service-local license export-request\`.`,
  };
  return remedies[renewedBy];
}

/** Until when a lease works, to follow what has the lease. */
export function formatValidity({ expires_at, grace_ends_at }: LeaseClaims): string {
  const until = `is good until ${expires_at}`;
  return grace_ends_at === expires_at ? until : `${until}, with grace until ${grace_ends_at}`;
}

/**
 * What is in a file that somebody brought: a lease, or the document of lease and keyset that
 * `identity leases issue --request` writes.
 *
 * @param keyset a file with keys, or such a document with them.
 * @throws ServiceError `file_not_found`
 */
export async function readImport(
  cwd: string,
  lease: string,
  keyset: string | undefined,
): Promise<Brought> {
  const { partsOf } = await import('../../daemon/offline.ts');
  const text = await readNamedFile(resolve(cwd, lease));
  const parts = partsOf(text);
  const keys = keyset === undefined ? undefined : await readNamedFile(resolve(cwd, keyset));
  const named = keys === undefined ? undefined : (partsOf(keys)?.enclosed ?? keys);
  return { lease: parts?.lease ?? text, enclosed: parts?.enclosed, named };
}

/**
 * A file that was named on the command line.
 * @throws ServiceError `file_not_found`
 */
export async function readNamedFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${path} (${error.code})`, {
      remedy: 'Check the path and its permissions.',
      cause: error,
    });
  }
}

/** What a lease says, for people. */
export function showClaims(out: Output, claims: LeaseClaims): void {
  const rows = Object.entries(claims).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(' ') : String(value),
  ]);
  out.table([{ title: '' }, { title: '' }], rows);
}
