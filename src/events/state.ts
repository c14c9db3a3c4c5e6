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
  const { kind, version, occurred_at, payload } = event as StateEvent;
  const updated_at = new Date(occurred_at).toISOString();
  if (kind === 'bot.created') {
    const { slug, name, kind: of } = payload;
    return {
      slug,
      name,
      kind: of,
      status: 'draft',
      version: 0,
      created_at: updated_at,
      updated_at,
      versions: [],
    };
  }
  if (state === undefined) return undefined;
  switch (kind) {
    case 'version.created':
      return { ...state, updated_at, version, versions: [...state.versions, payload.hash] };
    case 'bot.updated': {
      const { slug = state.slug, name = state.name } = payload;
      return { ...state, updated_at, slug, name };
    }
    case 'bot.archived':
      return { ...state, updated_at, status: 'archived' };
    case 'bot.activated':
      return { ...state, updated_at, status: 'active' };
    default:
      return state;
  }
}

/** A state as canonical JSON (RFC 8785), and the SHA-256 of that in hex. */
export function digestOf(state: BotState): { readonly text: string; readonly hash: string } {
  const text = canonicalize(state)!;
  return { text, hash: createHash('sha256').update(text).digest('hex') };
}
