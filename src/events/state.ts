import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { BotEvent } from './event.ts';

/**
 * What the events of a bot come to. Times are RFC 3339 in UTC, so that whoever gets the state as JSON
 * can check its hash.
 */
export interface BotState {
  readonly slug: string;
  readonly name: string;
  readonly kind: 'trading' | 'research';
  readonly status: 'draft' | 'active' | 'archived';
  /** The current one; 0 before there is any. */
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  /** The hash of each version, from version 1. */
  readonly versions: readonly string[];
}

/**
 * The kinds of events that change the state. Whatever changes what they do to it belongs with a
 * migration that empties `bot_snapshots`.
 */
export const STATE_KINDS = [
  'bot.created',
  'version.created',
  'bot.updated',
  'bot.archived',
  'bot.activated',
] as const;

const stateKinds: ReadonlySet<string> = new Set(STATE_KINDS);

export function changesState(kind: string): boolean {
  return stateKinds.has(kind);
}

/** What their payloads hold at least. */
interface Payloads {
  readonly 'bot.created': Pick<BotState, 'slug' | 'name' | 'kind'>;
  readonly 'version.created': { readonly hash: string };
  /** What has changed. */
  readonly 'bot.updated': Partial<Pick<BotState, 'slug' | 'name'>>;
  readonly 'bot.archived': object;
  readonly 'bot.activated': object;
}

/** An event that changes the state, as it is appended. */
export type StateEvent = {
  [Kind in keyof Payloads]: Pick<BotEvent, 'version' | 'occurred_at'> & {
    readonly kind: Kind;
    readonly payload: Payloads[Kind];
  };
}[keyof Payloads];

/**
 * The state after an event, from that before it; undefined while there is no bot. What it does not
 * know changes nothing.
 */
export function foldState(
  state: BotState | undefined,
  event: Pick<BotEvent, 'kind' | 'version' | 'occurred_at' | 'payload'>,
): BotState | undefined {
  if (!changesState(event.kind)) return state;
  const known = event as StateEvent;
  const updated_at = new Date(known.occurred_at).toISOString();
  if (known.kind === 'bot.created') {
    const { slug, name, kind } = known.payload;
    const created_at = updated_at;
    return { slug, name, kind, status: 'draft', version: 0, created_at, updated_at, versions: [] };
  }
  return state && { ...state, ...changeOf(state, known), updated_at };
}

function changeOf(
  state: BotState,
  { kind, version, payload }: Exclude<StateEvent, { readonly kind: 'bot.created' }>,
): Partial<BotState> {
  if (kind === 'version.created') {
    return { version, versions: [...state.versions, payload.hash] };
  }
  if (kind === 'bot.updated') {
    const { slug = state.slug, name = state.name } = payload;
    return { slug, name };
  }
  return { status: kind === 'bot.archived' ? 'archived' : 'active' };
}

/** A state as canonical JSON (RFC 8785), and the SHA-256 of that in hex. */
export function digestOf(state: BotState): { readonly text: string; readonly hash: string } {
  const text = canonicalize(state)!;
  return { text, hash: createHash('sha256').update(text).digest('hex') };
}
