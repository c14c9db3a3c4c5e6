/**
 * The packed form of two events that a trading session records with each bar: `data.bars`, and the
 * `session.state` after it. A row refers to an earlier `session.state` of the run, the base, and to a
 * stored copy of the bars, and holds only what differs from them. Unpacked events equal the original
 * ones in every column, so their hashes cover the same content.
 */
import { hash as digest } from 'node:crypto';
import { parseLoggedObject } from '../base/hash-chain.ts';
import type { BotEventsTable } from '../storage/tables.ts';
import { hashOf } from './event.ts';

export const BARS = 'data.bars';
export const STATE = 'session.state';

export function isPackable({ kind }: Pick<BotEventsTable, 'kind'>): boolean {
  return kind === BARS || kind === STATE;
}

/** The last columns of a packed row; the others are its place in the log. */
export interface PackedBar {
  /** Sequence number of the last event in the row. */
  readonly seq: number;
  readonly recorded_at: number;
  /** Difference between the payloads of the base and of `session.state`; null without that event. */
  readonly state: string | null;
  /** Hash of the last event in the row. */
  readonly hash: string;
}

/** Data that a packed row refers to. */
export interface PackedContext {
  readonly bot_id: string;
  readonly base: Pick<BotEventsTable, 'version' | 'run_id' | 'payload'>;
  /** Payload of `data.bars`. */
  readonly bars: string;
  /** Hash of the event before the row. */
  readonly prev_hash: string;
}

/** Longer differences save too little: the event becomes the next base. */
const MAX_DIFFERENCE = 300;

/** Packs a `data.bars` event and the state after it, if any; undefined if that would lose anything. */
export function pack(
  bars: BotEventsTable,
  state: BotEventsTable | undefined,
  base: PackedContext['base'],
): PackedBar | undefined {
  const difference = state && differenceOf(base.payload, bars.payload, state.payload);
  if (state !== undefined && difference === undefined) return undefined;
  const { seq, recorded_at, hash } = state ?? bars;
  const packed = { seq, recorded_at, state: difference ?? null, hash };
  const { bot_id, prev_hash } = bars;
  const events = state === undefined ? [bars] : [bars, state];
  const unpacked = unpack(packed, { bot_id, base, bars: bars.payload, prev_hash });
  return unpacked.every((row, i) => isSame(row, events[i]!)) ? packed : undefined;
}

/** The events of a packed row. Hashes of altered rows do not match. */
export function unpack(
  { seq: last, recorded_at, state, hash }: PackedBar,
  { bot_id, base, bars, prev_hash }: PackedContext,
): BotEventsTable[] {
  const { version, run_id } = base;
  const occurred_at = timeOf(bars);
  const rowOf = (seq: number, kind: string, payload: string, prev: string): BotEventsTable => ({
    bot_id,
    seq,
    event_id: packedEventId(bot_id, seq, recorded_at),
    version,
    run_id,
    kind,
    occurred_at,
    recorded_at,
    causation_id: null,
    payload,
    prev_hash: prev,
    hash,
  });
  if (state === null) return [rowOf(last, BARS, bars, prev_hash)];
  const first = rowOf(last - 1, BARS, bars, prev_hash);
  first.hash = hashOf(first);
  return [first, rowOf(last, STATE, applyDifference(base.payload, bars, state), first.hash)];
}

function timeOf(bars: string): number {
  const { time } = parseLoggedObject(bars);
  return Date.parse(String(time)) || 0;
}

function isSame(a: BotEventsTable, b: BotEventsTable): boolean {
  return (Object.keys(b) as (keyof BotEventsTable)[]).every((name) => a[name] === b[name]);
}

/**
 * UUID of version 7 (RFC 9562) of an event that may be packed. Its last 74 bits are not random but
 * derived from the place of the event, so that they need not be stored.
 */
export function packedEventId(bot_id: string, seq: number, recorded_at: number): string {
  const time = recorded_at.toString(16).padStart(12, '0');
  const bits = digest('sha256', `${bot_id}\n${seq}`);
  const variant = '89ab'[Number.parseInt(bits[3]!, 16) % 4]!;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${bits.slice(0, 3)}-${variant}${bits.slice(4, 7)}-${bits.slice(7, 19)}`;
}

/** Strings, numbers and literals of a JSON text. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+/g;

function tokensOf(text: string): string[] {
  return [...(text.match(TOKEN) ?? [])];
}

/** The tokens of bars, and their date. */
function knownTokens(bars: string): string[] {
  return [...tokensOf(bars), `"${new Date(timeOf(bars)).toISOString().slice(0, 10)}"`];
}

/**
 * Describes how a JSON text differs from `base`, which must have the same structure: the position of
 * each different token, followed by `@` and the position of the same token in `knownTokens`, by `^` and the
 * position of the same token earlier in the text, or by `=` and the token itself.
 *
 * @returns undefined if the structure differs or the difference is long.
 */
function differenceOf(base: string, bars: string, text: string): string | undefined {
  const before = tokensOf(base);
  const after = tokensOf(text);
  if (before.length !== after.length) return undefined;
  const known = knownTokens(bars);
  let difference = '';
  for (const [place, token] of after.entries()) {
    if (token === before[place]) continue;
    const inBars = known.indexOf(token);
    const earlier = after.indexOf(token);
    if (difference !== '') difference += ',';
    if (inBars >= 0) difference += `${place}@${inBars}`;
    else if (earlier < place) difference += `${place}^${earlier}`;
    else if (token.includes(',')) return undefined;
    else difference += `${place}=${token}`;
    if (difference.length > MAX_DIFFERENCE) return undefined;
  }
  return difference;
}

function applyDifference(base: string, bars: string, difference: string): string {
  const known = knownTokens(bars);
  const tokens = tokensOf(base);
  for (const change of difference === '' ? [] : difference.split(',')) {
    const [, place, how, value] = /^(\d+)([@^=])(.*)$/.exec(change) ?? [];
    const token = how === '@' ? known[Number(value)] : how === '^' ? tokens[Number(value)] : value;
    tokens[Number(place)] = token ?? '';
  }
  let next = 0;
  return base.replace(TOKEN, () => tokens[next++] ?? '');
}
