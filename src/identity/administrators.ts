import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import type { Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { IdentityStore } from './context.ts';
import { codeSubject, forgetFailures, loginSubject } from './failed-tries.ts';
import { isAdministratorName } from './login.ts';
import { hashPassword, passwordProblem } from './password.ts';
import { replaceRecoveryCodes } from './second-factor.ts';
import { addToken, checkTokenTerms, type NewToken, type TokenTerms } from './tokens.ts';

/** Credentials with which an administrator logs in. */
export interface Factors {
  readonly password: string;
  /** The `secret` of `newTotpSecret`. */
  readonly totp_secret: string;
  /** Time step of the code with which the administrator confirmed the app; 0 if unconfirmed. */
  readonly totp_last_step: number;
}

/** Returned once: codes and token are stored only as hashes. */
export interface Enrolled {
  readonly administrator_id: string;
  readonly name: string;
  /** Each replaces one code of the app. */
  readonly recovery_codes: readonly string[];
  /** Present if terms of a token were given. */
  readonly token?: NewToken;
}

/** Times are milliseconds since the Unix epoch. */
export interface AdministratorState {
  readonly administrator_id: string;
  readonly name: string;
  readonly created_at: number;
  readonly disabled_at: number | null;
  /** Count of unused codes. */
  readonly recovery_codes: number;
}

/**
 * Checks a name before the operator is asked for a password.
 * @throws ServiceError `usage`, `conflict`
 */
export async function checkNewName(db: Db, name: string): Promise<void> {
  if (!isAdministratorName(name)) {
    throw new ServiceError('usage', `'${name}' is not a valid administrator name`, {
      remedy:
        'Use 1 to 64 of the characters a-z, 0-9 and . _ @ + -, beginning with a letter or digit.',
    });
  }
  if ((await findByName(db, name)) === undefined) return;
  throw new ServiceError('conflict', `the administrator ${name} already exists`, {
    remedy:
      'Choose another name, or set new credentials with `service-local identity administrators reset`.',
  });
}

/**
 * @param terms of a first token; without them, none is created.
 * @throws ServiceError `usage`, `conflict`; `invalid_request` for invalid terms.
 */
export async function addAdministrator(
  { storage, clock }: IdentityStore,
  name: string,
  factors: Factors,
  terms?: TokenTerms,
): Promise<Enrolled> {
  if (terms) checkTokenTerms(terms);
  const password_hash = await hashNewPassword(factors.password);
  return storage.write(async (tx) => {
    const now = clock();
    await checkNewName(tx, name);
    const administrator_id = uuidv7({ msecs: now });
    await appendAudit(tx, now, {
      actor: 'operator',
      action: 'admin.identity.administrator.add',
      target: `administrator:${administrator_id}`,
      details: { name },
    });
    const { totp_secret, totp_last_step } = factors;
    await tx
      .insertInto('administrators')
      .values({
        administrator_id,
        name,
        password_hash,
        totp_secret,
        totp_last_step,
        created_at: now,
        disabled_at: null,
      })
      .execute();
    const recovery_codes = await replaceRecoveryCodes(tx, administrator_id);
    const enrolled = { administrator_id, name, recovery_codes };
    if (!terms) return enrolled;
    return { ...enrolled, token: await addToken(tx, now, 'operator', administrator_id, terms) };
  });
}

/** True also if all administrators are disabled. */
export async function hasAdministrators(db: Db): Promise<boolean> {
  const first = db.selectFrom('administrators').select('administrator_id').limit(1);
  return (await first.executeTakeFirst()) !== undefined;
}

export async function listAdministrators(db: Db): Promise<AdministratorState[]> {
  return db
    .selectFrom('administrators')
    .leftJoin('recovery_codes', (join) =>
      join
        .onRef('recovery_codes.administrator_id', '=', 'administrators.administrator_id')
        .on('recovery_codes.used_at', 'is', null),
    )
    .select(({ fn }) => [
      'administrators.administrator_id',
      'name',
      'created_at',
      'disabled_at',
      fn.count<number>('code_hash').as('recovery_codes'),
    ])
    .groupBy('administrators.administrator_id')
    .orderBy('name')
    .execute();
}

/** Times are milliseconds since the Unix epoch. */
export interface Account {
  readonly administrator_id: string;
  readonly name: string;
  readonly created_at: number;
  /** Count of unused codes. */
  readonly recovery_codes: number;
  readonly passkeys: number;
}

/** @param administratorId of an existing administrator. */
export async function getAccount(db: Db, administratorId: string): Promise<Account> {
  return db
    .selectFrom('administrators')
    .select((eb) => [
      'administrator_id',
      'name',
      'created_at',
      eb
        .selectFrom('recovery_codes')
        .select(eb.fn.countAll<number>().as('count'))
        .where('administrator_id', '=', administratorId)
        .where('used_at', 'is', null)
        .$asScalar()
        .$notNull()
        .as('recovery_codes'),
      eb
        .selectFrom('passkeys')
        .select(eb.fn.countAll<number>().as('count'))
        .where('administrator_id', '=', administratorId)
        .$asScalar()
        .$notNull()
        .as('passkeys'),
    ])
    .where('administrator_id', '=', administratorId)
    .executeTakeFirstOrThrow();
}

/**
 * Rejects logins, tokens and sessions of the administrator from now on. Idempotent.
 * @throws ServiceError `not_found`
 */
export async function disableAdministrator(
  { storage, clock }: IdentityStore,
  name: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const now = clock();
    const { administrator_id, disabled_at } = await getAdministrator(tx, name);
    if (disabled_at !== null) return;
    await appendAudit(tx, now, {
      actor: 'operator',
      action: 'admin.identity.administrator.disable',
      target: `administrator:${administrator_id}`,
      details: { name },
    });
    await tx
      .updateTable('administrators')
      .set({ disabled_at: now })
      .where('administrator_id', '=', administrator_id)
      .execute();
  });
}

