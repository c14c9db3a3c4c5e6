import { randomUUID } from 'node:crypto';
import { backoffMs } from '../../base/backoff.ts';
import { HOUR, MINUTE } from '../../base/durations.ts';
import type { Log } from '../../base/log.ts';
import type { NotificationCondition } from '../../base/notifications.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Channel, Channels } from './channels.ts';
import {
  addClaimedDelivery,
  addDeliveries,
  claimDeliveries,
  DELIVERY_WRITE,
  getDelivery,
  listDueChannels,
  recordAttempt,
  type AttemptOutcome,
  type ClaimedDelivery,
  type Delivery,
} from './deliveries.ts';
import { findNotices } from './find-notices.ts';
import { formatNotice, type Notice } from './notices.ts';
import { EVENT_FINDERS, type OwnLease } from './occurrences.ts';
import { listRules, requireChannel } from './rules.ts';
import { describeFailure, SendFailure } from './send-failure.ts';

export interface NotifierService extends StorageService {
  readonly channels: Channels;
  /** Time limit of an attempt, ms. */
  readonly timeoutMs: number;
  /** The lease of this server; null if it has none. */
  readonly ownLease: () => OwnLease | null;
  /** Origin of the console. */
  readonly origin: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const POLL_EVERY_MS = 1000;
/** Attempts of a delivery, within about three hours unless the receiver asks for longer waits. */
const MOST_ATTEMPTS = 12;
const WAITS = { shortestMs: 5000, longestMs: HOUR };
/** Attempts at the same time, by channel, so that a receiver that hangs delays no other channel. */
const MOST_PER_CHANNEL = 4;
/** An unchanged scan is recorded only this often. */
const SCAN_RECORDED_EVERY_MS = 5 * MINUTE;

/** How often the rules of a condition are evaluated, ms. */
const EVALUATED_EVERY_MS: Readonly<Record<NotificationCondition, number>> = {
  halted: POLL_EVERY_MS,
  error: POLL_EVERY_MS,
  drawdown: 10_000,
  no_bars: 10_000,
  lease: MINUTE,
};

/**
 * Finds occurrences that match the rules, and sends notifications of them. Reads what trading has
 * recorded, so that trading never waits. Several servers on one database share the work: each delivery
 * has one sender at a time. A server that dies during an attempt may have sent the delivery; another
 * one then sends it again, with the same id.
 */
export class Notifier {
  readonly #service: NotifierService;
  readonly #stopping = new AbortController();
  /** Attempts in progress, by channel. */
  readonly #attempts = new Map<string, Set<Promise<unknown>>>();
  /** Time of the last evaluation of the rules of a condition, by the clock of the service. */
  readonly #evaluatedAt = new Map<NotificationCondition, number>();
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;

  constructor(service: NotifierService) {
    this.#service = service;
    for (const { name, fault } of service.channels.values()) {
      if (fault !== null) service.log.warn(`notifications_file: channel ${name}: ${fault}`);
    }
  }

  get channels(): Channels {
    return this.#service.channels;
  }

  start(): void {
    this.#timer = setInterval(() => void this.poll(), POLL_EVERY_MS).unref();
    void this.poll();
  }

  /** Evaluates the rules and begins attempts that are due. Never rejects. */
  poll(): Promise<void> {
    return (this.#polling ??= this.#poll()
      .catch((error: unknown) =>
        this.#service.log.warn({ err: error, msg: 'notifications could not be processed' }),
      )
      .finally(() => {
        this.#polling = undefined;
      }));
  }

