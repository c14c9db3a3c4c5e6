/**
 * Answers questions about a bot from its own facts, where no language model is set up. It knows the
 * questions of `QUESTIONS`, and nothing else; it changes nothing. What it reads is told, and never
 * followed.
 */
import { closest } from '../../closest.ts';
import { ServiceError } from '../../errors.ts';
import type { Ask } from '../ask.ts';
import type { Citation } from '../answering.ts';
import { openFacts } from './facts.ts';
import { placesOf, readPrompt, type Prompt } from './prompt.ts';
import type { KnownQuestion } from './question.ts';
import { PARTS, QUESTIONS } from './questions.ts';

export interface AnalystAnswer {
  /** Of the question that it took it for; null where it knows none like it. */
  readonly question: string | null;
  readonly answer: string;
  readonly citations: readonly Citation[];
}

const WHO_I_AM = 'I am the embedded analyst, not a language model.';
const HOW_TO_LIST = 'Ask "What can I ask?" for all questions that I know.';

/** Of a fact that there is not, and what the API refuses, it tells. @param bot its id, or its slug. */
export async function answerQuestion(
  ask: Ask,
  bot: string,
  text: string,
  signal: AbortSignal,
): Promise<AnalystAnswer> {
  const prompt = readPrompt(text);
  const plain = own(prompt);
  if (plain !== undefined) return { question: null, answer: plain, citations: [] };
  const [question, ...others] = questionsIn(prompt);
  if (question === undefined) {
    const lines = ['I do not know this question.', ...nearest(prompt), HOW_TO_LIST, WHO_I_AM];
    return { question: null, answer: lines.join('\n'), citations: [] };
  }
  const more = others.map(({ example }) => `Ask apart, too: ${example}`);
  try {
    const told = await question.answer(openFacts(ask, bot, prompt, signal));
    const answer = [told.text, ...more, `(${WHO_I_AM})`].join('\n');
    return { question: question.id, answer, citations: told.citations };
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    const why = `I cannot tell: ${error.message}.`;
    const answer = [
      why,
      ...(error.remedy === undefined ? [] : [error.remedy]),
      ...more,
      `(${WHO_I_AM})`,
    ];
    return { question: question.id, answer: answer.join('\n'), citations: [] };
  }
}

/** Words with which somebody tells it to do something. */
const ORDERS =
  /^(?:please |now |then |and )*(?:add|apply|approve|archive|backtest|buy|cancel|change|close|create|delete|deploy|disable|enable|execute|forget|grant|halt|ignore|lift|lower|open|place|promote|raise|remove|resume|run|sell|send|set|short|start|stop|transfer|update|write)\b/;

/** What it says of itself, and to orders. */
function own({ text, words }: Prompt): string | undefined {
  const plain = words.join(' ');
  if (
    /^(?:help|questions)$|\bwhat (?:can|may|could|should) (?:i|you|one)\b.*\b(?:ask|answer|do|know)\b|\bwhat do you know\b|\b(?:list|show|which)\b.*\bquestions\b/.test(
      plain,
    )
  ) {
    return allQuestions();
  }
  if (
    /\b(?:who|what) are you\b|\bare you (?:an? )?(?:ai|llm|language model|human|robot|chatgpt|claude)\b/.test(
      plain,
    )
  ) {
    return `${WHO_I_AM} I answer a set of questions from the records of this bot, with the source of each figure. ${HOW_TO_LIST}`;
  }
  if (ORDERS.test(plain) && !text.trimEnd().endsWith('?')) {
    return `I do nothing but answer questions: I start, stop and change nothing. People do that, with the commands of \`service-local --help\`. ${HOW_TO_LIST}\n(${WHO_I_AM})`;
  }
  return undefined;
}

/** All questions that it knows, by their parts. */
function allQuestions(): string {
  const parts = PARTS.map(({ title, questions }) =>
    [`${title}:`, ...questions.map(({ example, tells }) => `- ${example} (${tells})`)].join('\n'),
  );
  return [
    `${WHO_I_AM} I know ${QUESTIONS.length} questions, in these and other words.`,
    ...parts,
  ].join('\n\n');
}

/** What else was probably asked, so many at most. */
const MOST_OTHERS = 2;

/** The question that has most words in common, then those that share none of these words. */
function questionsIn({ words }: Prompt): KnownQuestion[] {
  const meant = QUESTIONS.flatMap((question) => {
    const places = question.keys.flatMap((key) => placesOf(key, words) ?? []);
    const [most] = places.toSorted((a, b) => b.size - a.size);
    return most === undefined ? [] : [{ question, places: most }];
  });
  const chosen: KnownQuestion[] = [];
  const used = new Set<number>();
  for (const { question, places } of meant.toSorted((a, b) => b.places.size - a.places.size)) {
    if (chosen.length > MOST_OTHERS || [...places].some((place) => used.has(place))) continue;
    chosen.push(question);
    for (const place of places) used.add(place);
  }
  return chosen;
}

/** Words that say nothing of what is asked. */
const COMMON = new Set(
  'a an and are at bot by can did do does each for from had has have how i in is it its many me much my not now of on or so tell that the their them there they this to was were what when which who why with you your'.split(
    ' ',
  ),
);

const wordsOf = (text: string): string[] =>
  readPrompt(text).words.filter((word) => !COMMON.has(word));

const MOST_SUGGESTIONS = 5;

/** Questions with words that are like those of the prompt. */
function nearest({ text }: Prompt): string[] {
  const examples = QUESTIONS.map(({ example }) => ({ example, words: new Set(wordsOf(example)) }));
  const known = new Set(examples.flatMap(({ words }) => [...words]));
  const asked = wordsOf(text)
    .slice(0, 40)
    .map((word) => (known.has(word) ? word : closest(word, known)));
  const near = examples
    .map(({ example, words }) => ({
      example,
      common: asked.filter((word) => word !== undefined && words.has(word)).length,
    }))
    .filter(({ common }) => common > 0)
    .toSorted((a, b) => b.common - a.common)
    .slice(0, MOST_SUGGESTIONS);
  if (near.length === 0) return [];
  return ['Like it are:', ...near.map(({ example }) => `- ${example}`)];
}
