import { isDeepStrictEqual } from 'node:util';
import type { BotSpec } from '../bots/spec.ts';
import type { Problem } from '../base/errors.ts';

type Risk = NonNullable<BotSpec['spec']['risk']>;

/**
 * Finds changes that only a person may make: a changed slug, holdout, end of the data where a holdout
 * is declared, kind, attribution or deployment, and raised or removed limits.
 *
 * @param before the version that would be replaced.
 * @returns one problem per change, with a pointer into the proposed document.
 */
export function proposalProblems(before: BotSpec, after: BotSpec): Problem[] {
  const { holdout, to: end } = before.spec.data;
  const kept = [
    ['/metadata/slug', before.metadata.slug, after.metadata.slug],
    ['/spec/data/holdout', holdout, after.spec.data.holdout],
    ['/spec/data/to', end, holdout === undefined ? end : after.spec.data.to],
    ['/spec/kind', before.spec.kind, after.spec.kind],
    ['/spec/attribution', before.spec.attribution, after.spec.attribution],
    ['/spec/deployment', before.spec.deployment, after.spec.deployment],
  ] as const;
  const changed = kept
    .filter(([, from, to]) => !isDeepStrictEqual(from, to))
    .map(([pointer]) =>
      problem(
        pointer,
        'kept_from_proposals',
        'cannot be changed by a proposal; edit the spec and apply it yourself',
      ),
    );
  const [from, to] = [before.spec.risk ?? {}, after.spec.risk ?? {}];
  const raised = [...raisedLimits(from, to), ...newlyUnlimited(from, to)];
  if (before.spec.universe.currency !== after.spec.universe.currency) {
    if (isThere(from.max_order_value)) raised.push('max_order_value');
  }
  return [
    ...changed,
    ...[...new Set(raised)].map((name) =>
      problem(
        `/spec/risk/${name}`,
        'limit_raised',
        `cannot be raised or removed by a proposal; edit the limit ${name} in the spec yourself`,
      ),
    ),
  ];
}

function problem(pointer: string, code: string, message: string): Problem {
  return { pointer, code, message };
}

/** Names the limits that would allow more than before. */
function raisedLimits(from: Risk, to: Risk): string[] {
  const raised: string[] = namesOf(from).filter(
    (name) => name !== 'messages_kept_for_cancels' && numberOf(to[name]) > numberOf(from[name]),
  );
  const [collar, newCollar] = [from.price_collar_period, to.price_collar_period];
  if (collar !== undefined && 'bps' in collar) {
    const isAsStrict =
      newCollar !== undefined &&
      'bps' in newCollar &&
      newCollar.bps <= collar.bps &&
      newCollar.seconds === collar.seconds;
    if (!isAsStrict) raised.push('price_collar_period');
  }
  const [repeated, newRepeated] = [from.repeated_execution, to.repeated_execution];
  if (repeated !== undefined && 'count' in repeated) {
    const isAsStrict =
      newRepeated !== undefined &&
      'count' in newRepeated &&
      newRepeated.count <= repeated.count &&
      newRepeated.seconds >= repeated.seconds;
    if (!isAsStrict) raised.push('repeated_execution');
  }
  if ((to.messages_kept_for_cancels ?? 0) < (from.messages_kept_for_cancels ?? 0)) {
    raised.push('messages_kept_for_cancels');
  }
  for (const what of ['instruments', 'venues'] as const) {
    if (!isWithin(to.permitted?.[what], from.permitted?.[what])) raised.push(`permitted/${what}`);
  }
  return raised;
}

/** Only a person may declare a limit `unlimited`, or change the reason. */
function newlyUnlimited(from: Risk, to: Risk): string[] {
  return namesOf(to).filter(
    (name) => isUnlimited(to[name]) && !isDeepStrictEqual(from[name], to[name]),
  );
}

function isUnlimited(limit: Risk[keyof Risk]): boolean {
  return typeof limit === 'object' && 'unlimited' in limit;
}

function isThere(limit: Risk[keyof Risk]): boolean {
  return limit !== undefined && !isUnlimited(limit);
}

function namesOf(risk: Risk): (keyof Risk)[] {
  return Object.keys(risk) as (keyof Risk)[];
}

/** Infinity for a limit that is absent or not a number. */
function numberOf(limit: Risk[keyof Risk]): number {
  return limit === undefined || typeof limit === 'object' ? Infinity : Number(limit);
}

/** A missing list permits everything. */
function isWithin(to: readonly string[] | undefined, from: readonly string[] | undefined): boolean {
  return from === undefined || (to !== undefined && to.every((name) => from.includes(name)));
}