/**
 * Replaces the credentials and recovery codes of an administrator. Ends tokens, sessions, passkeys
 * and step-ups, lifts the limit on failed logins, and enables a disabled administrator.
 *
 * @throws ServiceError `usage`, `not_found`
 */
export async function resetAdministrator(
  { storage, clock }: IdentityStore,
  name: string,
  factors: Factors,
): Promise<Enrolled> {
  const password_hash = await hashNewPassword(factors.password);
  return storage.write(async (tx) => {
    const now = clock();
    const { administrator_id, disabled_at } = await getAdministrator(tx, name);
    await appendAudit(tx, now, {
      actor: 'operator',
      action: 'admin.identity.administrator.reset',
      target: `administrator:${administrator_id}`,
      details: { name, was_disabled: disabled_at !== null },
    });
    const { totp_secret, totp_last_step } = factors;
    await tx
      .updateTable('administrators')
      .set({ password_hash, totp_secret, totp_last_step, disabled_at: null })
      .where('administrator_id', '=', administrator_id)
      .execute();
    await tx
      .updateTable('api_tokens')
      .set({ revoked_at: now })
      .where('administrator_id', '=', administrator_id)
      .where('revoked_at', 'is', null)
      .execute();
    for (const table of [
      'step_ups',
      'sessions',
      'passkeys',
      'challenges',
      'known_networks',
    ] as const) {
      await tx.deleteFrom(table).where('administrator_id', '=', administrator_id).execute();
    }
    await forgetFailures(tx, [loginSubject(name), codeSubject(administrator_id)]);
    const recovery_codes = await replaceRecoveryCodes(tx, administrator_id);
    return { administrator_id, name, recovery_codes };
  });
}

async function hashNewPassword(password: string): Promise<string> {
  const problem = passwordProblem(password);
  if (problem !== undefined) throw new ServiceError('usage', problem);
  return hashPassword(password);
}

export async function getAdministrator(
  db: Db,
  name: string,
): Promise<{ readonly administrator_id: string; readonly disabled_at: number | null }> {
  const row = await findByName(db, name);
  if (row !== undefined) return row;
  throw new ServiceError('not_found', `there is no administrator ${name}`, {
    remedy: 'See `service-local identity administrators list`.',
  });
}

function findByName(db: Db, name: string) {
  return db
    .selectFrom('administrators')
    .select(['administrator_id', 'disabled_at'])
    .where('name', '=', name)
    .executeTakeFirst();
}
