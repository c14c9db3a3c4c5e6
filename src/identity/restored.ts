import type { Db } from '../storage/tables.ts';
import { deferProofs } from './device-proof.ts';
import { lastStepAt } from './totp.ts';

/**
 * Ends credentials that a restored database may take for unused although they were used after the
 * backup: codes, challenges, proofs, overrides; and login sessions.
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
