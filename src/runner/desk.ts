import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../backoff.ts';
import type { Log } from '../log.ts';
import type { Venue, VenueOrderId, VenueReport } from '../trading/venue.ts';
import type { VenueRequest } from '../trading/venue-session.ts';

/** Asks a venue, without anybody having to wait for it. */
export interface Desk {
  /** Has these asked for, but those that are being asked for already. */
  send(requests: readonly VenueRequest[]): void;
  cancel(order: VenueOrderId): void;
  /** Since when the venue has not failed to answer, by the clock of `performance`; undefined: it has. */
  readonly heardAt: number | undefined;
  readonly isConnected: boolean;
  /** Told by whoever asks the venue himself. */
  heard(): void;
  failed(what: string, error: unknown): void;
}

export interface DeskOptions {
  readonly venue: Venue;
  /** Whether orders may be placed at this very moment. */
  readonly mayPlace: () => boolean;
  readonly onReport: (report: VenueReport) => void;
  /** Told when something that failed may be asked for again. */
  readonly onRetry: () => void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const RETRY = { shortestMs: 250, longestMs: 5000 };

export function openDesk({ venue, mayPlace, onReport, onRetry, log, signal }: DeskOptions): Desk {
  const asking = new Set<string>();
  const failures = new Map<string, number>();
  let heardAt: number | undefined;
  let isConnected = true;

  const heard = (): void => {
    heardAt = performance.now();
    isConnected = true;
  };
  const failed = (what: string, error: unknown): void => {
    if (signal.aborted) return;
    isConnected = false;
    log.warn(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  };
  const ask = async (
    { client_order_id: id }: VenueOrderId,
    what: string,
    request: () => Promise<VenueReport>,
  ): Promise<void> => {
    if (asking.has(id)) return;
    asking.add(id);
    try {
      const report = await request();
      heard();
      failures.delete(id);
      onReport(report);
    } catch (error) {
      failed(`${what} ${id}`, error);
      const count = (failures.get(id) ?? 0) + 1;
      failures.set(id, count);
      const wait = backoffMs(count, RETRY, Math.random());
      await delay(wait, undefined, { signal }).catch(() => {});
    } finally {
      asking.delete(id);
      if (!signal.aborted) onRetry();
    }
  };
  const cancel = (order: VenueOrderId): void =>
    void ask(order, 'to cancel', () => venue.cancel(order));
  return {
    send(requests) {
      for (const request of requests) {
        if ('cancel' in request) cancel(request.cancel);
        else if (mayPlace()) {
          void ask(request.place, 'to place', () => venue.place(request.place));
        }
      }
    },
    cancel,
    get heardAt() {
      return heardAt;
    },
    get isConnected() {
      return isConnected;
    },
    heard,
    failed,
  };
}
