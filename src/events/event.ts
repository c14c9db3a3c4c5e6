import { hash as digest } from 'node:crypto';
import { GENESIS, parseLoggedObject, type ChainFault } from '../base/hash-chain.ts';
import type { BotEventsTable } from '../storage/tables.ts';

export interface NewEvent {
  /** Lower-case words joined by dots, such as `version.created`. */
  readonly kind: string;
  readonly version: number;
  /** Milliseconds since the Unix epoch; for replayed data, the time in the data. */
  readonly occurred_at: number;
  /** A JSON object without secrets. */
  readonly payload: Readonly<Record<string, unknown>>;
  readonly run_id?: string | undefined;
  /** `event_id` of the event that led to this one. */
  readonly causation_id?: string | undefined;
}

/** An event in the log of its bot; times are milliseconds since the Unix epoch. */
export interface BotEvent {
  readonly bot_id: string;
  /** Starts at 1 for each bot, without gaps, and alone defines the order of events. */
  readonly seq: number;
  /** A UUIDv7. */
  readonly event_id: string;
  readonly version: number;
  readonly run_id: string | null;
  readonly kind: string;
  readonly occurred_at: number;
  /**
   * Never earlier than the time of the previous event, unless a clock was set back: see
   * `clock-steps.ts`.
   */
  readonly recorded_at: number;
  readonly causation_id: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Hash of the previous event; 64 zeros for the first. */
  readonly prev_hash: string;
  readonly hash: string;
}

/** Columns of `bots` for a bot that has no events yet. */
export const NO_EVENTS = { event_seq: GENESIS.seq, event_hash: GENESIS.hash } as const;

/**
 * SHA-256, in hex, of these columns in this order as UTF-8 lines joined by a line feed: `prev_hash`,
 * `bot_id`, `seq`, `event_id`, `version`, `run_id`, `kind`, `occurred_at`, `recorded_at`,
 * `causation_id`, `payload`. Numbers are decimal; `run_id` and `causation_id`, which may be null, are
 * JSON; `payload` is the stored text. Columns never contain a line feed, so two different rows never
 * have the same lines.
 */
export function hashOf(row: Omit<BotEventsTable, 'hash'>): string {
  const run_id = row.run_id === null ? 'null' : JSON.stringify(row.run_id);
  const causation_id = row.causation_id === null ? 'null' : JSON.stringify(row.causation_id);
  const content = `${row.prev_hash}\n${row.bot_id}\n${row.seq}\n${row.event_id}\n${row.version}\n${run_id}\n${row.kind}\n${row.occurred_at}\n${row.recorded_at}\n${causation_id}\n${row.payload}`;
  return digest('sha256', content);
}

export function eventOf(row: BotEventsTable): BotEvent {
  const { bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at } = row;
  const { causation_id, prev_hash, hash } = row;
  const payload = parseLoggedObject(row.payload);
  return {
    bot_id,
    seq,
    event_id,
    version,
    run_id,
    kind,
    occurred_at,
    recorded_at,
    causation_id,
    payload,
    prev_hash,
    hash,
  };
}

/** The first invalid event or snapshot of a log. */
export interface EventFault {
  readonly seq: number;
  readonly fault: ChainFault['fault'] | 'wrong_snapshot';
}
