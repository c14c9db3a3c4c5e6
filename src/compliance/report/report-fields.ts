import type { Origin } from '../../base/validation-report-fields.ts';
import { digest } from '../evidence-digest.ts';
import type { Draft, Field, Fields, Figure, Human } from './validation-report.ts';

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

/** Creates the fields of a section or list item in the order of their table. */
export function composeFields<F extends Readonly<Record<string, Origin>>>(
  origins: F,
  known: Known<F>,
) {
  const values: Readonly<Record<string, unknown>> = known;
  const made = Object.entries(origins).map(([name, origin]) => [
    name,
    origin === 'H' ? human() : origin === 'M' ? draft(values[name] as string | null) : values[name],
  ]);
  return Object.fromEntries(made) as Fields<F>;
}

export function isField(value: unknown): value is Field {
  return typeof value === 'object' && value !== null && 'marker' in value;
}

/**
 * Yields all fields below a value, each with its path. A path is a JSON pointer, except that it names a
 * list item by its `id`, which stays the same when the report is drafted again.
 */
export function* fieldsIn(
  value: unknown,
  at = '',
): Generator<readonly [place: string, field: Field]> {
  if (isField(value)) yield [at, value];
  else if (Array.isArray(value)) {
    for (const item of value as readonly { readonly id?: string }[]) {
      if (item.id !== undefined) yield* fieldsIn(item, `${at}/${item.id}`);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, child] of Object.entries(value)) yield* fieldsIn(child, `${at}/${name}`);
  }
}

/** Lists the figures below a value with their paths, see `fieldsIn`. */
export function figuresIn(value: unknown): (readonly [place: string, figure: Figure])[] {
  return [...fieldsIn(value)].flatMap(([place, field]) =>
    field.marker === 'A' ? [[place, field] as const] : [],
  );
}
