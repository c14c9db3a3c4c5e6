import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { article } from '../articles.ts';
import type { Draft, Figure, Gap, Human, Report } from './payload.ts';

/** What is asked of the records, by name: what an auditor has to ask to get the same. */
export const QUERIES = {
  'administrators.list': 'administrators that are not disabled',
  'bot.current': 'the current version of the bot, as its spec has it',
  'bot.deployments': 'deployments of the bot that were there in the period, by target and place',
  'bot.positions':
    'the newest recorded state of each session of the bot that was there in the period',
  'bot.versions': 'versions of the bot made in the period, each against the one before',
  'bots.list': 'bots that are not archived, by slug, with their current versions',
  'halts.of_bot':
    'halts of the bot, or of all bots, asked for in the period, what of the bot they ended, and by the audit log how long each took to be in force',
  'halts.of_drills': 'halts of the bots that `bots drill` makes, asked for in the period',
  'log.alerts':
    'events alert.raised of the bot in the part of its log that was recorded in the period: how many, and their latency_ms',
  'log.counts':
    'events of the bot in the part of its log that was recorded in the period, by kind, target of the run, and reason',
  'log.head': 'the newest event of the bot that was recorded before the end of the period',
  'overrides.of_bot': 'overrides of the bot asked for in the period, and what became of each',
  'risk.controls': 'a limit of the spec: its value, and the version that changed it last',
  'risk.limit_changes':
    'what versions made in the period changed below /spec/risk, and all thresholds set or removed in it',
  'risk.thresholds':
    'a threshold of one for whom the bot trades, by its current version, as it was in force at the end of the period',
  'tasks.failed': 'a task of the bot that failed in the period',
  'tasks.of_kind': 'the newest tasks of a kind that were a success by the end of the period',
  'tokens.with_halt': 'administrators with a token that may halt, and is good',
} as const;

export type Query = keyof typeof QUERIES;

/** @param value what JSON can hold. */
export function figure(name: Query, params: Figure['query']['params'], value: unknown): Figure {
  return { marker: 'A', value, query: { name, params }, hash: digest(value) };
}

/** SHA-256, in hex, of the canonical JSON (RFC 8785) of a value. */
export function digest(value: unknown): string {
  return createHash('sha256').update(canonicalize(value)!).digest('hex');
}

const NOBODY = { value: null, by: null, at: null };

export function human(): Human {
  return { marker: 'H', ...NOBODY };
}

export function draft(text: string | null): Draft {
  return { marker: 'M', draft: text, ...NOBODY };
}

/** Collects what is missing. */
export class Gaps {
  readonly list: Gap[] = [];

  /** @param articles paragraphs as `cite` names them. */
  add(id: string, missing: string, articles: readonly string[]): void {
    for (const one of articles) article(one);
    this.list.push({ id, missing, articles });
  }
}

export function isField(value: unknown): value is Figure | Draft | Human {
  return typeof value === 'object' && value !== null && 'marker' in value;
}

/**
 * All fields below a value, each with its place: as a JSON pointer, but that an item of a list goes by its
 * `id`, which stays the same when the report is made anew.
 */
export function* fieldsIn(
  value: unknown,
  at = '',
): Generator<readonly [place: string, field: Figure | Draft | Human]> {
  if (isField(value)) yield [at, value];
  else if (Array.isArray(value)) {
    for (const item of value as readonly { readonly id?: string }[]) {
      if (item.id !== undefined) yield* fieldsIn(item, `${at}/${item.id}`);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, child] of Object.entries(value)) yield* fieldsIn(child, `${at}/${name}`);
  }
}

/** What is attested of a report: all but what comes with freezing and attesting it. */
export function contentHash({
  status: _status,
  signed_with_open: _open,
  number: _number,
  content_hash: _hash,
  attestations: { internal_audit_absent_reason },
  ...content
}: Report): string {
  return digest({ ...content, internal_audit_absent_reason });
}
