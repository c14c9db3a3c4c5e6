/** Reads a question as queries. A question with a word that no query uses is not understood. */
import { interpret } from './interpret.ts';
import { lex } from './lexicon.ts';
import type { Phrase, Slot, Tag } from './tags.ts';
import { namePhrase, onlySymbolPhrases, paramPhrases } from './value-phrases.ts';
import type { Query } from './query.ts';
import { correctSpelling } from './spelling.ts';
import { splitWords } from './words.ts';

/** Names that questions may use. */
export interface Names {
  /** Names of the bot, which change nothing. */
  readonly bot: readonly string[];
  readonly symbols: readonly string[];
  readonly params: readonly string[];
}

/** The last question of a conversation, as tags. */
export interface Context {
  readonly tags: readonly Tag[];
  readonly ids: readonly string[];
}

export type Parsed =
  | {
      readonly queries: readonly Query[];
      readonly context: Context;
      /** Misspelled words and what they were read as. */
      readonly corrected: readonly (readonly [string, string])[];
      readonly isFollowUp: boolean;
    }
  | {
      readonly queries?: undefined;
      readonly unknown: readonly string[];
      readonly needsContext: boolean;
    };

export function parseQuestion(
  text: string,
  names: Names,
  given: Context | 'unclear' | undefined,
): Parsed {
  const { words, ids } = splitWords(text);
  const context = given === 'unclear' ? undefined : given;
  const phrases = phrasesOf(names);
  const corrected: (readonly [string, string])[] = [];
  let lexed = lex(words, phrases);
  if (lexed.unknown.length > 0) {
    const spelled = words.map((word) => {
      const meant = lexed.unknown.includes(word) ? correctSpelling(word) : undefined;
      if (meant !== undefined) corrected.push([word, meant]);
      return meant ?? word;
    });
    if (corrected.length > 0) lexed = lex(spelled, phrases);
  }
  const { unknown } = lexed;
  if (unknown.length > 0) return { unknown, needsContext: false };
  const tags = settled(withKind(lexed.tags));
  const isOnward =
    /^(?:and|but|or|what about|how about|same|for|of|in|also|compared|vs|versus|than|with)$/.test(
      opening(words),
    );
  const refers = tags.some(({ slot }) => slot === 'reference');
  const alone = refers ? undefined : queriesOf(tags, ids);
  // `And in 2009?` alone needs the question before, unless the conversation begins with it.
  const isOpen = isOnward && given !== undefined && !tags.some(({ slot }) => CORE.has(slot));
  const hasPronoun = words.some((word) => /^(?:it|its)$/.test(word));
  // `Its fees` may refer to the trade of the question before.
  if (hasPronoun && !isOnward && context !== undefined && isOfOneItem(context)) {
    const merged = merge(tags, ids, context, true);
    if (merged !== undefined) return { ...merged, corrected, isFollowUp: true };
  }
  if (alone?.queries !== undefined && !isOpen && !(isOnward && context !== undefined)) {
    return { queries: alone.queries, context: { tags, ids }, corrected, isFollowUp: false };
  }
  if (context !== undefined && (isOnward || refers || hasPronoun)) {
    const merged = merge(tags, ids, context, refers || !isOnward);
    if (merged !== undefined) return { ...merged, corrected, isFollowUp: true };
  }
  if (alone?.queries !== undefined && !isOpen) {
    return { queries: alone.queries, context: { tags, ids }, corrected, isFollowUp: false };
  }
  const left =
    alone !== undefined && alone.queries === undefined ? alone.left : tags.map((tag) => tag.text);
  return {
    unknown: left,
    needsContext: context === undefined && (refers || isOnward || hasPronoun),
  };
}

function isOfOneItem({ tags, ids }: Context): boolean {
  const [query, other] = queriesOf(tags, ids).queries ?? [];
  return query?.kind === 'items' && query.selection.take?.count === 1 && other === undefined;
}

function opening(words: readonly string[]): string {
  const two = words.slice(0, 2).join(' ');
  return /^(?:what|how) about$/.test(two) ? two : (words[0] ?? '');
}

function phrasesOf({ bot, symbols, params }: Names): readonly Phrase[] {
  const plain = (name: string): string => splitWords(name).words.join(' ');
  const [only] = symbols.length === 1 ? symbols : [];
  return [
    ...bot.map((name) => namePhrase(plain(name), { slot: 'filler', value: '' })),
    ...(only === undefined ? symbols : []).map((symbol) =>
      namePhrase(plain(symbol), { slot: 'symbol', value: symbol }),
    ),
    ...(only === undefined ? [] : onlySymbolPhrases(plain(only))),
    ...paramPhrases(params),
  ];
}

/** Adds that a question is about a backtest if a longer phrase says so: `in the last year of the test`. */
function withKind(tags: readonly Tag[]): readonly Tag[] {
  const found = tags.find(
    ({ slot, text }) => slot !== 'kind' && /\b(?:back)?test(?:s|ed)?\b|simulation/.test(text),
  );
  if (found === undefined) return tags;
  const kind = { slot: 'kind', value: 'backtest', text: found.text, at: found.at } as const;
  return tags.toSpliced(tags.indexOf(found) + 1, 0, kind);
}

