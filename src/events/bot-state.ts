import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { SessionState } from './session-state.ts';
import type { BotEvent } from './event.ts';

/**
 * State of a bot, computed from its events. Times are RFC 3339 in UTC, so that a client can verify
 * the hash of the state from its JSON.
 */
export interface BotState {
  readonly slug: string;
  readonly name: string;
  readonly kind: 'trading' | 'research';
  readonly status: 'draft' | 'active' | 'archived';
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  /** Hash of each version, from version 1. */
  readonly versions: readonly string[];
  /** Last recorded state of each paper or production session that has not ended, by `task_id`. */
  readonly sessions: Readonly<Record<string, RunningSession>>;
  /** The halt of this bot in force; halts of all bots are not recorded in its log. */
  readonly halted: BotHalt | null;
}

export interface RunningSession extends SessionState {
  readonly deployment_id: string;
  readonly version: number;
}

export interface BotHalt {
  readonly halt_id: string;
  readonly by: string;
  readonly reason: string;
  readonly at: string;
}

/**
 * Kinds of events that change the state. A change of how they change it needs a migration that
 * empties `bot_snapshots`.
 */
export const STATE_KINDS = [
  'bot.created',
  'version.created',
  'bot.updated',
  'bot.archived',
  'bot.activated',
  'session.state',
  'run.ended',
  'control.halted',
  'control.resumed',
] as const;

const stateKinds: ReadonlySet<string> = new Set(STATE_KINDS);

export function changesState(kind: string): boolean {
  return stateKinds.has(kind);
}

/** Fields that payloads have at least. */
interface Payloads {
  readonly 'bot.created': Pick<BotState, 'slug' | 'name' | 'kind'>;
  readonly 'version.created': { readonly hash: string };
  /** Only the changed fields. */
  readonly 'bot.updated': Partial<Pick<BotState, 'slug' | 'name'>>;
  readonly 'bot.archived': object;
  readonly 'bot.activated': object;
  readonly 'session.state': SessionState & Pick<RunningSession, 'deployment_id'>;
  readonly 'run.ended': object;
  readonly 'control.halted': Omit<BotHalt, 'at'> & { readonly scope: 'bot' | 'all' };
  readonly 'control.resumed': { readonly scope: 'bot' | 'all' };
}

/** A new event that changes the state. */
export type StateEvent = {
  [Kind in keyof Payloads]: Pick<BotEvent, 'version' | 'occurred_at'> &
    RunOf & {
      readonly kind: Kind;
      readonly payload: Payloads[Kind];
    };
}[keyof Payloads];

/** The state after an event; undefined before `bot.created`. Unknown kinds change nothing. */
export function foldState(
  state: BotState | undefined,
  event: Pick<BotEvent, 'kind' | 'version' | 'occurred_at' | 'payload'> & RunOf,
): BotState | undefined {
  if (!changesState(event.kind)) return state;
  const known = event as StateEvent;
  const updated_at = new Date(known.occurred_at).toISOString();
  if (known.kind === 'bot.created') {
    const { slug, name, kind } = known.payload;
    const created_at = updated_at;
    const bot = { slug, name, kind, status: 'draft', version: 0, created_at, updated_at } as const;
    return { ...bot, versions: [], sessions: {}, halted: null };
  }
  if (state === undefined) return undefined;
  const run = runChangeOf(state, known);
  return run ?? { ...state, ...changeOf(state, known as RegistryEvent), updated_at };
}

interface RunOf {
  readonly run_id?: string | null | undefined;
}

type RunEvent = Extract<
  StateEvent,
  { readonly kind: 'session.state' | 'run.ended' | `control.${string}` }
>;
type RegistryEvent = Exclude<StateEvent, RunEvent | { readonly kind: 'bot.created' }>;

/** The state after an event of a session or halt; undefined for other events. */
function runChangeOf(state: BotState, event: StateEvent): BotState | undefined {
  const { kind, version, payload } = event;
  const run_id = event.run_id ?? '';
  if (kind === 'session.state') {
    return { ...state, sessions: { ...state.sessions, [run_id]: { ...payload, version } } };
  }
  if (kind === 'run.ended') {
    if (!Object.hasOwn(state.sessions, run_id)) return state;
    const { [run_id]: _ended, ...sessions } = state.sessions;
    return { ...state, sessions };
  }
  if (kind === 'control.halted') {
    if (payload.scope !== 'bot') return state;
    const { halt_id, by, reason } = payload;
    const at = new Date(event.occurred_at).toISOString();
    return { ...state, halted: { halt_id, by, reason, at } };
  }
  if (kind === 'control.resumed')
    return payload.scope === 'bot' ? { ...state, halted: null } : state;
  return undefined;
}

function changeOf(state: BotState, { kind, version, payload }: RegistryEvent): Partial<BotState> {
  if (kind === 'version.created') {
    return { version, versions: [...state.versions, payload.hash] };
  }
  if (kind === 'bot.updated') {
    const { slug = state.slug, name = state.name } = payload;
    return { slug, name };
  }
  return { status: kind === 'bot.archived' ? 'archived' : 'active' };
}

/** A state as canonical JSON (RFC 8785), and its SHA-256 in hex. */
export function digestOf(state: BotState): { readonly text: string; readonly hash: string } {
  const text = canonicalize(state)!;
  return { text, hash: createHash('sha256').update(text).digest('hex') };
}
