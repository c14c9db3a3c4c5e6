import { closest } from '../../closest.ts';
import { COUNT, fitOf, formsOf, ORDINAL, readPrompt, type Prompt } from './prompt.ts';
import type { KnownQuestion } from './question.ts';
import { QUESTIONS } from './questions.ts';

/** What else was probably asked, so many at most. */
const MOST_OTHERS = 2;

/**
 * The question that fits best, then those that share no word of the prompt with it: in its own words,
 * or by its keys. One that looks for what the prompt says has all of its words.
 */
export function questionsIn(prompt: Prompt): KnownQuestion[] {
  const { words } = prompt;
  const plain = words.join(' ');
  const same = QUESTIONS.find(({ example }) => readPrompt(example).words.join(' ') === plain);
  if (same !== undefined) return [same];
  const meant = QUESTIONS.flatMap((question) => {
    const fits = question.keys.flatMap((key) => fitOf(key, words) ?? []);
    const [best] = fits.toSorted((a, b) => b.weight - a.weight);
    return best === undefined ? [] : [{ question, ...best }];
  });
  const seeker = meant.find(({ question }) => question.seeks === true);
  if (seeker !== undefined) return [seeker.question];
  if (isOtherwise(prompt)) return [];
  const chosen: KnownQuestion[] = [];
  const used = new Set<number>();
  for (const { question, places } of meant.toSorted((a, b) => b.weight - a.weight)) {
    if (chosen.length > MOST_OTHERS || [...places].some((place) => used.has(place))) continue;
    chosen.push(question);
    for (const place of places) used.add(place);
  }
  return chosen;
}

/** Words that say nothing of what is asked. */
const COMMON = new Set(
  'a about also am an and any are ask at been bot by can could did do does each for from get give got had has have how i if in is it its just know let like list many me much my no not now of on only or our please see should show so some tell than that the their them then there these they this those to us want was we were what when which who why will with would you your'.split(
    ' ',
  ),
);

const wordsOf = (text: string): string[] => wordsThatSay(readPrompt(text));

export function wordsThatSay({ words }: Prompt): string[] {
  return words.filter((word) => !COMMON.has(word));
}

let vocabulary: ReadonlySet<string> | undefined;

/** Whether most of it is about what no question is about. */
function isOtherwise(prompt: Prompt): boolean {
  vocabulary ??= new Set(
    QUESTIONS.flatMap(({ example, keys }) => [
      ...wordsOf(example),
      ...keys.flatMap((key) => key.split(' ')).flatMap((token) => [...formsOf(token)]),
    ]),
  );
  const said = wordsThatSay(prompt);
  const strange = said.filter((word) => !vocabulary!.has(word) && !/^v?\d+$/.test(word)).length;
  return strange > 2 && strange > 2 * (said.length - strange);
}

/** What anybody says beside what he asks, and what all answers say themselves. */
const NEUTRAL = new Set(
  'actual actually backtest bot current exactly far figure full here latest newest number overall percent question recent result run so strategy there total value version whole'.split(
    ' ',
  ),
);

/** Whether a word says nothing of what is asked for. */
export function isNeutral(word: string): boolean {
  return NEUTRAL.has(word.replace(/s$/, ''));
}

/**
 * Words of the prompt that neither the question nor the others are about: by them somebody may have
 * asked for something else, such as the return of a month. A year is not for the others.
 */
export function leftOut(
  prompt: Prompt,
  question: KnownQuestion,
  others: readonly KnownQuestion[],
): string[] {
  if (question.seeks === true) return [];
  const tokens = [question, ...others].flatMap(({ example, tells, keys }) => [
    ...wordsOf(`${example} ${tells}`),
    ...keys.flatMap((key) => key.split(' ')),
  ]);
  const meant = new Set(
    tokens.flatMap((token) => [...formsOf(token), ...formsOf(token.replace(/s$/, ''))]),
  );
  const isCounted = question.counts === true;
  const isOfYears = question.keys.some((key) => key.includes('#year'));
  const numbers = new Set([
    ...(question.ofRun === undefined ? prompt.versions : prompt.versions.slice(0, 1)),
    ...(isOfYears ? prompt.years : []),
  ]);
  return [...new Set(wordsThatSay(prompt))].filter((word) => {
    const stem = word.replace(/s$/, '');
    if (meant.has(word) || meant.has(stem) || isNeutral(word)) return false;
    if (isCounted && (COUNT.test(word) || ORDINAL.test(word))) return false;
    return /\d/.test(word) ? !numbers.has(Number(word.replace(/^v/, ''))) : word.length > 1;
  });
}

const MOST_SUGGESTIONS = 5;

/** Questions with words that are like those of the prompt. */
export function nearest(prompt: Prompt): KnownQuestion[] {
  const known = new Set(QUESTIONS.flatMap(({ example }) => wordsOf(example)));
  const asked = wordsThatSay(prompt)
    .slice(0, 40)
    .map((word) => (known.has(word) ? word : closest(word.slice(0, 40), known)));
  return QUESTIONS.map((question) => {
    const words = new Set(wordsOf(question.example));
    return { question, common: asked.filter((word) => words.has(word!)).length };
  })
    .filter(({ common }) => common > 0)
    .toSorted((a, b) => b.common - a.common)
    .slice(0, MOST_SUGGESTIONS)
    .map(({ question }) => question);
}
