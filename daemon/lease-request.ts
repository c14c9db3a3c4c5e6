import { v7 as uuidv7 } from 'uuid';
import type { Client } from '../src/client/client.ts';
import { fetchLease, type FetchedLease } from '../src/client/lease-server.ts';
import { ServiceError } from '../src/base/errors.ts';
import type { HeldLease } from '../src/gate/license.ts';
import type { PendingRenewal } from './daemon-state.ts';

/**
 * Requests a lease with an id that is stored before the request is sent. If the server does not accept
 * the id or the presented lease, requests once more without it.
 *
 * @param store writes the pending renewal to disk.
 */
export async function requestLease(
  server: Client,
  before: PendingRenewal | null,
  held: HeldLease | undefined,
  store: (pending: PendingRenewal) => Promise<void>,
  mayRepeat = true,
): Promise<{ readonly answer: FetchedLease; readonly pending: PendingRenewal }> {
  const lease_id = held?.claims.lease_id ?? null;
  const pending = before?.lease_id === lease_id ? before : { renewal_id: uuidv7(), lease_id };
  if (pending !== before) await store(pending);
  const { renewal_id, without_lease } = pending;
  const lease = held && !without_lease ? (JSON.parse(held.text) as Envelope) : undefined;
  try {
    const answer = await fetchLease(server, { renewal_id, ...(lease && { lease }) });
    return { answer, pending };
  } catch (error) {
    const other = mayRepeat ? otherRequest(error, pending, lease !== undefined) : undefined;
    if (other === undefined) throw error;
    await store(other);
    return requestLease(server, other, held, store, false);
  }
}

type Envelope = NonNullable<Parameters<typeof fetchLease>[1]['lease']>;

/** Returns the request to send after a refused one; undefined if none can help. */
function otherRequest(
  error: unknown,
  pending: PendingRenewal,
  isPresented: boolean,
): PendingRenewal | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  const { code, reason = '' } = error;
  const renewal_id = uuidv7();
  if (code === 'idempotency_mismatch') return { ...pending, renewal_id };
  const isOthers =
    (code === 'not_allowed' && ['other_device', 'other_deployment'].includes(reason)) ||
    (code === 'invalid_request' && reason === 'unknown_lease');
  if (!isOthers || !isPresented) return undefined;
  return { renewal_id, lease_id: pending.lease_id, without_lease: true };
}
