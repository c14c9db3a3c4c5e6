/** Events of turns, and the texts in them. */
import { createHash } from 'node:crypto';
import { appendEvents } from '../events/append.ts';
import type { Db } from '../storage/tables.ts';

/** Citations in an event; the turn itself has all of them. */
export const MOST_CITATIONS = 50;

/** Characters of a text in an event, which also has the hash and the length of the whole text. */
const LONGEST_TEXT = 2000;

/** Characters of the arguments of a tool call. */
const LONGEST_ARGS = 1000;

/** @returns the sequence number of the event. */
export async function recordEvent(
  tx: Db,
  { bot_id, version }: { readonly bot_id: string; readonly version: number },
  now: number,
  kind: string,
  payload: Readonly<Record<string, unknown>>,
): Promise<number> {
  const event = { kind, version, occurred_at: now, payload };
  return (await appendEvents(tx, bot_id, now, [event])).seq;
}

/** Formats a text for an event: its beginning, hash and length. */
export function excerpt(text: string) {
  const isLong = text.length > LONGEST_TEXT;
  return {
    text: isLong ? `${text.slice(0, LONGEST_TEXT)}…` : text,
    sha256: sha256(text),
    characters: text.length,
  };
}

/** Formats arguments as JSON for events, and cuts them: a model may produce any size. */
export function argsText(args: unknown): string {
  const text = typeof args === 'string' ? args : (JSON.stringify(args) ?? '');
  return text.length > LONGEST_ARGS ? `${text.slice(0, LONGEST_ARGS)}…` : text;
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
