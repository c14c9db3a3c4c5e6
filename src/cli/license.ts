import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Brought } from '../../daemon/offline.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import type { HeldLease, License } from '../gate/license.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { LeaseStatus } from '../lease/status.ts';
import { formatTime } from '../lease/time.ts';
import { licenseFiles, type LicenseFiles } from '../license-files.ts';
import type { Output } from './output.ts';
import type { Context } from './verb.ts';

/** The license of this machine as it is now. */
export interface LicenseView {
  readonly files: LicenseFiles;
  readonly license: License;
  /** The lease that counts; undefined when none verifies. */
  readonly held: ViewedLease | undefined;
}

interface ViewedLease extends HeldLease {
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
  const { readLicense, statusOf } = await import('../gate/license.ts');
  const { runningTime } = await import('../lease/known-time.ts');
  const { renewalMoment } = await import('../lease/schedule.ts');
  const files = licenseFiles(settings.home, io.env);
  const license = await readLicense(files, now);
  const [best] = license.leases;
  if (best === undefined) return { files, license, held: undefined };
  const { claims } = best;
  const boot = systemBoot();
  const status = statusOf(best, now, runningTime(license.running, claims.lease_id, boot));
  const moment = renewalMoment(claims);
  const isDue = passedTime(claims, license.running ?? null, now, boot) >= moment;
  const due_at = formatTime(Math.ceil(moment / 1000) * 1000);
  return { files, license, held: { ...best, status, isDue, due_at } };
}

/**
 * What is in a file that somebody brought: a lease, or the document of lease and keyset that
 * `identity leases issue --request` writes.
 *
 * @param keyset a file with keys, or such a document with them.
 * @throws ServiceError `file_not_found`
 */
export async function readBrought(
  cwd: string,
  lease: string,
  keyset: string | undefined,
): Promise<Brought> {
  const text = await readNamed(resolve(cwd, lease));
  const parts = partsOf(text);
  const keys = keyset === undefined ? undefined : await readNamed(resolve(cwd, keyset));
  const named = keys === undefined ? undefined : (partsOf(keys)?.enclosed ?? keys);
  return { lease: parts?.lease ?? text, enclosed: parts?.enclosed, named };
}

function partsOf(text: string): { readonly lease: string; readonly enclosed: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { lease, keyset } = value as Readonly<Record<string, unknown>>;
  if (lease === undefined || keyset === undefined) return undefined;
  return { lease: JSON.stringify(lease), enclosed: JSON.stringify(keyset) };
}

/**
 * A file that was named on the command line.
 * @throws ServiceError `file_not_found`
 */
export async function readNamed(path: string): Promise<string> {
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