  /** Resolves when no attempt is in progress. */
  async settle(): Promise<void> {
    await Promise.all([...this.#attempts.values()].flatMap((all) => [...all]));
  }

  /** Aborts attempts in progress; another server, or this one later, repeats them. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#polling;
    await this.settle();
  }

  /**
   * Sends a test to a channel, once.
   * @returns the delivery, and `refusedStatus` as in `SendFailure`.
   * @throws ServiceError `conflict`, reason `unknown_channel`
   */
  async test(
    by: Actor,
    name: string,
  ): Promise<{ readonly delivery: Delivery; readonly refusedStatus: number | null }> {
    const { storage, clock, channels, origin } = this.#service;
    requireChannel(channels, name);
    const claimed = await storage.write(async (tx) => {
      const now = clock();
      await appendAudit(tx, now, {
        actor: by,
        action: 'notifications.channels.test',
        target: `notification_channel:${name}`,
      });
      const summary = `This is a test of the channel ${name}.`;
      const notice: Notice = {
        type: 'test',
        timestamp: new Date(now).toISOString(),
        data: { rule: null, summary, bot: null, url: `${origin}/console`, details: {} },
      };
      const occurrence = `test:${randomUUID()}`;
      return addClaimedDelivery(tx, now, { rule: null, occurrence, channel: name, notice });
    });
    const outcome = await this.#attempt(channels.get(name)!, claimed);
    return {
      delivery: await getDelivery(storage.read, claimed.delivery_id),
      refusedStatus: outcome?.status === 'failed' ? outcome.refusedStatus : null,
    };
  }

  async #poll(): Promise<void> {
    await this.#evaluate();
    await this.#beginAttempts();
  }

  async #evaluate(): Promise<void> {
    const { storage, clock, ownLease, origin } = this.#service;
    const now = clock();
    const rules = (await listRules(storage.read)).filter(({ condition }) =>
      this.#isDue(condition, now),
    );
    if (rules.length === 0) return;
    const scannedUntil = await this.#readScan();
    const context = { read: storage.read, now, scannedUntil, ownLease, origin };
    const added = await findNotices(context, rules);
    for (const { condition } of rules) this.#evaluatedAt.set(condition, now);
    const isScanned = rules.some(({ condition }) => condition in EVENT_FINDERS);
    const isScanOld = isScanned && now - scannedUntil >= SCAN_RECORDED_EVERY_MS;
    if (added.length === 0 && !isScanOld) return;
    await storage.write(async (tx) => {
      await addDeliveries(tx, clock(), added);
      if (!isScanOld) return;
      await tx
        .insertInto('notification_scan')
        .values({ id: 1, scanned_until: now })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ scanned_until: now }))
        .execute();
    }, DELIVERY_WRITE);
  }

  #isDue(condition: NotificationCondition, now: number): boolean {
    const before = this.#evaluatedAt.get(condition);
    if (before === undefined || now < before) return true;
    // Timers fire a few milliseconds early or late.
    return now - before >= EVALUATED_EVERY_MS[condition] - POLL_EVERY_MS / 2;
  }

  async #readScan(): Promise<number> {
    const row = await this.#service.storage.read
      .selectFrom('notification_scan')
      .select('scanned_until')
      .executeTakeFirst();
    return row?.scanned_until ?? 0;
  }

  async #beginAttempts(): Promise<void> {
    const { storage, clock, channels } = this.#service;
    for (const name of await listDueChannels(storage.read, clock())) {
      const channel = channels.get(name);
      const free = MOST_PER_CHANNEL - (this.#attempts.get(name)?.size ?? 0);
      if (channel === undefined || free <= 0 || this.#stopping.signal.aborted) continue;
      const claimed = await storage.write(
        (tx) => claimDeliveries(tx, clock(), name, free),
        DELIVERY_WRITE,
      );
      for (const delivery of claimed) void this.#attempt(channel, delivery);
    }
  }

  /** Never rejects; resolves to undefined if the outcome could not be recorded. */
  #attempt(channel: Channel, delivery: ClaimedDelivery): Promise<AttemptOutcome | undefined> {
    const open = this.#attempts.get(channel.name) ?? new Set();
    this.#attempts.set(channel.name, open);
    const attempt = this.#sendAndRecord(channel, delivery).finally(() => open.delete(attempt));
    open.add(attempt);
    return attempt;
  }

  async #sendAndRecord(
    channel: Channel,
    delivery: ClaimedDelivery,
  ): Promise<AttemptOutcome | undefined> {
    const { storage, clock, log } = this.#service;
    try {
      const outcome = await this.#send(channel, delivery);
      await storage.write((tx) => recordAttempt(tx, clock(), delivery, outcome), DELIVERY_WRITE);
      return outcome;
    } catch (error) {
      log.warn({
        err: error,
        msg: `the outcome of notification ${delivery.delivery_id} could not be recorded`,
      });
      return undefined;
    }
  }

  async #send(channel: Channel, delivery: ClaimedDelivery): Promise<AttemptOutcome> {
    const { timeoutMs, clock, log } = this.#service;
    const { delivery_id, notice: body, rule_id, attempts } = delivery;
    const text = formatNotice(JSON.parse(body) as Notice);
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([timeout, this.#stopping.signal]);
    try {
      await beforeAbort(signal, channel.send({ delivery_id, body, text, timeoutMs, signal }));
      return { status: 'sent' };
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        const next_attempt_at = clock();
        const message = 'the server stopped';
        return { status: 'pending', error: message, next_attempt_at, isInterrupted: true };
      }
      const reason = timeout.aborted ? 'no answer in time' : describeFailure(error);
      const isLast = rule_id === null || attempts >= MOST_ATTEMPTS;
      const what = `notification ${delivery_id} to channel ${channel.name}`;
      log.warn(`${what} failed${isLast ? ' for good' : ''}: ${reason}`);
      const { retryAfterMs = 0, refusedStatus = null } = error instanceof SendFailure ? error : {};
      if (isLast) return { status: 'failed', error: reason, refusedStatus };
      const waitMs = Math.max(retryAfterMs, backoffMs(attempts, WAITS, Math.random()));
      return { status: 'pending', error: reason, next_attempt_at: clock() + Math.round(waitMs) };
    }
  }
}

/** Rejects when the signal is aborted, also while the work cannot be aborted itself. */
async function beforeAbort(signal: AbortSignal, work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
