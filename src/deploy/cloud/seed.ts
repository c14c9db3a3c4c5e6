import { hash, randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import type { getKeyset, Keyset } from '../../api/keys.ts';
import type { createLease, DryRun, dryRunRenewal, LeaseAnswer } from '../../api/leases.ts';
import type { Client } from '../../client/client.ts';
import { judgeKeyset } from '../../client/keyset.ts';
import { writePrivateFile } from '../../client/private-file.ts';
import { isSystemError, ServiceError } from '../../base/errors.ts';
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
  /** Where it is kept, over the end of the process, under which id a lease is asked for. */
  readonly journal: string;
  /** Told what a person should know. */
  readonly message: (text: string) => void;
  readonly clock: () => number;
}

export interface Seeded {
  readonly manifest: SeedManifest;
  /** Where less time was given than was due, and why. */
  readonly limits: LeaseAnswer['limits'];
}

/**
 * Issues a lease for the install, and writes the keyset and then the lease to its secrets; what the
 * lease gives and how long it lasts, the registry says. The keyset has all keys under which a lease
 * can still be good, and is in place before anything is issued: so verifiers never see a lease
 * without its key, and a store that cannot be written costs no lease. Wherever it is broken off,
 * running it again is all that is needed.
 *
 * @throws ServiceError as `SecretStore.put`, and as the server says; `invalid_data` for an answer
 * that is no lease of that installation.
 */
export async function seed(seeding: Seeding): Promise<Seeded> {
  await plan(seeding);
  return deliver(seeding);
}

/**
 * What would be issued now. To be asked before anything is written: the keys of a server that would
 * issue nothing are not those of the lease that is there.
 * @throws ServiceError as the server says
 */
export async function plan({ install, server }: Seeding): Promise<DryRun> {
  return server.call<typeof dryRunRenewal>('post', '/auth/license/leases/dry-run', {
    body: wanted(install),
  });
}

/**
 * The rest of `seed`.
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
    // The server has begun to sign with another key since.
    keyset = await putKeyset(seeding);
    claims = verified(text, keyset.keys);
  }
  if (claims?.deployment_id !== license_deployment_id) {
    throw new ServiceError('invalid_data', 'what the server issued does not verify by its keys');
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
 * Stores the keys that the server publishes. An expired keyset is stored, too: running gates still
 * accept the leases that it verifies.
 *
 * @throws ServiceError `invalid_data` for keys that the pinned root does not sign.
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
    throw new ServiceError('invalid_data', `the server's keys: ${LEASE_REASONS[judged.reason]}`, {
      reason: judged.reason,
    });
  }
  const text = JSON.stringify(keys);
  const version_id = await store.put(install.secrets.public_key, text, hash('sha256', text));
  return { keys: judged.trust.keys, version_id };
}

function verified(text: string, keys: Parameters<typeof verifyLease>[1]): LeaseClaims | undefined {
  const lease = verifyLease(text, keys);
  return lease.ok ? lease.claims : undefined;
}

/** The customer is named so that the registry refuses where the installation is another's. */
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
      `A run that was broken off had got a lease. Unless that is in the store, nobody has it: ${error.message}.`,
    );
    await forgetIssue(journal);
    return ask();
  }
}

/**
 * That of the run that was broken off, or a new one, which is on disk when this returns. The server
 * gives none twice under the same one: a request that is sent again does not make two leases, and
 * one that was issued and never arrived is told.
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
    // A torn file is as good as none.
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Ends what was begun. */
export async function forgetIssue(journal: string): Promise<void> {
  await rm(journal, { force: true });
}
