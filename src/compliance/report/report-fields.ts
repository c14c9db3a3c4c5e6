import type { Origin } from '../../base/validation-report-fields.ts';
import { digest } from '../evidence-digest.ts';
import type { Draft, Field, Figure, Human, Report } from './validation-report.ts';

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

/** @param value a JSON value. */
export function figure(
  name: keyof typeof QUERIES,
  params: Figure['query']['params'],
  value: unknown,
): Figure {
  return { marker: 'A', value, query: { name, params }, hash: digest(value) };
}

const EMPTY = { value: null, by: null, at: null };

export function human(): Human {
  return { marker: 'H', ...EMPTY };
}

export function draft(text: string | null): Draft {
  return { marker: 'M', draft: text, ...EMPTY };
}

/** Figures by name, and drafts for people by name, null without records; the other fields start empty. */
type Known<F> = { readonly [N in keyof F as F[N] extends 'A' ? N : never]: Figure } & {
  readonly [N in keyof F as F[N] extends 'M' ? N : never]: string | null;
};

type Fields<F> = {
  readonly [N in keyof F]: Extract<Field, { readonly marker: F[N] }>;
};

/** Creates the fields of a section or list item in the order of their table. */
export function composeFields<F extends Readonly<Record<string, Origin>>>(
  origins: F,
  known: Known<F>,
) {
  const values: Readonly<Record<string, unknown>> = known;
  const make = { A: (value: unknown) => value, M: draft, H: human } as const;
  const made = Object.entries(origins).map(([name, origin]) => [
    name,
    make[origin](values[name] as string | null),
  ]);
  return Object.fromEntries(made) as Fields<F>;
}

function isField(value: unknown): value is Field {
  return typeof value === 'object' && value !== null && 'marker' in value;
}

/**
 * Lists all fields below a value, each with its path. A path is a JSON pointer, except that it names a
 * list item by its `id`, which stays the same when the report is drafted again.
 */
export function fieldsIn(value: unknown, at = ''): (readonly [place: string, field: Field])[] {
  if (isField(value)) return [[at, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) => {
    const id = Array.isArray(value) ? (child as { readonly id?: string }).id : name;
    return id === undefined ? [] : fieldsIn(child, `${at}/${id}`);
  });
}

/** Lists the figures below a value with their paths, see `fieldsIn`. */
export function figuresIn(value: unknown): (readonly [place: string, figure: Figure])[] {
  return fieldsIn(value).flatMap(([place, field]) =>
    field.marker === 'A' ? [[place, field] as const] : [],
  );
}

/** Sets `inputs_hash`, and `content_hash` of all but what freezing and attesting add. */
export function withHashes(report: Report): Report {
  const inputs_hash = digest(figuresIn(report).map(([, { hash }]) => hash));
  const {
    status: _status,
    signed_with_open: _open,
    number: _number,
    content_hash: _hash,
    attestations: { internal_audit_absent_reason },
    ...content
  } = report;
  const generated_by = { ...report.generated_by, inputs_hash };
  const content_hash = digest({ ...content, generated_by, internal_audit_absent_reason });
  return { ...report, generated_by, content_hash };
}
