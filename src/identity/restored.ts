import type { Db } from '../storage/tables.ts';
import { deferProofs } from './device-proof.ts';
import { lastStepAt } from './totp.ts';

/**
 * Ends login sessions, and credentials that may have been used after the backup although the restored
 * database has them as unused: codes, challenges, proofs and overrides.
 */
export async function endCredentials(tx: Db, now: number): Promise<void> {
  await tx.deleteFrom('enrolment_codes').where('used_at', 'is', null).execute();
  for (const table of ['sessions', 'step_ups', 'challenges'] as const) {
    await tx.deleteFrom(table).execute();
  }
  await tx
    .updateTable('overrides')
    .set({ expires_at: now })
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
  await tx
    .updateTable('administrators')
    .set({ totp_last_step: lastStepAt(now) })
    .where('totp_last_step', '<', lastStepAt(now))
    .execute();
  await deferProofs(tx, now);
}
