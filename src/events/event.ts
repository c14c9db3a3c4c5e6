import { hash as digest } from 'node:crypto';
import type { BotEventsTable } from '../storage/tables.ts';

/** What is to be added to the log of a bot. */
export interface NewEvent {
  /** As `version.created`: words of lower-case letters and `_`, joined by dots. */
  readonly kind: string;
  /** The version of the bot of which it tells. */
  readonly version: number;
  /** Milliseconds since the Unix epoch: in a replay of old data, long before it is recorded. */
  readonly occurred_at: number;
  /** What JSON can hold, and no secret. */
  readonly payload: Readonly<Record<string, unknown>>;
  readonly run_id?: string | undefined;
  /** `event_id` of the event that led to this one. */
  readonly causation_id?: string | undefined;
}

/** An event in its place in the log of its bot; times are milliseconds since the Unix epoch. */
export interface BotEvent {
  readonly bot_id: string;
  /** From 1 for each bot, without gaps: the only order of events. */
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
  /** The hash of the event before; 64 zeros for the first. */
  readonly prev_hash: string;
  /** See `hashOf`. */
  readonly hash: string;
}

/** The last event of a log; before the first one, seq 0 and 64 zeros. */
export interface EventHead {
  readonly seq: number;
  readonly hash: string;
}

export const GENESIS: EventHead = { seq: 0, hash: '0'.repeat(64) };

/** In `bots`, of a bot that has no events yet. */
export const NO_EVENTS = { event_seq: GENESIS.seq, event_hash: GENESIS.hash } as const;

/**
 * SHA-256, in hex, of these columns in this order, one to a line, lines joined by a line feed, in
 * UTF-8: `prev_hash`, `bot_id`, `seq`, `event_id`, `version`, `run_id`, `kind`, `occurred_at`,
 * `recorded_at`, `causation_id`, `payload`. Numbers are decimal; `run_id` and `causation_id`, which
 * may be null, are JSON; `payload` is the text as it is stored. No column holds a line feed when it
 * is written, so that no other row has the same lines.
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
  const payload = parsePayload(row.payload);
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

/** A row that was tampered with may hold anything. It is to be told, and not to stop who tells it. */
function parsePayload(text: string): BotEvent['payload'] {
  try {
    const payload: unknown = JSON.parse(text);
    if (isRecord(payload)) return payload;
  } catch {
    // Told below.
  }
  return { unreadable: text };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
