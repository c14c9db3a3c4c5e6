import { ServiceError } from '../base/errors.ts';
import type { KeysetClaims } from '../lease/root.ts';
import { verifyTrust } from '../lease/trust.ts';
import type { Db, SigningKeysTable } from '../storage/tables.ts';
import type { TrustDocument } from './root-documents.ts';
import { verifyStoredTrust, replaceTrust, selectTrust } from './published-trust.ts';

const UPLOAD_COMMAND = 'service-local identity root sign-keyset --chain license-root.json --upload';

/**
 * Stores a keyset that this service published after the backup from which its database was restored.
 * @param text the published document, as machines keep it.
 * @throws ServiceError `conflict` without a stored root; `invalid_data` for a document that does not
 *   succeed the stored one.
 */
export async function restoreKeyset(tx: Db, now: number, text: string): Promise<void> {
  const row = await selectTrust(tx);
  if (row === undefined) {
    throw new ServiceError('conflict', 'the backup has no trust root that a keyset could follow', {
      reason: 'no_root',
      remedy: `Restore without --keyset, and then run \`${UPLOAD_COMMAND}\`.`,
    });
  }
  // Expiry does not matter: machines have accepted the document already.
  const trust = verifyTrust(text, { held: verifyStoredTrust(row), now: 0 });
  if (!trust.ok) {
    throw new ServiceError(
      'invalid_data',
      `the keyset does not follow the stored one: ${trust.detail}`,
      {
        reason: trust.reason,
        remedy: 'Use the newest license_public_key.json of a machine.',
      },
    );
  }
  if (trust.keyset!.version === row.keyset_version) return;
  await replaceTrust(tx, now, 'operator', JSON.parse(text) as TrustDocument, trust);
  await withdrawKeys(tx, now, trust.keyset!);
}

/**
 * Retires the keys that a keyset names as retired. A key that it lacks becomes a retiring one, which
 * signs nothing until a keyset holds it: machines would reject what it signs.
 */
async function withdrawKeys(tx: Db, now: number, { keys, retired }: KeysetClaims): Promise<void> {
  const rows = await tx
    .selectFrom('signing_keys')
    .select(['public_key_id', 'status'])
    .where('status', '!=', 'retired')
    .execute();
  const withdraw = (id: string, change: Partial<SigningKeysTable>): Promise<unknown> =>
    tx.updateTable('signing_keys').set(change).where('public_key_id', '=', id).execute();
  for (const { public_key_id: id, status } of rows) {
    const isHeld = keys.some(({ kid }) => kid === id);
    if (retired.includes(id)) await withdraw(id, { status: 'retired', retired_at: now });
    else if (status === 'active' && !isHeld) {
      await withdraw(id, { status: 'retiring', retiring_at: now });
    }
  }
}
