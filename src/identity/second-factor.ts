import { ServiceError } from '../base/errors.ts';
import type { AdministratorsTable, Db } from '../storage/tables.ts';
import { hashCode, newCode } from './secrets.ts';
import { totpStep } from './totp.ts';

const RECOVERY_CODES = 10;

export type Code =
  | { readonly kind: 'totp'; readonly step: number }
  | { readonly kind: 'recovery_code'; readonly code_hash: string };

/**
 * Finds the code that was typed: a TOTP code (RFC 6238) later than the last used one, or an unused
 * recovery code.
 */
export async function findCode(
  db: Db,
  now: number,
  administrator: Pick<AdministratorsTable, 'administrator_id' | 'totp_secret' | 'totp_last_step'>,
  typed: string,
): Promise<Code | undefined> {
  const step = totpStep(administrator.totp_secret, typed, now);
  if (step !== undefined && step > administrator.totp_last_step) return { kind: 'totp', step };
  const row = await db
    .selectFrom('recovery_codes')
    .select('code_hash')
    .where('code_hash', '=', hashCode(typed))
    .where('administrator_id', '=', administrator.administrator_id)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return row && { kind: 'recovery_code', ...row };
}

/** @throws ServiceError `conflict` if the code was used in the meantime. */
export async function useCode(
  tx: Db,
  now: number,
  administratorId: string,
  code: Code,
): Promise<void> {
  const { numUpdatedRows } =
    code.kind === 'totp'
      ? await tx
          .updateTable('administrators')
          .set({ totp_last_step: code.step })
          .where('administrator_id', '=', administratorId)
          .where('totp_last_step', '<', code.step)
          .executeTakeFirstOrThrow()
      : await tx
          .updateTable('recovery_codes')
          .set({ used_at: now })
          .where('code_hash', '=', code.code_hash)
          .where('used_at', 'is', null)
          .executeTakeFirstOrThrow();
  if (numUpdatedRows !== 1n)
    throw new ServiceError('conflict', 'another request has just used the code', {
      remedy: 'Repeat the request with the next code.',
    });
}

/** Replaces all recovery codes of an administrator. Only hashes are stored. */
export async function replaceRecoveryCodes(tx: Db, administratorId: string): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newCode);
  await tx.deleteFrom('recovery_codes').where('administrator_id', '=', administratorId).execute();
  await tx
    .insertInto('recovery_codes')
    .values(
      codes.map((code) => ({
        code_hash: hashCode(code),
        administrator_id: administratorId,
        used_at: null,
      })),
    )
    .execute();
  return codes;
}
