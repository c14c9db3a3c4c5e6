import { hash, randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import type { getKeyset, Keyset } from '../../api/keys.ts';
import type { createLease, DryRun, dryRunRenewal, LeaseAnswer } from '../../api/leases.ts';
import type { Client } from '../../client/client.ts';
import { judgeKeyset } from '../../client/keyset.ts';
import { writePrivateFile } from '../../base/private-file.ts';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { BEFORE_ANY_EXPIRY } from '../../gate/anchor.ts';
import { isId, type LeaseClaims } from '../../lease/claims.ts';

import { LEASE_REASONS } from '../../lease/reasons.ts';
import { formatTime } from '../../lease/time.ts';
import { verifyLease } from '../../lease/verify.ts';
import type { Install } from './cloud-file.ts';
import { factsOf, type SeedManifest } from './manifest.ts';
import type { SecretStore } from './secret-store.ts';

export interface Seeding {
  readonly install: Install;
  readonly store: SecretStore;
  readonly server: Client;
  /** Path of the file that keeps the issue ID of an unfinished request across restarts. */
  readonly journal: string;
  /** Receives notices for the user. */
  readonly message: (text: string) => void;
  readonly clock: () => number;
}

export interface Seeded {
  readonly manifest: SeedManifest;
  /** Why the lease is shorter than the plan allows. */
  readonly limits: LeaseAnswer['limits'];
}

/**
 * Issues a lease for the installation and stores the keyset, then the lease, as secrets. The registry
 * decides what the lease grants and how long it lasts. The keyset contains all keys of leases that
 * can still be valid and is written first. Verifiers therefore never see a lease without its key,
 * and a store that rejects writes costs no lease. After an interruption, run it again.
 *
 * @throws ServiceError as `SecretStore.put` and the server; `invalid_data` if the server does not
 * return a valid lease for the installation.
 */
export async function seed(seeding: Seeding): Promise<Seeded> {
  await plan(seeding);
  return deliver(seeding);
}

/**
 * Returns the lease that the server would issue now. Call it before writing anything: if the server
 * would issue no lease, its keys must not replace the keys of the existing lease.
 * @throws ServiceError as the server
 */
export async function plan({ install, server }: Seeding): Promise<DryRun> {
  return server.call<typeof dryRunRenewal>('post', '/auth/license/leases/dry-run', {
    body: wanted(install),
  });
}

/**
 * Issues the lease and writes both secrets, after `plan`.
 * @throws ServiceError as `seed`
 */
export async function deliver(seeding: Seeding): Promise<Seeded> {
  const { install, store, journal, clock } = seeding;
  const { secrets, license_deployment_id } = install;
  let keyset = await putKeyset(seeding);
  const answer = await issue(seeding);
  const text = JSON.stringify(answer.lease);
  let claims = verified(text, keyset.keys);
  if (claims === undefined) {
    // The server switched to another signing key after the keyset was read.
    keyset = await putKeyset(seeding);
    claims = verified(text, keyset.keys);
  }
  if (claims?.deployment_id !== license_deployment_id) {
    throw new ServiceError(
      'invalid_data',
      `the server issued a lease that its keys do not verify for ${license_deployment_id}`,
      { remedy: 'Ask the issuer of the lease to check the signing keys of the server.' },
    );
  }
  const version = await store.put(secrets.lease, text, claims.lease_id);
  await forgetIssue(journal);
  const manifest: SeedManifest = {
    schema: 'service-local/secret_seed_manifest/v1',
    customer: install.customer,
    env: install.env,
    license_deployment_id,
    store: store.place,
    status: 'seeded',
    seeded_at: formatTime(clock()),
    ...factsOf(claims),
    secrets: [
      { name: secrets.public_key, version_id: keyset.version_id, status: 'seeded' },
      { name: secrets.lease, version_id: version, status: 'seeded' },
    ],
  };
  return { manifest, limits: answer.limits };
}

/**
 * Stores the keyset that the server publishes, even if it has expired, because running gates still
 * accept leases under it.
 *
 * @throws ServiceError `invalid_data` if the pinned root did not sign the keyset.
 */
export async function putKeyset({ install, store, server, clock }: Seeding) {
  const keys: Keyset = await server.call<typeof getKeyset>(
    'get',
    '/.well-known/license-keys.json',
    {},
  );
  const judge = (now: number) => judgeKeyset(keys, { pin: install.pin, now });
  const current = judge(clock());
  const isExpired = !current.ok && current.reason === 'keyset_expired';
  const judged = isExpired ? judge(BEFORE_ANY_EXPIRY) : current;
  if (!judged.ok) {
    throw new ServiceError(
      'invalid_data',
      `cannot use the keys of the server: ${LEASE_REASONS[judged.reason]}`,
      {
        reason: judged.reason,
      },
    );
  }
  const text = JSON.stringify(keys);
  const version_id = await store.put(install.secrets.public_key, text, hash('sha256', text));
  return { keys: judged.trust.keys, version_id };
}

function verified(text: string, keys: Parameters<typeof verifyLease>[1]): LeaseClaims | undefined {
  const lease = verifyLease(text, keys);
  return lease.ok ? lease.claims : undefined;
}

/** Includes the customer so that the registry rejects the installation of another customer. */
function wanted({ license_deployment_id, customer_id }: Install) {
  return { deployment_id: license_deployment_id, customer_id };
}

async function issue({ install, server, journal, message }: Seeding): Promise<LeaseAnswer> {
  const ask = async (): Promise<LeaseAnswer> =>
    server.call<typeof createLease>('post', '/auth/license/leases', {
      body: { ...wanted(install), issue_id: await issueId(journal) },
    });
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ServiceError && error.reason === 'already_issued')) throw error;
    message(
      `An earlier run was interrupted: ${error.message}. If the store does not contain that lease, it is lost. Requesting another lease.`,
    );
    await forgetIssue(journal);
    return ask();
  }
}

/**
 * Returns the issue ID of an interrupted run, or a new one that is already on disk. The server issues
 * one lease per issue ID: repeating a request creates no second lease, and reveals a lease that was
 * issued but never arrived.
 */
async function issueId(journal: string): Promise<string> {
  const begun = await begunIssue(journal);
  if (begun !== undefined) return begun;
  const issue_id = randomUUID();
  await writePrivateFile(journal, `${JSON.stringify({ issue_id })}\n`);
  return issue_id;
}

async function begunIssue(journal: string): Promise<string | undefined> {
  try {
    const begun = JSON.parse(await readFile(journal, 'utf8')) as { issue_id?: unknown } | null;
    return isId(begun?.issue_id) ? (begun?.issue_id as string) : undefined;
  } catch (error) {
    // A partly written file counts as missing.
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export async function forgetIssue(journal: string): Promise<void> {
  await rm(journal, { force: true });
}
