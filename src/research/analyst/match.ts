import { closest } from '../../base/closest.ts';
import { periodIn, yearIn } from './period.ts';
import { COUNT, fitOf, formsOf, ORDINAL, readPrompt, withoutIds, type Prompt } from './prompt.ts';
import type { KnownQuestion } from './question.ts';
import { QUESTIONS } from './questions.ts';

/**
 * Interpretation of a prompt: questions that cover every word, or the words that no question
 * covers.
 */
export type Understood =
  | {
      readonly question: KnownQuestion;
      /** The part of the prompt that asks it. */
      readonly prompt: Prompt;
      /** What the other parts of the prompt ask. */
      readonly others: readonly KnownQuestion[];
    }
  | {
      readonly question: undefined;
      /** In the order of the prompt. */
      readonly notUnderstood: readonly string[];
      /** The question that covers most of the prompt. */
      readonly nearest: KnownQuestion | undefined;
    };

/**
 * Finds the question that a prompt asks. Every content word must belong to the question, to a
 * period or version that the question uses, or to a name in `names`: an answer that ignores a word
 * could be wrong unnoticed.
 *
 * @param names of the bot that is asked, as people may write them: slug, name and only symbol.
 */
export function understand(prompt: Prompt, names: readonly string[]): Understood {
  const whole = understandPart(prompt, names);
  if (whole.question !== undefined) return { ...whole, prompt, others: [] };
  const [first, ...rest] = partsOf(prompt).map((part) => ({
    part,
    ...understandPart(part, names),
  }));
  const isFirstClear = first?.question !== undefined && rest.length > 0;
  if (!isFirstClear || rest.some(({ part, question }) => !question || isOfPart(part))) return whole;
  const others = new Set(rest.map(({ question }) => question!));
  others.delete(first.question);
  return { question: first.question, prompt: first.part, others: [...others] };
}

/** Parts between `and`, commas and the ends of sentences. */
function partsOf({ text }: Prompt): Prompt[] {
  return withoutIds(text)
    .split(/[,;?!]|\.\s|\band\b/i)
    .map(readPrompt)
    .filter(({ words }) => words.some((word) => !SILENT.has(word)));
}

/**
 * Whether it names a run or days: with several parts, it would be unclear which part they apply to.
 */
function isOfPart(part: Prompt): boolean {
  return part.versions.length + part.years.length > 0 || periodIn(part) !== undefined;
}

interface Candidate {
  readonly question: KnownQuestion;
  readonly weight: number;
  readonly left: readonly string[];
}

function understandPart(prompt: Prompt, names: readonly string[]): Understood {
  const { words } = prompt;
  const plain = words.join(' ');
  const same = QUESTIONS.find(({ example }) => readPrompt(example).words.join(' ') === plain);
  if (same !== undefined) return { question: same, prompt, others: [] };
  const named = wordsOfNames(prompt, names);
  const candidates = QUESTIONS.flatMap((question): Candidate[] => {
    const fits = question.keys.flatMap((key) => fitOf(key, words) ?? []);
    if (fits.length === 0) return [];
    const covered = new Set(fits.flatMap(({ places }) => [...places]));
    const isCovered = modifiersOf(prompt, question);
    const left = [
      ...words.filter(
        (word, i) => !covered.has(i) && !SILENT.has(word) && !named.has(word) && !isCovered(word),
      ),
      ...prompt.ids.slice(runsOf(question)),
    ];
    return [{ question, weight: Math.max(...fits.map(({ weight }) => weight)), left }];
  });
  const seeker = candidates.find(({ question }) => question.seeks === true);
  if (seeker !== undefined) return { question: seeker.question, prompt, others: [] };
  const [best] = candidates.toSorted(
    (a, b) => a.left.length - b.left.length || b.weight - a.weight,
  );
  if (best?.left.length === 0) return { question: best.question, prompt, others: [] };
  const left = best?.left ?? words.filter((word) => !SILENT.has(word) && !named.has(word));
  return { question: undefined, notUnderstood: [...new Set(left)], nearest: best?.question };
}

