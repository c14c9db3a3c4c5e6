import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { removeAbandoned } from '../base/atomic-file.ts';
import { quarantine, storeKeyset, storeLease } from '../client/lease-store.ts';
import { withLock } from '../base/file-lock.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { readLicense, type HeldLease, type License } from '../gate/license.ts';
import { acceptedAnchor } from '../gate/machine-trust.ts';
import type { CheckCode } from './run-checks.ts';
import { wrongModes, SELF_TEST } from './checks/machine.ts';
import type { Machine } from './machine-facts.ts';

export interface Repair {
  readonly code: CheckCode;
  readonly path: string;
  /** Description of the repair, as a participle. */
  readonly done: string;
}

/**
 * Makes safe repairs: restricts access to private files, restores the accepted keys and the best copy
 * of the lease, keeping the replaced files under other names, and removes files that killed processes
 * left. Files that trusted keys do not verify are never used.
 *
 * @param warn called for each repair that fails.
 */
export async function repair(
  machine: Machine,
  warn: (text: string) => void,
): Promise<readonly Repair[]> {
  const done: Repair[] = [];
  // Listed first, because storing a lease removes some of them, too.
  const leftovers = await leftoversOf(machine.home);
  for (const { path, mode, fault } of await wrongModes(machine)) {
    await attemptRepair(warn, async () => {
      await chmod(path, mode);
      const isKey = path === machine.files.key || path === machine.files.nextKey;
      const closed = isKey
        ? `made inaccessible to other users; ${CHANGE_KEY}`
        : 'made inaccessible to other users';
      const what = fault === 'this user may not open' ? 'made accessible to this user' : closed;
      done.push({ code: isKey ? 'device_key' : 'home', path, done: what });
    });
  }
  await attemptRepair(warn, async () => {
    const what = await restoreKeyset(machine);
    if (what === undefined) return;
    done.push({ code: 'keyset', path: machine.files.keyset, done: what });
  });
  await attemptRepair(warn, async () => {
    const what = await restoreLease(machine);
    if (what === undefined) return;
    done.push({ code: 'lease_file', path: machine.files.lease, done: what });
  });
  await attemptRepair(warn, async () => {
    const left = await removeLeftovers(leftovers, machine);
    done.push(...left.map((path) => ({ code: 'disk', path, done: 'removed' }) as const));
  });
  return done;
}

const CHANGE_KEY =
  'if other users may have read the key, replace it with `service-local license rotate-key`';

async function attemptRepair(
  warn: (text: string) => void,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isSystemError(error) && !(error instanceof ServiceError)) throw error;
    warn(`not repaired: ${error.message}`);
  }
}

/** Renewals hold the lock for less time, unless the server hardly responds. */
const LOCK_MS = 2000;

/** @returns what was done; undefined if the keyset is valid or no keys were accepted before. */
async function restoreKeyset({ files, clock }: Machine): Promise<string | undefined> {
  if (acceptedKeyset(await readLicense(files, clock())) === undefined) return undefined;
  return withLock(files.lock, LOCK_MS, async () => {
    const document = acceptedKeyset(await readLicense(files, clock()));
    if (document === undefined) return undefined;
    const kept = await quarantine(files.keyset, clock());
    await storeKeyset(files.keyset, document);
    const before = kept === undefined ? '' : `; the previous file is now ${kept}`;
    return `the keys that this machine accepted were restored${before}`;
  });
}

/** The keyset document to restore; undefined if the keyset is valid or no keys were accepted. */
function acceptedKeyset(license: License): string | undefined {
  return license.keyset.ok ? undefined : acceptedAnchor(license)?.document;
}

/** @returns what was done; undefined if the best lease is already in its place. */
async function restoreLease({ files, clock }: Machine): Promise<string | undefined> {
  if (!isElsewhere(await readBest(files, clock()), files.lease)) return undefined;
  return withLock(files.lock, LOCK_MS, async () => {
    // The daemon may have restored it meanwhile.
    const best = await readBest(files, clock());
    if (!isElsewhere(best, files.lease)) return undefined;
    const kept = await quarantine(files.lease, clock());
    await storeLease(files.lease, best.text);
    const before = kept === undefined ? '' : `; the previous file is now ${kept}`;
    return `the best copy was restored${before}`;
  });
}

async function readBest(files: Machine['files'], now: number): Promise<HeldLease | undefined> {
  return (await readLicense(files, now)).leases[0];
}

function isElsewhere(best: HeldLease | undefined, path: string): best is HeldLease {
  return best !== undefined && best.path !== path;
}

/** @returns the removed files. */
async function removeLeftovers(
  before: readonly string[],
  { home, files, clock }: Machine,
): Promise<readonly string[]> {
  if (before.length === 0) return [];
  // If the lease file is not valid, one of these may be the only copy of the lease.
  const best = await readBest(files, clock());
  const isLease = (path: string): boolean => basename(path).startsWith(`${basename(files.lease)}.`);
  if (best?.path !== files.lease && before.some(isLease)) return [];
  await removeAbandoned(home, { unknownAfterMs: 60_000 });
  for (const path of before.filter((one) => basename(one).startsWith(SELF_TEST))) {
    if (Date.now() - (await stat(path)).mtimeMs > 60_000) await rm(path, { recursive: true });
  }
  const after = new Set(await leftoversOf(home));
  return before.filter((path) => !after.has(path));
}

async function leftoversOf(home: string): Promise<readonly string[]> {
  const names = await readdir(home).catch((error: unknown) => {
    if (isSystemError(error)) return [];
    throw error;
  });
  return names
    .filter((name) => name.endsWith('.tmp') || name.startsWith(SELF_TEST))
    .map((name) => join(home, name));
}
