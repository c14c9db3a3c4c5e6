import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import type { Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { Identity } from './context.ts';
import { codeSubject, forgetFailures, loginSubject } from './failed-tries.ts';
import { isAdministratorName } from './login.ts';
import { hashPassword, passwordProblem } from './password.ts';
import { replaceRecoveryCodes } from './second-factor.ts';
import { addToken, checkTokenTerms, type NewToken, type TokenTerms } from './tokens.ts';

/** With what an administrator is to log in. */
export interface Factors {
  readonly password: string;
  /** `secret` of `newTotpSecret`, which his app has, too. */
  readonly totp_secret: string;
  /** Of the code with which he has shown that the app has it; 0 when he has not. */
  readonly totp_last_step: number;
}

/** What is told once and kept nowhere. */
export interface Enrolled {
  readonly administrator_id: string;
  readonly name: string;
  /** Each good for one code of the app. */
  readonly recovery_codes: readonly string[];
  /** With the terms of one. */
  readonly token?: NewToken;
}

/** Times are milliseconds since the Unix epoch. */
export interface AdministratorState {
  readonly administrator_id: string;
  readonly name: string;
  readonly created_at: number;
  readonly disabled_at: number | null;
  /** How many have not been used. */
  readonly recovery_codes: number;
}

type Parts = Pick<Identity, 'storage' | 'clock'>;

/**
 * Refuses what `addAdministrator` would refuse, before anybody is asked for more.
 * @throws ServiceError `usage`, `conflict`
 */
export async function checkNewName(db: Db, name: string): Promise<void> {
  if (!isAdministratorName(name)) {
    throw new ServiceError('usage', `'${name}' is no name for an administrator`, {
      remedy: 'Use 1 to 64 of a to z, 0 to 9 and . _ @ + -, a letter or digit first.',
    });
  }
  if ((await findByName(db, name)) === undefined) return;
  throw new ServiceError('conflict', `there is an administrator ${name} already`, {
    remedy: 'Use another name, or `service-local identity administrators reset`.',
  });
}

/**
 * All of this file is done by an operator, on the server's machine.
 *
 * @param terms of a first token, if one is wanted.
 * @throws ServiceError `usage`, `conflict`, `invalid_request` for the terms.
 */
export async function addAdministrator(
  { storage, clock }: Parts,
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

/** Whether anybody can administer the server, or could once. */
export async function hasAdministrators(db: Db): Promise<boolean> {
  const first = db.selectFrom('administrators').select('administrator_id').limit(1);
  return (await first.executeTakeFirst()) !== undefined;
}

/** By name. */
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

/** What he has to log in with: `getAccount`'s. Times are milliseconds since the Unix epoch. */
export interface Account {
  readonly administrator_id: string;
  readonly name: string;
  readonly created_at: number;
  /** How many have not been used. */
  readonly recovery_codes: number;
  readonly passkeys: number;
}

/** Of one that there is. */
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
 * From now on he cannot log in, and his tokens and sessions are refused. Doing so again changes nothing.
 * @throws ServiceError `not_found`
 */
export async function disableAdministrator({ storage, clock }: Parts, name: string): Promise<void> {
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
 * Gives an administrator new factors and recovery codes, and ends all that the old ones have led to:
 * tokens, sessions, passkeys, step-ups, the limit on tries. One who is disabled is let in again.
 *
 * @throws ServiceError `usage`, `not_found`
 */
export async function resetAdministrator(
  { storage, clock }: Parts,
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

/** @throws ServiceError `not_found` */
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
