/** Notifications to send: pending → sent or failed. */
import { v7 as uuidv7 } from 'uuid';
import { DAY } from '../../base/durations.ts';
import { readRowsPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { Db, NotificationDeliveriesTable } from '../../storage/tables.ts';
import type { WriteOptions } from '../../storage/write-queue.ts';
import type { Notice } from './notices.ts';

/** Writes of deliveries wait for no trading, and trading does not wait for them. */
export const DELIVERY_WRITE: WriteOptions = { scope: 'notifications' };

/** Time after which another server repeats an attempt; must be longer than the longest attempt. */
const CLAIM_MS = 60_000;
/** Longer than all attempts together. */
const UNSENT_AFTER_MS = DAY;
const KEPT_MS = 30 * DAY;

export type Delivery = Readonly<Omit<NotificationDeliveriesTable, 'notice'>> & {
  readonly notice: Notice;
};

export interface NewDelivery {
  /** Null for a test of a channel. */
  readonly rule: { readonly rule_id: string; readonly name: string } | null;
  readonly occurrence: string;
  readonly channel: string;
  readonly notice: Notice;
}

/** A delivery whose next attempt this server makes. */
export type ClaimedDelivery = Readonly<
  Pick<NotificationDeliveriesTable, 'delivery_id' | 'rule_id' | 'channel' | 'notice' | 'attempts'>
>;

/** Occurrences of a rule that are reported one by one; others of the same time are grouped. */
const MOST_SINGLE = 10;
/** Rows of one statement. */
const AT_ONCE = 500;

/**
 * Records deliveries, at most one for each rule and occurrence. If a rule has more than `MOST_SINGLE`,
 * the others are grouped in one delivery.
 */
export async function addDeliveries(
  tx: Db,
  now: number,
  added: readonly NewDelivery[],
): Promise<void> {
  const ready = { attempts: 0, next_attempt_at: now };
  for (const ofRule of Map.groupBy(added, ({ rule }) => rule?.rule_id).values()) {
    const single = ofRule.slice(0, MOST_SINGLE);
    await insertNew(
      tx,
      single.map((one) => ({ ...rowOf(one, now), ...ready })),
    );
    const rest = ofRule.slice(MOST_SINGLE);
    const ended = { attempts: 0, next_attempt_at: null, status: 'grouped', ended_at: now } as const;
    let count = 0;
    for (let begin = 0; begin < rest.length; begin += AT_ONCE) {
      const some = rest.slice(begin, begin + AT_ONCE);
      count += await insertNew(
        tx,
        some.map((one) => ({ ...rowOf(one, now), ...ended })),
      );
    }
    if (count > 0)
      await insertNew(tx, [{ ...rowOf(groupOf(rest[0]!, count, now), now), ...ready }]);
  }
}

/** @returns the number of rows that did not exist yet. */
async function insertNew(tx: Db, rows: readonly NotificationDeliveriesTable[]): Promise<number> {
  if (rows.length === 0) return 0;
  const inserted = await tx
    .insertInto('notification_deliveries')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['rule_id', 'occurrence']).doNothing())
    .returning('delivery_id')
    .execute();
  return inserted.length;
}

function groupOf(first: NewDelivery, count: number, now: number): NewDelivery {
  const { data, timestamp } = first.notice;
  const url = `${new URL(data.url).origin}/console`;
  const summary = `${count} more for the rule ${data.rule ?? ''}, such as: ${data.summary}`;
  return {
    ...first,
    occurrence: `many:${now}:${first.occurrence}`,
    notice: {
      type: 'many',
      timestamp,
      data: { ...data, summary, bot: null, url, details: { count } },
    },
  };
}

/** Records a delivery that the caller sends at once. */
export async function addClaimedDelivery(
  tx: Db,
  now: number,
  added: NewDelivery,
): Promise<ClaimedDelivery> {
  const row = { ...rowOf(added, now), attempts: 1, next_attempt_at: now + CLAIM_MS };
  await tx.insertInto('notification_deliveries').values(row).execute();
  return row;
}

function rowOf({ rule, occurrence, channel, notice }: NewDelivery, now: number) {
  return {
    delivery_id: uuidv7({ msecs: now }),
    rule_id: rule?.rule_id ?? null,
    rule_name: rule?.name ?? 'test',
    occurrence,
    channel,
    notice: JSON.stringify(notice),
    status: 'pending' as const,
    error: null,
    created_at: now,
    ended_at: null,
  };
}

/** Returns the occurrences that already have a delivery, as `RULE_ID OCCURRENCE`. */
export async function findDelivered(
  db: Db,
  rule_ids: readonly string[],
  occurrences: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let begin = 0; begin < occurrences.length; begin += AT_ONCE) {
    const rows = await db
      .selectFrom('notification_deliveries')
      .select(['rule_id', 'occurrence'])
      .where('rule_id', 'in', rule_ids)
      .where('occurrence', 'in', occurrences.slice(begin, begin + AT_ONCE))
      .execute();
    for (const { rule_id, occurrence } of rows) found.add(`${rule_id} ${occurrence}`);
  }
  return found;
}

