/** Matches questions about the records of a bot with a table of known topics. */
import { closest } from '../../base/closest.ts';
import type { Facts } from './facts.ts';
import type { Reply } from './reply.ts';
import { splitWords } from './words.ts';

/** A question about the records of a bot, and its answer. */
export interface Topic {
  readonly id: string;
  readonly example: string;
  /** Content of the answer. */
  readonly about: string;
  /**
   * Words that a question must contain, in any order: `a|b` is one of both. A word also stands for its
   * plural and its verb forms. Of several keys that fit, the one with most words counts.
   */
  readonly keys: readonly string[];
  /** Number of versions or runs that a question may name. */
  readonly names?: number;
  /** Whether the rest of the question is a text to search for. */
  readonly isSearch?: true;
  /** @throws ServiceError for a missing fact, and errors of the API. */
  readonly answer: (facts: Facts) => Promise<Reply>;
}

export interface TopicPart {
  readonly title: string;
  readonly topics: readonly Topic[];
}

export type Matched =
  | { readonly topic: Topic; readonly versions: readonly number[]; readonly ids: readonly string[] }
  | { readonly topic?: undefined; readonly unknown: readonly string[] | undefined };

/**
 * Finds the topic that uses every word of the question.
 * @param names of the bot, which may occur in a question.
 */
export function matchTopic(
  text: string,
  topics: readonly Topic[],
  names: readonly string[],
): Matched {
  const { words: all, ids } = splitWords(text);
  const words = all.filter((word) => /[\p{L}\p{N}#]/u.test(word));
  const versions = versionsIn(words);
  const same = topics.find(({ example }) => plain(splitWords(example).words) === plain(words));
  if (same !== undefined) return { topic: same, versions, ids };
  const named = new Set(names.flatMap((name) => wordsOfName(name, words)));
  const fits = topics.flatMap((topic) => {
    const keys = topic.keys.flatMap((key) => fitOf(key, words) ?? []);
    if (keys.length === 0) return [];
    const covered = new Set(keys.flatMap(({ places }) => [...places]));
    const own = new Set(splitWords(topic.example).words.flatMap((word) => [...formsOf(word)]));
    const isRun = (word: string): boolean =>
      /^(?:#run|v|versions?)$/.test(word) || versions.includes(Number(word.replace(/^v/, '')));
    const isNamed = versions.length + ids.length <= (topic.names ?? 0);
    const left = words.filter(
      (word, i) =>
        !covered.has(i) &&
        !SILENT.has(word) &&
        !named.has(word) &&
        !own.has(word) &&
        !(isNamed && isRun(word)),
    );
    return [{ topic, left, weight: Math.max(...keys.map(({ weight }) => weight)) }];
  });
  const search = fits.find(({ topic }) => topic.isSearch);
  if (search !== undefined) return { topic: search.topic, versions, ids };
  const [best] = fits.toSorted((a, b) => a.left.length - b.left.length || b.weight - a.weight);
  if (best?.left.length === 0) return { topic: best.topic, versions, ids };
  return { unknown: best && [...new Set(best.left)] };
}

const plain = (words: readonly string[]): string => words.filter((word) => word !== '?').join(' ');

function wordsOfName(name: string, words: readonly string[]): readonly string[] {
  const own = splitWords(name).words;
  return ` ${words.join(' ')} `.includes(` ${own.join(' ')} `) ? own : [];
}

/** `v2`, and the numbers after `version`. */
function versionsIn(words: readonly string[]): number[] {
  let isNamed = false;
  return words.flatMap((word) => {
    const [, v, digits] = /^(v?)(\d{1,4})$/.exec(word) ?? [];
    if (/^versions?$/.test(word) || v === 'v') isNamed = true;
    else if (digits === undefined && !/^(?:and|from|number|or|to|versus|vs|with)$/.test(word))
      isNamed = false;
    return isNamed && Number(digits) > 0 ? [Number(digits)] : [];
  });
}

const ENDINGS = ['', 's', 'es', 'd', 'ed', 'ing', 'al'];
const known = new Map<string, ReadonlySet<string>>();

function formsOf(token: string): ReadonlySet<string> {
  let forms = known.get(token);
  if (forms === undefined) {
    forms = new Set(token.split('|').flatMap((one) => ENDINGS.map((ending) => one + ending)));
    known.set(token, forms);
  }
  return forms;
}

/** Words that ask, which say little about the topic. */
const ASKING = new Set(
  'all are every has have how is list many much number of show was were what when which who whom why'.split(
    ' ',
  ),
);

/** How well a question fits a key, and by which of its words; undefined if it lacks one. */
function fitOf(
  key: string,
  words: readonly string[],
): { readonly weight: number; readonly places: ReadonlySet<number> } | undefined {
  const places = new Set<number>();
  let weight = 0;
  for (const token of key.split(' ')) {
    const place = words.findIndex((word, i) => !places.has(i) && formsOf(token).has(word));
    if (place === -1) return undefined;
    places.add(place);
    weight += ASKING.has(words[place]!) ? 0.1 : 1;
  }
  return { weight, places };
}

/** Words that never change what is asked of the records. */
const SILENT = new Set(
  (
    'a about again also am an and any anything are as ask at be been being bot bots by can could current currently did display do does doing ever exactly exist exists far for from get give given go got had has have hello here hey hi how ' +
    'i in into is it its itself just kindly know let like list ll look m me my now of ok okay on or our please pls question really right run s see show so strategy t tell thank thanks that the their them there these they this to us ve want was we well were what which with you your'
  ).split(' '),
);

const wordsToSuggest = (text: string): string[] =>
  splitWords(text).words.filter(
    (word) => /[\p{L}\p{N}]/u.test(word) && !SILENT.has(word) && !ASKING.has(word),
  );

const MOST_SUGGESTIONS = 5;

/** The questions with most words in common with a text, misspelled ones included. */
export function nearestQuestions(text: string, examples: readonly string[]): readonly string[] {
  const vocabulary = new Set(examples.flatMap(wordsToSuggest));
  const asked = wordsToSuggest(text)
    .slice(0, 40)
    .map((word) => (vocabulary.has(word) ? word : closest(word.slice(0, 40), vocabulary)));
  return examples
    .map((example) => {
      const words = new Set(wordsToSuggest(example));
      return {
        example,
        common: new Set(asked.filter((word) => words.has(word!))).size / Math.sqrt(words.size),
      };
    })
    .filter(({ common }) => common > 0)
    .toSorted((a, b) => b.common - a.common)
    .slice(0, MOST_SUGGESTIONS)
    .map(({ example }) => example);
}
