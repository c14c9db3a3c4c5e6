/** What is to be asked of a venue before and after trading there; each is tried until it is known. */
import { setTimeout as delay } from 'node:timers/promises';
import { retry } from '../../../base/backoff.ts';
import { ServiceError } from '../../../base/errors.ts';
import { orderOfClientId, type VenueOrderId } from '../../venue.ts';
import type { VenueConnection } from './runner.ts';

const RETRY = { shortestMs: 250, longestMs: 15_000 };

/**
 * Repeats `work` while it fails with a retryable error, for any time.
 * @throws any other error, or an error once `signal` is aborted.
 */
export async function untilAnswered<T>(
  work: () => Promise<T>,
  onFailure: (error: ServiceError) => void,
  signal: AbortSignal,
): Promise<T> {
  return await retry(work, {
    ...RETRY,
    shouldRetry(error) {
      if (!(error instanceof ServiceError && error.retryable)) return false;
      onFailure(error);
      return true;
    },
    signal,
  });
}

export interface CancelOptions {
  readonly deploymentId: string;
  /** Undefined while it is not open yet. */
  readonly connection: () => VenueConnection | undefined;
  /** The orders that work as far as the session knows. */
  readonly working: () => readonly VenueOrderId[];
  /** How many orders the venue says to be open. */
  readonly onOpen: (count: number) => void;
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

/**
 * Cancels every order of the deployment, until the venue says that none is open and has told how each
 * has ended.
 * @returns false when that is not known in time.
 */
export async function cancelAll(options: CancelOptions): Promise<boolean> {
  const { deploymentId, connection, working, onOpen, withinMs, signal } = options;
  const until = performance.now() + withinMs;
  for (let wait = 50; !signal.aborted; wait = Math.min(2 * wait, 1000)) {
    const left = until - performance.now();
    if (left <= 0) return false;
    const opened = connection();
    // Before it is asked what is open, which may take long.
    if (opened !== undefined) for (const order of working()) opened.gateway.cancel(order);
    const open = opened && (await openOrders(opened, left));
    if (open !== undefined) {
      onOpen(open.length);
      if (open.length === 0 && working().length === 0) return true;
      for (const { client_order_id, symbol } of open) {
        const order = orderOfClientId(deploymentId, client_order_id);
        if (order !== undefined) opened!.gateway.cancel({ order, client_order_id, symbol });
      }
    }
    await delay(Math.min(wait, Math.max(0, until - performance.now())), undefined, { signal });
  }
  return false;
}

async function openOrders({ venue, gateway }: VenueConnection, withinMs: number) {
  const late = new AbortController();
  const asked = venue.openOrders().then(
    (open) => {
      gateway.noteAnswer();
      return open;
    },
    (error: unknown) => {
      gateway.failed('to read back open orders', error);
      return undefined;
    },
  );
  const never = delay(withinMs, undefined, { signal: late.signal }).catch(() => undefined);
  const open = await Promise.race([asked, never]);
  late.abort();
  return open;
}
