import { ServiceError } from '../base/errors.ts';
import type { AdministratorsTable, Db } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { IdentityStore } from './context.ts';
import {
  codeSubject,
  countFailures,
  forgetFailures,
  isKnownNetwork,
  loginSubject,
  MOST_FAILURES,
  rememberNetwork,
  tryLimit,
  WINDOW_MINUTES,
} from './failed-tries.ts';
import { isPassword, NOBODYS_HASH } from './password.ts';
import { findCode, useCode } from './second-factor.ts';

export interface Credentials {
  readonly name: string;
  readonly password: string;
  /** Code of the authenticator app, or recovery code. */
  readonly code: string;
  /** Network of the client, by which failures are counted; see `Origin`. */
  readonly network?: string;
}

/** Used for unknown names, so that their refusal takes the same time. */
const NOBODY = {
  administrator_id: '',
  password_hash: NOBODYS_HASH,
  totp_secret: 'A'.repeat(32),
  totp_last_step: 0,
  disabled_at: null,
} as const;

/**
 * Runs `effect` for an administrator after verifying the credentials, in the transaction that uses up
 * the code. An error does not reveal what was wrong or whether the name exists; the audit log does.
 *
 * @throws ServiceError `not_authenticated`; `rate_limited` as `tryLimit`; `overloaded`; what `effect` throws.
 */
export async function login<T>(
  { storage, clock }: IdentityStore,
  { name, password, code: typed, network = '' }: Credentials,
  effect: (tx: Db, now: number, administratorId: string) => Promise<T>,
): Promise<T> {
  const before = (await findByName(storage.read, name)) ?? NOBODY;
  const logins = loginSubject(name);
  const origin = { administrator_id: before.administrator_id, network };
  const early = await tryLimit(storage.read, clock(), logins, origin);
  if (early) throw early;
  const isKnown = await isKnownNetwork(storage.read, clock(), origin);
  const matches = await isPassword(password, before.password_hash, isKnown);

  // Errors are returned and thrown later, because throwing here would roll back the counted failure.
  const outcome = await storage.write(
    async (tx): Promise<{ done: T } | { refusal: ServiceError }> => {
      const now = clock();
      const administrator = (await findByName(tx, name)) ?? NOBODY;
      const { administrator_id } = administrator;
      const limit = await tryLimit(tx, now, logins, origin);
      if (limit) return { refusal: limit };
      const target = `administrator:${administrator_id}`;
      const codes = codeSubject(administrator_id);
      const found = await findCode(tx, now, administrator, typed);
      // Always checked and never reported: the error would reveal that the name exists or, after a
      // correct password, that the password is correct.
      const areCodesLimited = (await tryLimit(tx, now, codes, origin)) !== undefined;
      const code = areCodesLimited ? undefined : found;
      const knowsPassword = matches && administrator.password_hash === before.password_hash;
      if (knowsPassword && administrator.disabled_at === null && code !== undefined) {
        await appendAudit(tx, now, {
          actor: `administrator:${administrator_id}`,
          action: 'admin.identity.administrator.login',
          target,
          details: { second_factor: code.kind },
        });
        await useCode(tx, now, administrator_id, code);
        await forgetFailures(tx, [logins, codes], network);
        await rememberNetwork(tx, now, administrator_id, network);
        return { done: await effect(tx, now, administrator_id) };
      }
      const wrongCode = areCodesLimited ? 'code_limit' : 'code';
      const wrong = !knowsPassword ? 'password' : code === undefined ? wrongCode : 'disabled';
      if (administrator !== NOBODY) {
        await appendAudit(tx, now, {
          actor: 'server',
          action: 'admin.identity.administrator.login_failed',
          target,
          details: { wrong, network },
        });
      }
      await countFailures(tx, now, wrong === 'code' ? [logins, codes] : [logins], network);
      return { refusal: wrongCredentials() };
    },
  );
  if ('refusal' in outcome) throw outcome.refusal;
  return outcome.done;
}

function wrongCredentials(): ServiceError {
  return new ServiceError('not_authenticated', 'name, password or code is wrong', {
    reason: 'wrong_credentials',
    remedy:
      'Check name, password and code; each code works once. ' +
      `After ${MOST_FAILURES} failed logins, your address is blocked for ${WINDOW_MINUTES} minutes.`,
  });
}

/** Restricted to ASCII, so that no two names look alike. */
const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/;

export function isAdministratorName(text: string): boolean {
  return NAME.test(text);
}

async function findByName(db: Db, name: string): Promise<AdministratorsTable | undefined> {
  if (!isAdministratorName(name)) return undefined;
  return db.selectFrom('administrators').selectAll().where('name', '=', name).executeTakeFirst();
}
