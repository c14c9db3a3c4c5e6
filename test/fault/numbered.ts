/**
 * Leases and keysets with numbers. As a program, `node numbered.ts HOME FIRST LAST` stores those with
 * these numbers, and reports each one after it has stored it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { backupOf, readLicense } from '../../src/gate/license.ts';
import { storeKeyset, storeLease } from '../../src/client/lease-store.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles } from '../../src/gate/license-files.ts';
import { claimsOf, issue, testKey } from '../lease/issuer.ts';

const KEYS = [testKey(1), testKey(2)] as const;
const ISSUED = Date.UTC(2026, 0, 5);
const TTL_SECONDS = 30 * 86_400;

/** When each of them, up to a million, works. */
export const NOW = ISSUED + 20 * 86_400_000;

/** The later has the higher number. */
export function leaseText(number: number): string {
  const key = KEYS[number % 2]!;
  const issued_at = formatTime(ISSUED + number * 1000);
  const lease_id = `lease-${number}`;
  return issue(claimsOf(key, { lease_id, issued_at, ttl_seconds: TTL_SECONDS }), key);
}

/** @throws an error for what is no lease. */
export function numberOf(lease: string): number {
  const { payload } = JSON.parse(lease) as { readonly payload: string };
  const claims = JSON.parse(Buffer.from(payload, 'base64').toString()) as LeaseClaims;
  return Number(claims.lease_id.replace('lease-', ''));
}

/** With it, each of the leases verifies. */
export function keysetText(number: number): string {
  const keys = KEYS.map(({ jwk }) => jwk);
  return JSON.stringify({ keys: number % 2 === 0 ? keys : keys.toReversed() });
}

export const numberedFiles = (home: string) => licenseFiles(home, {});

export async function store(home: string, number: number): Promise<void> {
  const { keyset, lease } = numberedFiles(home);
  await storeKeyset(keyset, keysetText(number));
  await storeLease(lease, leaseText(number));
}

export function putStored(home: string, number: number): void {
  const { keyset, lease } = numberedFiles(home);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeFileSync(keyset, keysetText(number), { mode: 0o600 });
  for (const path of [backupOf(lease), lease]) {
    writeFileSync(path, leaseText(number), { mode: 0o600 });
  }
}

export async function heldNumber(home: string): Promise<number | undefined> {
  const { leases } = await readLicense(numberedFiles(home), NOW);
  return leases[0] && numberOf(leases[0].text);
}

if (import.meta.main) {
  const [home, first, last] = process.argv.slice(2);
  for (let number = Number(first); number <= Number(last); number += 1) {
    await store(home!, number);
    process.stdout.write(`${number}\n`);
  }
}
