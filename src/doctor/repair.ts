import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { removeAbandoned } from '../base/atomic-file.ts';
import { quarantine, storeKeyset, storeLease } from '../client/lease-store.ts';
import { withLock } from '../client/lock.ts';
import { isSystemError, ServiceError } from '../base/errors.ts';
import { readLicense, type HeldLease, type License } from '../gate/license.ts';
import { acceptedAnchor } from '../gate/machine-trust.ts';
import type { CheckCode } from './check.ts';
import { wrongModes, SELF_TEST } from './checks/machine.ts';
import type { Machine } from './facts.ts';

export interface Repair {
  /** Of the check that found it wrong. */
  readonly code: CheckCode;
  readonly path: string;
  /** What was done to it. */
  readonly done: string;
}

/**
 * Does what harms nothing: closes to others what is private, puts the best copy of the lease and the
 * keys that this machine accepted in their places and keeps what was there, and removes what killed
 * processes left. Files that are not vouched for are never taken.
 *
 * @param warn told what could not be done.
 */
export async function repair(
  machine: Machine,
  warn: (text: string) => void,
): Promise<readonly Repair[]> {
  const done: Repair[] = [];
  // Whoever stores a lease removes some of these, too.
  const leftovers = await leftoversOf(machine.home);
  for (const { path, mode, fault } of await wrongModes(machine)) {
    await unlessRefused(warn, async () => {
      await chmod(path, mode);
      const isKey = path === machine.files.key || path === machine.files.nextKey;
      const closed = isKey ? `closed to others; ${CHANGE_KEY}` : 'closed to others';
      const what = fault === 'this user may not open' ? 'opened to this user' : closed;
      done.push({ code: isKey ? 'device_key' : 'home', path, done: what });
    });
  }
  await unlessRefused(warn, async () => {
    const what = await restoreKeyset(machine);
    if (what === undefined) return;
    done.push({ code: 'keyset', path: machine.files.keyset, done: what });
  });
  await unlessRefused(warn, async () => {
    const what = await restoreLease(machine);
    if (what === undefined) return;
    done.push({ code: 'lease_file', path: machine.files.lease, done: what });
  });
  await unlessRefused(warn, async () => {
    const left = await removed(leftovers, machine);
    done.push(...left.map((path) => ({ code: 'disk', path, done: 'removed' }) as const));
  });
  return done;
}

const CHANGE_KEY = 'if anybody may have read it, change it with `service-local license rotate-key`';

async function unlessRefused(
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

/** A renewal takes no longer, unless the server hardly answers. */
const LOCK_MS = 2000;

/** @returns what was done; undefined when the keyset is good, or no keys were accepted before. */
async function restoreKeyset({ files, clock }: Machine): Promise<string | undefined> {
  if (acceptedKeyset(await readLicense(files, clock())) === undefined) return undefined;
  return withLock(files.lock, LOCK_MS, async () => {
    const document = acceptedKeyset(await readLicense(files, clock()));
    if (document === undefined) return undefined;
    const kept = await quarantine(files.keyset, clock());
    await storeKeyset(files.keyset, document);
    const before = kept === undefined ? '' : `; what was there is now ${kept}`;
    return `the keys that this machine accepted were put back${before}`;
  });
}

/** The keyset document to put back; undefined when there is none, or none is needed. */
function acceptedKeyset(license: License): string | undefined {
  return license.keyset.ok ? undefined : acceptedAnchor(license)?.document;
}

/** @returns what was done; undefined when the best lease is in its place already. */
async function restoreLease({ files, clock }: Machine): Promise<string | undefined> {
  if (!isElsewhere(await readBest(files, clock()), files.lease)) return undefined;
  return withLock(files.lock, LOCK_MS, async () => {
    // The daemon may have been faster.
    const best = await readBest(files, clock());
    if (!isElsewhere(best, files.lease)) return undefined;
    const kept = await quarantine(files.lease, clock());
    await storeLease(files.lease, best.text);
    const before = kept === undefined ? '' : `; what was there is now ${kept}`;
    return `the best copy was put in its place${before}`;
  });
}

async function readBest(files: Machine['files'], now: number): Promise<HeldLease | undefined> {
  return (await readLicense(files, now)).leases[0];
}

function isElsewhere(best: HeldLease | undefined, path: string): best is HeldLease {
  return best !== undefined && best.path !== path;
}

/** @returns those that are gone. */
async function removed(
  before: readonly string[],
  { home, files, clock }: Machine,
): Promise<readonly string[]> {
  if (before.length === 0) return [];
  // While none is in its place, one of these may be the only copy of a lease.
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