/** Names of the channels with deliveries that are due. */
export async function listDueChannels(db: Db, now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('notification_deliveries')
    .select('channel')
    .distinct()
    .where('next_attempt_at', '<=', now)
    .execute();
  return rows.map(({ channel }) => channel);
}

/** Claims deliveries of a channel that are due, oldest first. */
export async function claimDeliveries(
  tx: Db,
  now: number,
  channel: string,
  most: number,
): Promise<ClaimedDelivery[]> {
  const due = await tx
    .selectFrom('notification_deliveries')
    .select(['delivery_id', 'rule_id', 'channel', 'notice', 'attempts'])
    .where('channel', '=', channel)
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .orderBy('delivery_id')
    .limit(most)
    .execute();
  const claimed = due.map((row) => ({ ...row, attempts: row.attempts + 1 }));
  for (const { delivery_id, attempts } of claimed) {
    await tx
      .updateTable('notification_deliveries')
      .set({ attempts, next_attempt_at: now + CLAIM_MS })
      .where('delivery_id', '=', delivery_id)
      .execute();
  }
  return claimed;
}

export type AttemptOutcome =
  | { readonly status: 'sent' }
  | {
      readonly status: 'failed';
      readonly error: string;
      /** `refusedStatus` of the `SendFailure` of the last attempt; not stored. */
      readonly refusedStatus: number | null;
    }
  | {
      readonly status: 'pending';
      readonly error: string;
      readonly next_attempt_at: number;
      /** Whether the attempt does not count, because the server stopped. */
      readonly isInterrupted?: boolean;
    };

/** Records the outcome of an attempt, unless another server has claimed the delivery since. */
export async function recordAttempt(
  tx: Db,
  now: number,
  { delivery_id, attempts }: ClaimedDelivery,
  outcome: AttemptOutcome,
): Promise<void> {
  const change =
    outcome.status === 'pending'
      ? {
          error: outcome.error,
          next_attempt_at: outcome.next_attempt_at,
          ...(outcome.isInterrupted && { attempts: attempts - 1 }),
        }
      : {
          status: outcome.status,
          error: outcome.status === 'failed' ? outcome.error : null,
          next_attempt_at: null,
          ended_at: now,
        };
  await tx
    .updateTable('notification_deliveries')
    .set(change)
    .where('delivery_id', '=', delivery_id)
    .where('status', '=', 'pending')
    .where('attempts', '=', attempts)
    .execute();
}

/** Lists deliveries, newest first. */
export async function listDeliveries(
  db: Db,
  { status }: { readonly status?: Delivery['status'] | undefined },
  request: PageRequest,
): Promise<Page<Delivery>> {
  let query = db.selectFrom('notification_deliveries').selectAll();
  if (status !== undefined) query = query.where('status', '=', status);
  const list = ['notification_deliveries', status] as const;
  const page = await readRowsPage(list, request, query, 'delivery_id', 'desc');
  return { ...page, items: page.items.map(parseDelivery) };
}

export async function getDelivery(db: Db, delivery_id: string): Promise<Delivery> {
  const row = await db
    .selectFrom('notification_deliveries')
    .selectAll()
    .where('delivery_id', '=', delivery_id)
    .executeTakeFirstOrThrow();
  return parseDelivery(row);
}

function parseDelivery({ notice, ...row }: NotificationDeliveriesTable): Delivery {
  return { ...row, notice: JSON.parse(notice) as Notice };
}

export interface DeliveryCounts {
  readonly pending: number;
  /** Number of deliveries that failed within a day, without tests of channels. */
  readonly failed: number;
}

/** @param now milliseconds since the Unix epoch. */
export async function countDeliveries(db: Db, now: number): Promise<DeliveryCounts> {
  return db
    .selectNoFrom((of) => [
      // One subquery for each count, because each uses an index of its own.
      of
        .selectFrom('notification_deliveries')
        .select(of.fn.countAll<number>().as('count'))
        .where('next_attempt_at', 'is not', null)
        .$asScalar()
        .$notNull()
        .as('pending'),
      of
        .selectFrom('notification_deliveries')
        .select(of.fn.countAll<number>().as('count'))
        .where('status', '=', 'failed')
        .where('ended_at', '>', now - DAY)
        .where('rule_id', 'is not', null)
        .$asScalar()
        .$notNull()
        .as('failed'),
    ])
    .executeTakeFirstOrThrow();
}

/** Fails deliveries that no server could send within a day, and deletes those that ended long ago. */
export async function purgeDeliveries(tx: Db, now: number): Promise<void> {
  await tx
    .updateTable('notification_deliveries')
    .set({
      status: 'failed',
      error: 'no server has the channel, or none was running',
      next_attempt_at: null,
      ended_at: now,
    })
    .where('status', '=', 'pending')
    .where('created_at', '<=', now - UNSENT_AFTER_MS)
    .execute();
  await tx
    .deleteFrom('notification_deliveries')
    .where('ended_at', '<=', now - KEPT_MS)
    .execute();
}