/** Measures that limit items, such as in `trades held for more than 30 days`. */
const LIMITING = new Set(['profit', 'total_return', 'duration', 'fees', 'quantity']);

/** Settles words whose meaning depends on the words around them. */
function settled(tags: readonly Tag[]): readonly Tag[] {
  const isLength = tags.some(({ slot, value }) => slot === 'want' && value === 'length');
  const isCompared = tags.some(({ slot }) => slot === 'compare');
  const isAboutItems = (measure: Tag): boolean =>
    tags.some(
      (tag) =>
        ['subject', 'outcome', 'side', 'symbol'].includes(tag.slot) ||
        (tag.slot === 'measure' && tag.value !== measure.value),
    );
  return tags.flatMap((tag, i): Tag[] => {
    const [before, next] = [tags[i - 1], tags[i + 1]];
    // In `how long did it last` and `how long was it open`, the last word is a verb.
    const isEnd =
      next === undefined || ['conjunction', 'stat', 'compare', 'kind'].includes(next.slot);
    // `Compare 2008 with 2009`.
    if (isCompared && tag.slot === 'whatIf' && tag.text === 'with') {
      const hasBenchmark = tags.some(({ slot }) => slot === 'benchmark');
      return hasBenchmark ? [] : [{ ...tag, slot: 'conjunction', value: 'and' }];
    }
    const isVerb =
      (tag.slot === 'rank' && tag.text === 'last') ||
      (tag.slot === 'status' && tag.text === 'open');
    if (isLength && isEnd && isVerb) return [{ ...tag, slot: 'measure', value: 'duration' }];
    const limits = (one: Tag | undefined): boolean =>
      one?.slot === 'measure' && LIMITING.has(one.value) && isAboutItems(one);
    if (next?.slot === 'condition' && limits(tag)) return [];
    if (tag.slot === 'condition' && limits(before)) {
      return [{ ...tag, value: { ...tag.value, measure: before!.value as string } }];
    }
    return [tag];
  });
}

type Queries =
  | { readonly queries: readonly Query[] }
  | { readonly queries?: undefined; readonly left: readonly string[] };