/** Words that are part of the whole name of the bot, its slug or its only symbol. */
function wordsOfNames({ words }: Prompt, names: readonly string[]): ReadonlySet<string> {
  const plain = ` ${words.join(' ')} `;
  const named = names
    .map((name) => readPrompt(name).words)
    .filter((one) => one.length > 0 && plain.includes(` ${one.join(' ')} `));
  return new Set(named.flat());
}

/** Other words that a question uses: its own, days, a version, a number or a rank. */
function modifiersOf(prompt: Prompt, question: KnownQuestion): (word: string) => boolean {
  const { example, ofRun, counts } = question;
  const own = new Set(
    readPrompt(example).words.flatMap((word) => [
      ...formsOf(word),
      ...formsOf(word.replace(/(?:s|ed)$/, '')),
    ]),
  );
  const days = new Set(ofRun === undefined ? [] : daysIn(prompt, ofRun));
  const most = runsOf(question);
  const versions = new Set(prompt.versions.slice(0, most));
  const isVersion = (word: string): boolean =>
    (most > 0 && /^versions?$/.test(word)) ||
    (/^v?\d+$/.test(word) && versions.has(Number(word.replace('v', ''))));
  const isCount = (word: string): boolean =>
    counts !== undefined && ((counts === 'many' && COUNT.test(word)) || ORDINAL.test(word));
  return (word) => own.has(word) || days.has(word) || isVersion(word) || isCount(word);
}

/** Maximum number of runs or versions in a prompt. */
function runsOf({ ofRun, versioned }: KnownQuestion): number {
  return versioned ?? (ofRun === undefined ? 0 : 1);
}

function daysIn(prompt: Prompt, ofRun: NonNullable<KnownQuestion['ofRun']>): readonly string[] {
  const period = periodIn(prompt) ?? yearIn(prompt);
  const { words } = readPrompt(period?.said ?? '');
  return ofRun === 'years' ? [...words, ...prompt.years.map(String)] : words;
}

/** Words that never change the meaning of a question. */
const SILENT = new Set(
  (
    'a about again also am an and any anything are as ask at be been being but by can could currently d did display do does doing ' +
    'each exist exists for from get give given go got had has have hello hey hi how i in into is it its just kindly know let like ll look m me my ' +
    'of ok okay on or our per please print re really s see show so t tell thank thanks that the their them then there these they ' +
    'this those to us ve want was we well were what whats which with you your ' +
    'actual actually backtest backtests bot bots current exactly far figure figures full here latest much newest overall ' +
    'question recent result results run runs strategy total value values'
  ).split(' '),
);

/** Words that do not help to find a question. */
const COMMON = new Set(
  'a about also am an and any are ask at been bot by can could did do does each for from get give got had has have how i if in is it its just know let like list many me much my no not now of on only or our please see should show so some tell than that the their them then there these they this those to us want was we were what when which who why will with would you your'.split(
    ' ',
  ),
);

export function wordsThatSay({ words }: Prompt): string[] {
  return words.filter((word) => !COMMON.has(word));
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

const wordsOf = (text: string): string[] => wordsThatSay(readPrompt(text));

const MOST_SUGGESTIONS = 5;

/** Questions with words that are like those of the prompt. */
export function nearest(prompt: Prompt, first?: KnownQuestion): KnownQuestion[] {
  const known = new Set(QUESTIONS.flatMap(({ example }) => wordsOf(example)));
  const asked = wordsThatSay(prompt)
    .slice(0, 40)
    .map((word) => (known.has(word) ? word : closest(word.slice(0, 40), known)));
  const like = QUESTIONS.map((question) => {
    const words = new Set(wordsOf(question.example));
    return { question, common: asked.filter((word) => words.has(word!)).length };
  })
    .filter(({ common }) => common > 0)
    .toSorted((a, b) => b.common - a.common)
    .map(({ question }) => question);
  return [...new Set([...(first ? [first] : []), ...like])].slice(0, MOST_SUGGESTIONS);
}
