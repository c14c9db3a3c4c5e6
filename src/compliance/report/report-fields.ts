import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { article } from '../articles.ts';
import type { Draft, Figure, Gap, Human, Report, ReportedLimit } from './payload.ts';

/** Descriptions of the queries by name, from which an auditor can reproduce every figure. */
export const QUERIES = {
  'administrators.list': 'administrators that are not disabled',
  'bot.current': 'the spec of the current version of the bot',
  'bot.deployments':
    'deployments of the bot that were open in the period, by target, cluster and exchange',
  'bot.positions':
    'the newest recorded state of each trading session of the bot that was open in the period',
  'bot.versions': 'versions of the bot created in the period, each compared with the one before',
  'bots.list': 'bots that are not archived, by slug, with their current versions',
  'halts.of_bot':
    'halts of the bot or of all bots that were requested in the period, the deployments of the bot that they ended, and how long each took to be in force according to the audit log',
  'halts.of_drills': 'halts of the bots that `bots drill` creates, requested in the period',
  'log.alerts':
    'events alert.raised of the bot that were recorded in the period: their number and their latency_ms',
  'log.counts':
    'events of the bot that were recorded in the period, by kind, target of the run, and reason',
  'log.head': 'the newest event of the bot that was recorded before the end of the period',
  'overrides.of_bot': 'overrides of the bot requested in the period, and the outcome of each',
  'risk.controls': 'a limit in the spec: its value, and the version that last changed it',
  'risk.limit_changes':
    'changes below /spec/risk in versions created in the period, and all thresholds set or removed in the period',
  'risk.thresholds':
    'a threshold that applies to the current version of the bot, as in force at the end of the period',
  'tasks.failed': 'a task of the bot that failed in the period',
  'tasks.of_kind': 'the newest tasks of a kind that had succeeded by the end of the period',
  'tokens.with_halt': 'administrators with a valid token that may halt',
} as const;

export type Query = keyof typeof QUERIES;

/** @param value a JSON value. */
export function figure(name: Query, params: Figure['query']['params'], value: unknown): Figure {
  return { marker: 'A', value, query: { name, params }, hash: digest(value) };
}

/** Returns the SHA-256, in hex, of the canonical JSON (RFC 8785) of a value. */
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

export function reportedLimit(
  id: string,
  articles: readonly string[],
  facts: Figure,
): ReportedLimit {
  return { id, articles, facts, owner: human(), rationale: human(), alerts_to: human() };
}

export class Gaps {
  readonly list: Gap[] = [];

  /** @param articles citations, see `cite`. @throws Error for a citation that does not exist. */
  add(id: string, missing: string, articles: readonly string[]): void {
    for (const one of articles) article(one);
    this.list.push({ id, missing, articles });
  }
}

export function isField(value: unknown): value is Figure | Draft | Human {
  return typeof value === 'object' && value !== null && 'marker' in value;
}

/**
 * Yields all fields below a value, each with its path. A path is a JSON pointer, except that it names a
 * list item by its `id`, which stays the same when the report is drafted again.
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

/** Hashes what people attest: all of a report except what freezing and attesting add. */
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