/** One query, one for each of several alternatives, or one for each clause. */
function queriesOf(tags: readonly Tag[], ids: readonly string[]): Queries {
  const trimmed = withoutIdleConjunctions(tags);
  const several = ids.length > 1 ? undefined : alternativesOf(trimmed);
  if (several !== undefined) {
    const all = several.map((one) => interpret(one, ids));
    const queries = all.flatMap(({ query }) => query ?? []);
    if (queries.length === all.length) return { queries };
  }
  const whole = interpret(trimmed, ids);
  const isWhole =
    trimmed.every(({ slot, text }) => slot !== 'conjunction' || /^[,:(-]$/.test(text)) ||
    trimmed.some(({ slot }) => slot === 'change') ||
    trimmed.some(({ slot }) => slot === 'recovered') ||
    whole.query?.kind === 'compare';
  if (whole.query !== undefined && isWhole) return { queries: [whole.query] };
  const clauses = clausesOf(trimmed);
  if (clauses.length > 1 && clauses.length <= 4 && areComplete(clauses)) {
    const all = clauses.map((clause) => queriesOf(clause, ids));
    const queries = all.flatMap((one) => one.queries ?? []);
    if (all.every((one) => one.queries !== undefined)) return { queries };
  }
  return {
    left:
      whole.query === undefined
        ? whole.left
        : trimmed.filter(({ slot }) => slot === 'conjunction').map(({ text }) => text),
  };
}

/** Drops conjunctions that join nothing, and all but the strongest of several in a row. */
function withoutIdleConjunctions(tags: readonly Tag[]): readonly Tag[] {
  const kept: Tag[] = [];
  for (const tag of tags) {
    const last = kept.at(-1);
    if (tag.slot !== 'conjunction') kept.push(tag);
    else if (last?.slot === 'conjunction' && /^[,:(-]$/.test(last.text))
      kept[kept.length - 1] = tag;
    else if (last !== undefined && last.slot !== 'conjunction') kept.push(tag);
  }
  if (kept.at(-1)?.slot === 'conjunction') kept.pop();
  return kept;
}

/** Slots of which a question may name several values, to compare them. */
const COMPARABLE: readonly Slot[] = [
  'measure',
  'outcome',
  'side',
  'symbol',
  'period',
  'version',
  'weekday',
  'rank',
  'stat',
  'subject',
];
/** Slots that limit what a figure is about. */
const LIMITS: ReadonlySet<Slot> = new Set<Slot>([
  'period',
  'side',
  'symbol',
  'condition',
  'weekday',
  'month',
  'hour',
  'edge',
  'version',
  'run',
  'status',
]);

const key = ({ value }: Tag): string => JSON.stringify(value);

/**
 * The question once for each value of the one slot that has several. A limit between the values
 * would leave open whether it applies to all of them.
 */
function alternativesOf(tags: readonly Tag[]): (readonly Tag[])[] | undefined {
  const several = COMPARABLE.filter(
    (slot) => new Set(tags.filter((tag) => tag.slot === slot).map(key)).size > 1,
  );
  const [slot] = several;
  if (slot === undefined || several.length > 1) return undefined;
  const values = tags.filter((tag) => tag.slot === slot);
  const isJoined = values
    .slice(1)
    .every(
      (tag, i) =>
        key(tag) === key(values[i]!) ||
        tags
          .slice(tags.indexOf(values[i]!), tags.indexOf(tag))
          .some((one) => one.slot === 'conjunction' || one.slot === 'compare'),
    );
  const between = tags.slice(tags.indexOf(values[0]!), tags.indexOf(values.at(-1)!));
  const isLimited = between.some((tag) => tag.slot !== slot && LIMITS.has(tag.slot));
  if (
    !isJoined ||
    isLimited ||
    tags.some((tag) => tag.slot === 'conjunction' && /[?.!]/.test(tag.text))
  )
    return undefined;
  const rest = tags.filter(
    (tag) => tag.slot !== 'compare' || tags.some((one) => one.slot === 'benchmark'),
  );
  const distinct = values.filter(
    (tag, i) => values.findIndex((one) => key(one) === key(tag)) === i,
  );
  return distinct.map((chosen) => rest.filter((tag) => tag.slot !== slot || tag === chosen));
}

function clausesOf(tags: readonly Tag[]): (readonly Tag[])[] {
  const clauses: Tag[][] = [[]];
  for (const tag of tags) {
    if (tag.slot === 'conjunction') clauses.push([]);
    else if (tag.slot !== 'kind') clauses.at(-1)!.push(tag);
  }
  const kinds = tags.filter(({ slot }) => slot === 'kind');
  return clauses.filter(({ length }) => length > 0).map((clause) => [...clause, ...kinds]);
}

/** Slots of which each clause needs one: `closed in 2009` alone would be a further limit. */
const CORE: ReadonlySet<Slot> = new Set<Slot>([
  'measure',
  'subject',
  'want',
  'streak',
  'benchmark',
  'change',
]);

/**
 * Whether each clause is a question. If some have limits and others have none, it is unclear to which of
 * them a limit applies.
 */
function areComplete(clauses: readonly (readonly Tag[])[]): boolean {
  const limited = clauses.filter((clause) => clause.some(({ slot }) => LIMITS.has(slot)));
  const isAlike = limited.length === 0 || limited.length === clauses.length;
  return isAlike && clauses.every((clause) => clause.some(({ slot }) => CORE.has(slot)));
}

/** Slots that say what is asked for, and not of what. */
const ASKED: readonly Slot[] = [
  'measure',
  'want',
  'stat',
  'unit',
  'by',
  'compare',
  'recovered',
  'benchmark',
];
const CHOSEN: readonly Slot[] = ['rank', 'nth', 'number'];

/** The question before with the values that the new question names in place of its own. */
function merge(
  tags: readonly Tag[],
  ids: readonly string[],
  before: Context,
  refers: boolean,
): { readonly queries: readonly Query[]; readonly context: Context } | undefined {
  const own = withoutIdleConjunctions(tags).filter(({ slot }) => slot !== 'reference');
  const named = new Set(own.map(({ slot }) => slot));
  if (own.length === 0) return undefined;
  const isChanged = named.has('change');
  const old = before.tags.filter(
    ({ slot }) =>
      slot !== 'conjunction' && !(isChanged && (slot === 'change' || slot === 'whatIf')),
  );
  const isChosen = old.some(({ slot }) => CHOSEN.includes(slot));
  const limits =
    [...named].some((slot) => LIMITS.has(slot) && slot !== 'edge') || named.has('outcome');
  // A further limit would choose other items than those that `that trade` refers to.
  if (refers && isChosen && (limits || CHOSEN.some((slot) => named.has(slot)))) return undefined;
  const keep = (drop: readonly Slot[]): readonly Tag[] => [
    ...old.filter(({ slot }) => !named.has(slot) && !drop.includes(slot)),
    ...own,
  ];
  const nth = named.has('rank')
    ? (['nth', 'number'] as const)
    : named.has('nth')
      ? (['number'] as const)
      : [];
  const attempts = refers
    ? [
        ...(named.has('measure') || named.has('want') || named.has('stat') ? [] : [keep([])]),
        keep(ASKED),
      ]
    : [
        keep(nth),
        keep([...ASKED, ...nth]),
        keep([...ASKED, ...CHOSEN, 'subject', 'outcome', 'streak']),
      ];
  for (const merged of attempts) {
    const wanted = ids.length > 0 ? ids : named.has('version') ? [] : before.ids;
    const { queries } = queriesOf(merged, wanted);
    if (queries !== undefined) return { queries, context: { tags: merged, ids: wanted } };
  }
  return undefined;
}
