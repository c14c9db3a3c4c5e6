import { createPrivateKey, createPublicKey } from 'node:crypto';
import { publicKeyId } from '../lease/keys.ts';
import { checkLeaseUse, type LeaseUse } from '../lease/use.ts';
import type { HeldLease, ReadFiles, RefusedFile } from './license.ts';
import { ownMachineHash } from './machine-id.ts';
import { readTextFile, type TextFile } from './text-file.ts';

export interface UseOptions {
  /** Product name of the program; if absent, leases for every product are accepted. */
  readonly product?: string | undefined;
  /** `machineHash` of this machine; `ownMachineHash` by default. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
}

export interface LeasesHere {
  readonly leases: readonly HeldLease[];
  readonly refused: readonly RefusedFile[];
}

/**
 * Refuses verified leases that are for another product, or bound to another device or machine.
 * Reads device keys and machine id only if a lease is bound to them.
 */
export async function leasesHere(
  files: ReadFiles,
  leases: readonly HeldLease[],
  { product, machineHash = ownMachineHash }: UseOptions,
): Promise<LeasesHere> {
  const bindings = new Set(leases.map(({ claims }) => claims.binding));
  const keys = bindings.has('device') ? await readDeviceKeys(files) : undefined;
  const use: LeaseUse = {
    product,
    device_thumbprints: keys?.thumbprints,
    machine_hash: bindings.has('machine') ? await machineHash() : undefined,
  };
  const usable: HeldLease[] = [];
  const refused: RefusedFile[] = [];
  for (const lease of leases) {
    const verdict = checkLeaseUse(lease.claims, use);
    if (verdict.ok) {
      usable.push(lease);
      continue;
    }
    const { reason, detail } = verdict;
    const why = reason === 'no_device_key' ? keys?.fault : undefined;
    refused.push({ path: lease.path, reason, detail: why ? `${detail}: ${why}` : detail });
  }
  return { leases: usable, refused };
}

interface DeviceKeys {
  /** Thumbprints of the private keys on this machine, the current device key first. */
  readonly thumbprints: readonly string[];
  /** Why the current device key is missing from `thumbprints`; undefined if it is there. */
  readonly fault: string | undefined;
}

/** Reads the device key, and the former one, to which a lease from before a rotation may be bound. */
async function readDeviceKeys({ key, formerKey }: ReadFiles): Promise<DeviceKeys> {
  const paths = [key, formerKey].filter((path) => path !== undefined);
  const files = await Promise.all(paths.map(readTextFile));
  const ids = files.map(thumbprintIn);
  const own = files[0];
  const isRead = own?.read.ok === true;
  return {
    thumbprints: ids.filter((id) => id !== undefined),
    fault: isRead ? `${own.path} is not an Ed25519 private key` : own && faultOf(own),
  };
}

function faultOf({ read }: TextFile): string | undefined {
  return read.ok ? undefined : read.detail;
}

function thumbprintIn({ read }: TextFile): string | undefined {
  if (!read.ok) return undefined;
  try {
    const key = createPrivateKey(read.text);
    const { x } = createPublicKey(key).export({ format: 'jwk' });
    return key.asymmetricKeyType === 'ed25519' ? publicKeyId(x!) : undefined;
  } catch {
    return undefined;
  }
}
